import { isJsonObject, isShortText, isTime } from './checks.ts'
import { toHex, utf8 } from './encoding.ts'
import { hashJson, isHashText } from './hash-json.ts'
import { sha256 } from './sha256.ts'

export const COUNTERS_ALG = 'sha256-salted-list'

/** A receipt's commitment to every counter that counted its payment. One hash, so that it does not tell how many. */
export type CountersCommitment = { alg: typeof COUNTERS_ALG; hash: string }

/** A budget or a mandate that counted a payment: in which window, and how much. */
export type CountedBy = {
  counter: string
  period: string
  /** When the amount leaves a rolling window; absent for other windows. */
  slice_ends_at?: string
  measure: 'money' | 'count'
  /** Micro-USDC, or a number of payments, as text. */
  amount: string
}

export type DisclosedCounter = CountedBy & { salt: string }

/** All counters of a receipt, in any order. One that is not to be shown is given by its hash alone. */
export type CountersOpening = { salt: string; items: readonly (DisclosedCounter | { hash: string })[] }

/** 128 bits or more in base64url; it has no full stop, so the parts of the hashed text cannot be shifted. */
export const SALT = /^[A-Za-z0-9_-]{22,86}$/

const MAX_COUNTERS = 1024
const AMOUNT = /^(0|[1-9][0-9]{0,18})$/
const MEMBERS = ['amount', 'counter', 'measure', 'period', 'salt', 'slice_ends_at']

const hashText = (text: string) => `sha256:${toHex(sha256(utf8(text)))}`

/** The hash of one counter: SHA-256 of the text `<salt>.counter.<hash of the other members>`. */
export function hashCounter({ salt, ...countedBy }: DisclosedCounter): string {
  return hashText(`${salt}.counter.${hashJson(countedBy)}`)
}

/** The hash in the receipt: SHA-256 of the text `<salt>.counters.<hash of the list of hashes, sorted>`. */
export const hashCounters = (salt: string, hashes: readonly string[]): string =>
  hashText(`${salt}.counters.${hashJson([...hashes].sort())}`)

export type OpenedCounters = { disclosed: CountedBy[]; undisclosed: number }

/** What a receipt's commitment opens to, or why the opening is not its own. */
export function openCounters(commitment: unknown, opening: unknown): OpenedCounters | { problem: string } {
  if (commitment === undefined) return { problem: 'The receipt commits to no counters.' }
  if (!isJsonObject(commitment) || commitment.alg !== COUNTERS_ALG || !isHashText(commitment.hash))
    return { problem: `The receipt's commitment to counters is not ${COUNTERS_ALG}.` }
  if (!isJsonObject(opening) || !isSalt(opening.salt) || !Array.isArray(opening.items))
    return { problem: 'The counters are {salt, items}, the salt of 22 to 86 base64url characters.' }
  if (opening.items.length > MAX_COUNTERS) return { problem: `There are more than ${MAX_COUNTERS} counters.` }
  const disclosed: CountedBy[] = []
  const hashes: string[] = []
  for (const item of opening.items) {
    if (isHiddenCounter(item)) hashes.push(item.hash)
    else if (isDisclosedCounter(item)) {
      hashes.push(hashCounter(item))
      const { salt: _, ...countedBy } = item
      disclosed.push(countedBy)
    } else return { problem: 'A counter is {counter, period, measure, amount, salt}, or the hash of one.' }
  }
  const windows = disclosed.map(({ counter, period, slice_ends_at = '' }) => `${counter} ${period} ${slice_ends_at}`)
  if (new Set(hashes).size < hashes.length || new Set(windows).size < windows.length)
    return { problem: 'A counter is listed twice.' }
  return hashCounters(opening.salt, hashes) === commitment.hash
    ? { disclosed, undisclosed: hashes.length - disclosed.length }
    : { problem: 'The receipt was not counted by these counters, for these amounts, or a salt is another.' }
}

const isSalt = (value: unknown): value is string => typeof value === 'string' && SALT.test(value)

const isHiddenCounter = (item: unknown): item is { hash: string } =>
  isJsonObject(item) && Object.keys(item).join() === 'hash' && isHashText(item.hash)

const isDisclosedCounter = (item: unknown): item is DisclosedCounter =>
  isJsonObject(item) &&
  Object.keys(item).every((member) => MEMBERS.includes(member)) &&
  isShortText(item.counter) &&
  item.counter.isWellFormed() &&
  isShortText(item.period) &&
  item.period.isWellFormed() &&
  (!('slice_ends_at' in item) || isTime(item.slice_ends_at)) &&
  (item.measure === 'money' || item.measure === 'count') &&
  typeof item.amount === 'string' &&
  AMOUNT.test(item.amount) &&
  isSalt(item.salt)
