import { COMMITMENT_ALG, type Commitment, type CommittedHash, type CountersOpening } from '@countersign/proof'
import { sha256 } from '../../platform/canonical.ts'

type Hashes = Record<CommittedHash, string | null>

/** What opens a receipt: its own hashes, and the salt they were made with. Only the answer has it, never the receipt. */
export type Evidence = Hashes & { salt?: string; counters?: CountersOpening }

/**
 * Salts plain hashes, so that nobody can find out by guessing what they are the hashes of. `proof/` defines the form and
 * has an independent implementation, `saltHash`.
 */
export function saltHashes({
  salt,
  request_hash,
  input_hash,
  output_hash,
}: Hashes & { salt: string | null }): Evidence {
  if (salt === null) return { request_hash, input_hash, output_hash }
  const saltHash = (name: CommittedHash, hash: string | null) =>
    hash === null ? null : sha256(`${salt}.${name}.${hash}`)
  return {
    request_hash: saltHash('request_hash', request_hash),
    input_hash: saltHash('input_hash', input_hash),
    output_hash: saltHash('output_hash', output_hash),
    salt,
  }
}

/** Absent when nothing is salted. */
export function commitmentOf({ salt, request_hash, input_hash, output_hash }: Evidence): Commitment | undefined {
  const hashes = { request_hash, input_hash, output_hash }
  const salted = (Object.keys(hashes) as CommittedHash[]).filter((name) => hashes[name] !== null)
  return salt === undefined ? undefined : { alg: COMMITMENT_ALG, salted }
}
