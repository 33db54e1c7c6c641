import { Type } from 'typebox'
import { pageFields } from '../../platform/paging.ts'
import { receiptKinds } from './receipt-kinds.ts'

const nullable = (description: string) =>
  Type.Union([Type.Object({}, { additionalProperties: true }), Type.Null()], { description })
const nullableText = (description: string) => Type.Union([Type.String(), Type.Null()], { description })
const kind = Type.Union(receiptKinds.map((name) => Type.Literal(name)))

export const ReceiptLog = Type.Object(
  {
    origin: Type.String(),
    index: Type.Integer(),
    inclusion_proof: Type.Array(Type.String()),
    checkpoint: Type.String(),
  },
  { title: 'ReceiptLog', description: 'The place of the receipt in the public log, with its proof.' },
)

/** What opens a receipt's commitment to counters; `proof/` verifies it. */
export const CountersOpening = Type.Object(
  {
    salt: Type.String({ description: 'Of the list' }),
    items: Type.Array(
      Type.Object({
        counter: Type.String({ description: '`budget:<tenant>:<budget_id>` or `mandate:<mandate_id>:<constraint>`' }),
        period: Type.String({ description: 'The window that the amount was counted in' }),
        slice_ends_at: Type.Optional(
          Type.String({ format: 'date-time', description: 'When it leaves a rolling window' }),
        ),
        measure: Type.Union([Type.Literal('money'), Type.Literal('count')]),
        amount: Type.String({ description: 'Micro-USDC, or a number of payments' }),
        salt: Type.String({
          description: 'Of this counter in this receipt, so that it can be shown without the others',
        }),
      }),
      { description: 'Every budget and mandate that counted the payment; none when it was not charged' },
    ),
  },
  {
    title: 'CountersOpening',
    description: "Opens the receipt's `counters`: pass it to `verifyReceipt` as `opening.counters`.",
  },
)

export const Receipt = Type.Object(
  {
    schema: Type.Literal('run-receipt/v1'),
    receipt_id: Type.String(),
    run_id: Type.String(),
    loop_id: nullableText('The loop the run belongs to'),
    issued_at: Type.String({ format: 'date-time' }),
    kind,
    agent_id: nullableText('The lane that did the work'),
    route: nullable('How the lane was chosen'),
    pricing: nullable('What it cost and why'),
    governance: nullable('What policies, mandates and people decided'),
    request_hash: nullableText('SHA-256 of the canonical request, salted as `commitment` says'),
    input_hash: nullableText('SHA-256 of the task, salted as `commitment` says'),
    output_hash: nullableText('SHA-256 of the output, salted as `commitment` says'),
    commitment: Type.Optional(
      Type.Object(
        {
          alg: Type.Literal('sha256-salted'),
          salted: Type.Array(
            Type.Union(['request_hash', 'input_hash', 'output_hash'].map((name) => Type.Literal(name))),
          ),
        },
        {
          description:
            'Which hashes are salted: SHA-256 of the text `<salt>.<name>.<plain hash>`. The salt is in `evidence` of the answer. Absent in older receipts, whose hashes are plain.',
        },
      ),
    ),
    counters: Type.Optional(
      Type.Object(
        { alg: Type.Literal('sha256-salted-list'), hash: Type.String() },
        {
          description:
            'A salted commitment to the budgets and mandates that counted the payment, in which window and how much. It tells nobody which, how many, or whether another receipt has the same. What opens it is in `evidence.counters` of the answer. Absent in older receipts and in kinds that nothing counts.',
        },
      ),
    ),
    verification: nullable('What was checked about the output'),
    settlement: nullable('The payment'),
    prev_hash: nullableText('Hash of the receipt before this one of the same run'),
    charged: Type.Optional(
      Type.Boolean({ description: 'Whether money moved; false proves that a failed run cost nothing' }),
    ),
    signature: Type.Object({ alg: Type.Literal('ed25519'), key_id: Type.String(), value: Type.String() }),
    log: Type.Union([ReceiptLog, Type.Null()]),
  },
  {
    title: 'Receipt',
    additionalProperties: true,
    description: 'A signed public receipt. It holds hashes, never the task or the output.',
  },
)

