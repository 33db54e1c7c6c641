import { Type } from 'typebox'
import { cursorParameter, pageFields } from '../../platform/paging.ts'
import { nullableText, pattern } from '../../platform/schema.ts'
import { limits } from './run-memory.ts'

const Time = Type.String({ format: 'date-time' })
// PostgreSQL text cannot hold a NUL.
const name = (maxLength: number, description?: string) =>
  Type.String({
    minLength: 1,
    maxLength,
    ...pattern('^[^\\u0000]+$', 'text without NUL'),
    ...(description && { description }),
  })
const sessionId = name(120)
const agentId = name(80)
const id = name(80)

const fields = {
  id: Type.String(),
  session_id: Type.String(),
  agent_id: nullableText,
  run_id: nullableText,
  content: Type.String(),
  metadata: Type.Object({}, { additionalProperties: true }),
  created_at: Time,
  expires_at: Time,
}

export const Memory = Type.Object(fields, { title: 'Memory' })

export const MemoryParams = Type.Object({ id })

export const MemoryQuery = Type.Object(
  {
    session_id: Type.Optional(sessionId),
    agent_id: Type.Optional(agentId),
    run_id: Type.Optional(id),
    cursor: cursorParameter('mem'),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
  },
  { additionalProperties: false },
)

export const MemoriesResponse = Type.Object(
  {
    memories: Type.Array(Memory),
    ...pageFields,
  },
  { title: 'MemoriesResponse' },
)

export const MemoryCreate = Type.Object(
  {
    content: Type.String({ minLength: 1, maxLength: limits.contentCharacters }),
    session_id: Type.Optional(name(120, 'A new session is created when absent.')),
    agent_id: Type.Optional(agentId),
    run_id: Type.Optional(name(80, 'A run of yours that this is about.')),
    metadata: Type.Optional(
      Type.Object(
        {},
        {
          additionalProperties: true,
          maxProperties: 50,
          description: `At most ${limits.metadataCharacters} characters as JSON.`,
        },
      ),
    ),
    expires_at: Type.Optional(
      Type.String({ format: 'date-time', description: 'At most 365 days ahead; without it, in 90 days.' }),
    ),
    idempotency_key: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
  },
  { title: 'MemoryCreate', additionalProperties: false },
)

export const MemorySearch = Type.Object(
  {
    query: Type.String({ minLength: 1, maxLength: 2_000 }),
    session_id: Type.Optional(sessionId),
    agent_id: Type.Optional(agentId),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 50 })),
  },
  { title: 'MemorySearch', additionalProperties: false },
)

export const MemorySearchResponse = Type.Object(
  {
    memories: Type.Array(
      Type.Object({
        ...fields,
        score: Type.Number({ description: 'Higher fits better; comparable within one answer only.' }),
      }),
    ),
  },
  { title: 'MemorySearchResponse' },
)

export const MemoryDeleted = Type.Object({ id: Type.String(), deleted: Type.Boolean() }, { title: 'MemoryDeleted' })

export const SessionQuery = Type.Object({ session_id: sessionId }, { additionalProperties: false })

export const SessionDeleted = Type.Object(
  { session_id: Type.String(), deleted_count: Type.Integer() },
  { title: 'MemorySessionDeleted' },
)
