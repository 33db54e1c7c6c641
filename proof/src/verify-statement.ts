import { canonicalize } from './canonicalize.ts'
import {
  allHold,
  type Check,
  checkSignature,
  failed,
  isJsonObject,
  type JsonObject,
  passed,
  skipped,
  type Verification,
  without,
} from './checks.ts'
import { utf8 } from './encoding.ts'
import type { Jwks, KeyPurpose } from './jwk.ts'

export type VerifyStatementOptions = {
  jwks: Jwks
  /** What `schema` must say. Without it a statement of any kind passes, so name it wherever the kind matters. */
  schema?: string
  /** What the key must be for, when the key set says what its keys are for. */
  purpose?: KeyPurpose
}

/** What is signed of a statement `{…fields, signature}`: the canonical bytes of everything but `signature`. */
export const statementSigningBytes = (statement: object): Uint8Array =>
  utf8(canonicalize(without(statement as JsonObject, 'signature')))

/** Verifies a signed object such as the remaining budget of a mandate. Bad input is an answer, never an error. */
export function verifyStatement(
  statement: unknown,
  { jwks, schema, purpose = 'statement' }: VerifyStatementOptions,
): Verification {
  if (!isJsonObject(statement)) {
    return { ok: false, checks: [failed('shape', 'A statement is a JSON object.')], does_not_prove }
  }
  const checks = [
    passed('shape', 'The statement is a JSON object.'),
    checkSchema(statement.schema, schema),
    ...checkSignature(statement.signature, without(statement, 'signature'), { jwks, purpose }),
  ]
  return { ok: allHold(checks, ['shape', 'key', 'signature']), checks, does_not_prove }
}

function checkSchema(schema: unknown, wanted: string | undefined): Check {
  if (wanted === undefined) return skipped('schema', 'No kind of statement was asked for.')
  return schema === wanted
    ? passed('schema', `The statement is of kind '${wanted}'.`)
    : failed('schema', `The statement is not of kind '${wanted}'.`)
}

const does_not_prove = [
  'That the statement is still true: it held when it was signed, and a newer one may exist.',
  'That the key set belongs to the signer: get it from a place you trust.',
]
