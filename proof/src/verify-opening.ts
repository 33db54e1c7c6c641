import {
  type Check,
  canonicalBytes,
  failed,
  isJsonObject,
  type JsonObject,
  passed,
  skipped,
  type Verification,
} from './checks.ts'
import { type CountersOpening, openCounters, SALT } from './counters.ts'
import { toHex, utf8 } from './encoding.ts'
import { isHashText } from './hash-json.ts'
import { COMMITMENT_ALG, type Commitment, type CommittedHash, receiptProblem } from './receipt.ts'
import { sha256 } from './sha256.ts'

/** What a holder discloses: the salt, and the texts or, where only a hash is to be shown, their plain hashes. */
export type Opening = {
  /** From `evidence` of the answer. A receipt without a commitment needs none. */
  salt?: string
  /** `{method, path, body}`, the body without the members that a client may add between the quote and the payment. */
  request?: unknown
  /** The task. */
  input?: string
  output?: string
  request_hash?: string
  input_hash?: string
  output_hash?: string
  /** The budgets and mandates that counted the payment: `evidence.counters` of the answer, with salts of their own. */
  counters?: CountersOpening
}

/** The salted form of a plain hash: SHA-256 of the text `<salt>.<name of the member>.<plain hash>`. */
export const saltHash = (salt: string, name: CommittedHash, plainHash: string): string =>
  hashText(`${salt}.${name}.${plainHash}`)

const hashText = (text: string) => `sha256:${toHex(sha256(utf8(text)))}`

/**
 * Verifies that an opened receipt is about the disclosed request, task or output. It does not verify the receipt itself:
 * pass the opening to `verifyReceipt` for both. Never throws, whatever the input.
 */
export function verifyOpening(receipt: unknown, opening: Opening): Verification {
  const checks = checkOpening(receipt, opening)
  return {
    ok: checks.every(({ ok }) => ok === true),
    checks,
    does_not_prove: ['That the service issued this receipt: verify its signature too.'],
  }
}

/** The checks of an opening; at least one, and each of them must pass. */
export function checkOpening(receipt: unknown, opening: unknown): Check[] {
  const problem = receiptProblem(receipt)
  if (problem !== undefined || !isJsonObject(receipt)) return [skipped('opening', 'The receipt is malformed.')]
  if (!isJsonObject(opening)) return [failed('opening', 'An opening is an object with a salt and what it discloses.')]
  const { commitment = { alg: COMMITMENT_ALG, salted: [] } } = receipt
  if (!isCommitment(commitment)) return [failed('opening', `The commitment of the receipt is not ${COMMITMENT_ALG}.`)]
  const disclosed = disclosures.filter(
    ({ content, hash }) => opening[content] !== undefined || opening[hash] !== undefined,
  )
  const counterChecks = opening.counters === undefined ? [] : [checkCounters(receipt, opening.counters)]
  if (disclosed.length === 0 && counterChecks.length === 0)
    return [failed('opening', 'Nothing is disclosed: no request, input, output or counters.')]
  const checks = disclosed.flatMap((disclosure) => {
    const { content, hash } = disclosure
    const plainHashes = [
      ...(opening[content] === undefined ? [] : [hashContent(content, opening[content])]),
      ...(opening[hash] === undefined ? [] : [opening[hash]]),
    ]
    return plainHashes.map((plainHash) => compare(receipt, commitment, opening.salt, disclosure, plainHash))
  })
  return [...checks, ...counterChecks]
}

function checkCounters(receipt: JsonObject, opening: unknown): Check {
  const opened = openCounters(receipt.counters, opening)
  if ('problem' in opened) return failed('counters', opened.problem)
  const { disclosed, undisclosed } = opened
  const names = disclosed.map(({ counter, period, amount }) => `${counter} in ${period} (${amount})`).join(', ')
  return passed(
    'counters',
    `Counted by ${names || 'none that is disclosed'}${undisclosed === 0 ? ', and no other' : `; ${undisclosed} more not disclosed`}.`,
  )
}

const disclosures = [
  { content: 'request', hash: 'request_hash', label: 'request' },
  { content: 'input', hash: 'input_hash', label: 'task' },
  { content: 'output', hash: 'output_hash', label: 'output' },
] as const

type Disclosure = (typeof disclosures)[number]

function compare(
  receipt: JsonObject,
  { salted }: Commitment,
  salt: unknown,
  { content, hash, label }: Disclosure,
  plainHash: unknown,
): Check {
  if (!isHashText(plainHash)) return failed(content, `The ${label} has no hash: it is not of the right form.`)
  if (receipt[hash] === null) return failed(content, `The receipt commits to no ${label}.`)
  const isSalted = salted.includes(hash)
  if (isSalted && (typeof salt !== 'string' || !SALT.test(salt)))
    return failed(content, 'The hash is salted, and the opening has no salt of 22 to 86 base64url characters.')
  return (isSalted ? saltHash(salt as string, hash, plainHash) : plainHash) === receipt[hash]
    ? passed(content, `The receipt is about this ${label}.`)
    : failed(content, `The receipt is not about this ${label}, or the salt is another.`)
}

/** A text with a lone surrogate has no UTF-8 form; encoders replace it, so that two texts would have one hash. */
function hashContent(content: 'request' | 'input' | 'output', value: unknown): string | undefined {
  if (content !== 'request') return typeof value === 'string' && value.isWellFormed() ? hashText(value) : undefined
  const canonical = canonicalBytes(value)
  return 'bytes' in canonical ? `sha256:${toHex(sha256(canonical.bytes))}` : undefined
}

const isCommitment = (value: unknown): value is Commitment =>
  isJsonObject(value) &&
  value.alg === COMMITMENT_ALG &&
  Array.isArray(value.salted) &&
  value.salted.every((name) => disclosures.some(({ hash }) => hash === name))
