import { canonicalize } from './canonicalize.ts'
import {
  allChecksPass,
  type Check,
  checkSignature,
  failed,
  isJsonObject,
  type JsonObject,
  omit,
  passed,
  skipped,
  type Verification,
} from './checks.ts'
import { utf8 } from './encoding.ts'
import type { Jwks, KeyPurpose } from './jwk.ts'

export type VerifyStatementOptions = {
  jwks: Jwks
  /** Required value of `schema`. Without it any schema is accepted, so set it wherever the kind matters. */
  schema?: string
  /** Required purpose of the key, when the key set states purposes. */
  purpose?: KeyPurpose
}

/** The signed bytes of a statement `{…fields, signature}`: the canonical JSON of everything except `signature`. */
export const statementSigningBytes = (statement: object): Uint8Array =>
  utf8(canonicalize(omit(statement as JsonObject, 'signature')))

/** Verifies a signed object such as the remaining budget of a mandate. Never throws, whatever the input. */
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
    ...checkSignature(statement.signature, omit(statement, 'signature'), { jwks, purpose }),
  ]
  return { ok: allChecksPass(checks, ['shape', 'key', 'signature']), checks, does_not_prove }
}

function checkSchema(schema: unknown, expected: string | undefined): Check {
  if (expected === undefined) return skipped('schema', 'No schema is required.')
  return schema === expected
    ? passed('schema', `The schema is '${expected}'.`)
    : failed('schema', `The schema is not '${expected}'.`)
}

const does_not_prove = [
  'That the statement is still true: it was true when signed, and a newer one may exist.',
  'That the key set belongs to the signer: get it from a place you trust.',
]