const filterText = Type.Optional(Type.String({ minLength: 1, maxLength: 200 }))

export const ReceiptsQuery = Type.Object(
  {
    agent_id: filterText,
    kind: Type.Optional(kind),
    run_id: filterText,
    payer: Type.Optional(Type.String({ minLength: 1, maxLength: 200, description: 'Address that paid' })),
    since: Type.Optional(Type.String({ format: 'date-time', description: 'Issued at this time or later' })),
    until: Type.Optional(Type.String({ format: 'date-time', description: 'Issued before this time' })),
    limit: Type.Integer({ minimum: 1, maximum: 100, default: 20 }),
    cursor: Type.Optional(Type.String({ minLength: 1, maxLength: 200, description: 'next_cursor of the page before' })),
  },
  { additionalProperties: false },
)

export const ReceiptsResponse = Type.Object(
  {
    receipts: Type.Array(Receipt),
    ...pageFields,
  },
  { title: 'ReceiptsResponse' },
)

export const ReceiptParams = Type.Object({ id: Type.String({ minLength: 1, maxLength: 200 }) })

export const ProofQuery = Type.Object(
  {
    witnessed: Type.Boolean({
      default: false,
      description: 'Prove it against the newest checkpoint that a witness cosigned',
    }),
    format: Type.Optional(
      Type.Union([Type.Literal('json'), Type.Literal('tlog-proof')], {
        description:
          '`tlog-proof`: a C2SP tlog-proof file as plain text, with the receipt in its `extra` line; 404 until the receipt has a checkpoint',
      }),
    ),
  },
  { additionalProperties: false },
)

export const ProofResponse = Type.Object(
  {
    receipt_id: Type.String(),
    hash: Type.String({ description: 'SHA-256 of the entry: what the next receipt of the run names as prev_hash' }),
    leaf_hash: Type.String({ description: 'RFC 6962 leaf hash of the same bytes, in base64' }),
    log: Type.Union([ReceiptLog, Type.Null()], {
      description: 'Null until the receipt has its place, within about a second',
    }),
  },
  { title: 'InclusionProofResponse' },
)

export const VerifyRequest = Type.Object(
  {
    receipt: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), { description: 'The receipt, as it was issued' }),
    ),
    receipt_id: Type.Optional(Type.String({ minLength: 1, maxLength: 200, description: 'Or the id of one on record' })),
  },
  { title: 'ReceiptVerifyRequest', additionalProperties: false },
)

export const VerifyResponse = Type.Object(
  {
    ok: Type.Boolean({ description: 'Whether nothing failed and the signature holds' }),
    receipt_id: Type.Union([Type.String(), Type.Null()]),
    checks: Type.Array(
      Type.Object({
        name: Type.String(),
        ok: Type.Union([Type.Boolean(), Type.Literal('skipped')], {
          description: 'skipped: it could not be looked at',
        }),
        reason: Type.String(),
      }),
    ),
    later: Type.Array(Type.Object({ receipt_id: Type.String(), kind: Type.String() }), {
      description: 'Later receipts of the same run, such as a refund',
    }),
    does_not_prove: Type.Array(Type.String(), { description: 'What must not be concluded, even when all holds' }),
  },
  { title: 'ReceiptVerifyResponse' },
)

export const JwksResponse = Type.Object(
  {
    keys: Type.Array(
      Type.Object({
        kty: Type.String(),
        crv: Type.String(),
        x: Type.String(),
        kid: Type.String(),
        use: Type.String(),
        alg: Type.String(),
        purpose: Type.String({ description: 'What the key signs, and nothing else' }),
      }),
    ),
  },
  { title: 'JwksResponse' },
)

export const DidResponse = Type.Object(
  {
    '@context': Type.Array(Type.String()),
    id: Type.String(),
    verificationMethod: Type.Array(
      Type.Object({
        id: Type.String(),
        type: Type.String(),
        controller: Type.String(),
        publicKeyJwk: Type.Object({ kty: Type.String(), crv: Type.String(), x: Type.String(), alg: Type.String() }),
      }),
    ),
    assertionMethod: Type.Array(Type.String()),
  },
  { title: 'DidResponse', description: 'did:web document of the service.' },
)
