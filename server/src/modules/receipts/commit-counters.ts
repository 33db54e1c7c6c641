import { createHash } from 'node:crypto'
import { COUNTERS_ALG, type CountedBy, type CountersCommitment, type CountersOpening } from '@countersign/proof'
import { hashJson, sha256 } from '../../platform/canonical.ts'

/** The counters of a receipt, and the random text that the salts of this receipt are derived from. */
export type CountersDraft = { secret: string; counted: readonly CountedBy[] }

/** 132 bits, which is what a reader of one salt would have to guess to learn another. */
const SALT_CHARACTERS = 22

/**
 * The commitment to every counter that counted a payment, and what opens it. Each counter of each receipt has a salt of its
 * own, so that one can be shown without the others, and nobody can tell whether two receipts share one. `proof/` defines
 * the form and has an independent implementation, `hashCounters`.
 */
export function commitCounters({ secret, counted }: CountersDraft): {
  commitment: CountersCommitment
  opening: CountersOpening
} {
  const items = counted.map((countedBy) => {
    const { counter, period, slice_ends_at = '' } = countedBy
    return { ...countedBy, salt: deriveSalt(`${secret}.counter.${JSON.stringify([counter, period, slice_ends_at])}`) }
  })
  const hashes = items.map(({ salt, ...countedBy }) => sha256(`${salt}.counter.${hashJson(countedBy)}`)).sort()
  const salt = deriveSalt(`${secret}.counters`)
  return {
    commitment: { alg: COUNTERS_ALG, hash: sha256(`${salt}.counters.${hashJson(hashes)}`) },
    opening: { salt, items },
  }
}

const deriveSalt = (text: string) => createHash('sha256').update(text).digest('base64url').slice(0, SALT_CHARACTERS)
