import type { Check, CheckpointKey, CheckpointStore, CountersOpening, Jwks } from '@countersign/proof'
import type { ClientOptions, VerifiedReceipt } from './client-types.ts'
import { CountersignError } from './errors.ts'
import type { Receipt } from './generated/api.ts'
import { isObject, type Transport } from './http.ts'
import { retryDelayMs, sleep } from './retry.ts'
import type { SignedPayment } from './sign-payment.ts'

/** A response with a receipt, and what the client knows that the receipt must be about. */
export type ReceiptSubject = {
  path: string
  /** The body that was sent. */
  request: Record<string, unknown>
  /** The body that was received: `run_id`, `output`, `evidence` and `receipt`. */
  response: Record<string, unknown>
  payment: SignedPayment | undefined
}

/** Members that a client may add between the quote and the payment; the hash of the request leaves them out. */
const UNBOUND_FIELDS = ['idempotency_key', 'approval_id', 'override_token', 'preauth_token', 'quote']

const JWKS_LIFETIME_MS = 300_000
/** How long the keys are asked for when the service does not answer. */
const JWKS_PATIENCE_MS = 60_000

/**
 * Verifies the receipt of a response: its form and signature by the issuer's keys, that it is about this run, this
 * request and this output, and that it names the payment which was signed. Its place in the log is checked when it has
 * one; a new receipt gets it a moment later.
 */
export function createReceiptVerification(transport: Transport, options: ClientOptions) {
  const { verify = true } = options
  const checkpoints = options.checkpoints ?? createCheckpointMap()
  let cached: { jwks: Jwks; at: number } | undefined
  const loadJwks = async (keyId: unknown): Promise<Jwks> => {
    if (typeof verify === 'object' && verify.jwks) return verify.jwks
    const isFresh = cached && cached.at > Date.now() - JWKS_LIFETIME_MS && hasKey(cached.jwks, keyId)
    if (!isFresh) {
      const jwks = (await readPatiently(transport, '/.well-known/jwks.json')) as Jwks
      cached = { jwks, at: Date.now() }
    }
    return cached!.jwks
  }

  return {
    /** The receipt of a response. */
    async verifyResponse(subject: ReceiptSubject): Promise<VerifiedReceipt> {
      const { receipt } = subject.response
      if (verify === false) return withVerification(receipt, null, [])
      const checks = await checkReceipt(subject, receipt, loadJwks)
      return withVerification(
        receipt,
        checks.every(({ ok }) => ok !== false),
        checks,
      )
    },

    /**
     * A receipt by its id: its signature and its place in the log, whose checkpoint must agree with the largest one seen
     * before. `checks` has the result as `log_memory`.
     */
    async verifyStored(id: string): Promise<VerifiedReceipt> {
      // A service has one log, so its address is the name; read first, because what it shows now must not be less.
      const name = transport.baseUrl
      const before = await checkpoints.read(name)
      const receipt = await transport.request('get', '/api/receipts/{id}', { path: { id } })
      if (!isObject(receipt) || receipt.receipt_id !== id)
        throw new CountersignError(200, { error: 'error', message: 'The service returned another receipt.' })
      const { verifyReceipt, rememberCheckpoint } = await import('@countersign/proof')
      const jwks = await loadJwks(isObject(receipt.signature) ? receipt.signature.key_id : undefined)
      const { checks } = verifyReceipt(receipt, { jwks })
      const { log } = receipt
      if (isObject(log) && typeof log.origin === 'string') {
        const { check } = await rememberCheckpoint(log.checkpoint, {
          store: checkpoints,
          origin: log.origin,
          keys: logKeys(jwks),
          name,
          before,
          fetchConsistency: (from, to) => readConsistency(transport, from, to),
          now: new Date(),
        })
        checks.push(check)
      }
      return withVerification(
        receipt,
        checks.every(({ ok }) => ok !== false),
        checks,
      )
    },
  }
}

/** Empty when the service refuses: it cannot show that its log only grew. */
async function readConsistency(transport: Transport, from: number, to: number): Promise<string[]> {
  try {
    const answer = await transport.request('get', '/api/log/consistency', { query: { from, to } })
    return isObject(answer) && Array.isArray(answer.proof) ? answer.proof : []
  } catch (error) {
    if (error instanceof CountersignError && error.status >= 400 && error.status < 500 && error.status !== 429)
      return []
    throw error
  }
}

