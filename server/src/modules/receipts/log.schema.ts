import { Type } from 'typebox'

export const CheckpointQuery = Type.Object(
  { witnessed: Type.Boolean({ default: false, description: 'The newest checkpoint that a witness cosigned' }) },
  { additionalProperties: false },
)

export const TileParams = Type.Object({
  '*': Type.String({
    maxLength: 64,
    description: '<L>/<N>[.p/<W>] or entries/<N>[.p/<W>], N in groups of three digits',
  }),
})

const size = { minimum: 0, maximum: Number.MAX_SAFE_INTEGER }

export const ConsistencyQuery = Type.Object(
  {
    from: Type.Integer({ ...size, description: 'Size of the older tree' }),
    to: Type.Optional(Type.Integer({ ...size, description: 'Size of the newer tree; the published one by default' })),
  },
  { additionalProperties: false },
)

export const ConsistencyResponse = Type.Object(
  {
    origin: Type.String(),
    from: Type.Integer(),
    to: Type.Integer(),
    proof: Type.Array(Type.String(), { description: 'Hashes in base64, in the order of RFC 6962 section 2.1.2' }),
    checkpoint: Type.String({ description: 'The newest checkpoint, which is that of `to` when `to` was left out' }),
  },
  { title: 'ConsistencyResponse' },
)

export const WitnessRequest = Type.Object(
  {
    checkpoint: Type.String({
      minLength: 1,
      maxLength: 32_768,
      description: 'A checkpoint of this log with cosignatures under it',
    }),
  },
  { title: 'WitnessRequest', additionalProperties: false },
)

export const WitnessResponse = Type.Object(
  {
    size: Type.Integer(),
    accepted: Type.Array(Type.Object({ witness: Type.String(), cosigned_at: Type.String({ format: 'date-time' }) })),
  },
  { title: 'WitnessResponse' },
)