const logKeys = ({ keys }: Jwks): CheckpointKey[] =>
  keys.filter(({ purpose }) => purpose === undefined || purpose === 'log')

function createCheckpointMap(): CheckpointStore {
  const notes = new Map<string, string>()
  return { read: (log) => notes.get(log), write: (log, note) => void notes.set(log, note) }
}

/** The answer is here already, so its verification waits for a service that is just starting again. */
async function readPatiently(transport: Transport, path: string): Promise<unknown> {
  const until = Date.now() + JWKS_PATIENCE_MS
  for (let attempt = 1; ; attempt++) {
    const result = await transport.request('get', path).catch((error: unknown) => {
      const isPassing = error instanceof CountersignError && (error.status === 0 || error.status >= 429)
      if (!isPassing || Date.now() > until) throw error
      return undefined
    })
    if (result !== undefined) return result
    await sleep(retryDelayMs(attempt, 0))
  }
}

async function checkReceipt(
  subject: ReceiptSubject,
  receipt: unknown,
  loadJwks: (keyId: unknown) => Promise<Jwks>,
): Promise<Check[]> {
  if (!isObject(receipt)) return [{ name: 'shape', ok: false, reason: 'The response has no receipt.' }]
  try {
    const [{ verifyReceipt }, jwks] = await Promise.all([
      import('@countersign/proof'),
      loadJwks(isObject(receipt.signature) ? receipt.signature.key_id : undefined),
    ])
    const verification = verifyReceipt(receipt, { jwks, opening: toOpening(subject) })
    return [...verification.checks, checkRun(subject, receipt), ...checkPayment(subject.payment, receipt)]
  } catch (error) {
    return [{ name: 'key', ok: false, reason: `The issuer's keys could not be read: ${String(error)}` }]
  }
}

function toOpening({ path, request, response }: ReceiptSubject) {
  const { evidence, output } = response
  const body = Object.fromEntries(Object.entries(request).filter(([name]) => !UNBOUND_FIELDS.includes(name)))
  return {
    salt: isObject(evidence) && typeof evidence.salt === 'string' ? evidence.salt : undefined,
    request: { method: 'POST', path, body: JSON.parse(JSON.stringify(body)) },
    ...(typeof output === 'string' && { output }),
    ...(isObject(evidence) && evidence.counters !== undefined && { counters: evidence.counters as CountersOpening }),
  }
}

const checkRun = ({ response }: ReceiptSubject, receipt: Record<string, unknown>): Check =>
  receipt.run_id === response.run_id
    ? { name: 'run', ok: true, reason: 'The receipt is of this run.' }
    : { name: 'run', ok: false, reason: 'The receipt is of another run.' }

/** What was signed is what the receipt says was paid, by whom and to whom. */
function checkPayment(payment: SignedPayment | undefined, receipt: Record<string, unknown>): Check[] {
  if (!payment) return []
  const settlement = isObject(receipt.settlement) ? receipt.settlement : {}
  const isSame = (value: unknown, expected: string) => String(value).toLowerCase() === expected.toLowerCase()
  const isPaid =
    settlement.status === 'settled' &&
    isSame(settlement.amount, payment.amount) &&
    isSame(settlement.payer, payment.payer) &&
    isSame(settlement.pay_to, payment.payTo)
  return [
    isPaid
      ? { name: 'payment', ok: true, reason: 'The receipt names the payment that was signed.' }
      : { name: 'payment', ok: false, reason: 'The receipt does not name the payment that was signed.' },
  ]
}

const hasKey = ({ keys }: Jwks, keyId: unknown) => keys.some(({ kid }) => kid === keyId)

/** Not enumerable: written as JSON, the receipt is what was signed. */
function withVerification(receipt: unknown, verified: boolean | null, checks: Check[]): VerifiedReceipt {
  const copy = { ...(isObject(receipt) ? receipt : {}) } as Receipt
  return Object.defineProperties(copy, { verified: { value: verified }, checks: { value: checks } }) as VerifiedReceipt
}
