import type { CallStore } from './call-store.ts'
import { IdempotencyKeyReused, StoreFailed } from './errors.ts'
import type { SignedPayment } from './sign-payment.ts'

export type CallKind = 'run' | 'loop' | 'topup'

/** What is about to be sent and may be charged: the payment, or for a wallet the request itself. */
export type Attempt = {
  kind: CallKind
  path: string
  body: Record<string, unknown>
  payment: SignedPayment | null
  at: number
}

/** The call has an answer that does not change any more. The request is no longer needed and is not kept. */
type Outcome = { identity: string; status: number; payment: SignedPayment | null; at: number }

type Request = { identity: string; at: number }

/**
 * What is known about one call, in entries that are written once:
 * `request` before anything is sent, `attempt-1`, `attempt-2`, … before each is sent, `outcome` once there is an answer.
 * At the end the outcome is written first and the rest removed after it, so whoever sees the rest missing sees the outcome.
 */
export type CallRecord = {
  readonly attempts: readonly Attempt[]
  readonly outcome: Outcome | undefined
  /** The payment to send, if one was signed: the last one. */
  readonly payment: SignedPayment | undefined
  /** Adds an attempt, or takes over the one that another process added first. */
  add(attempt: Attempt): Promise<void>
  end(status: number): Promise<void>
  /** Forgets a call that nothing was sent for, or whose payments can never count. */
  forget(): Promise<void>
}

/** Ended calls are remembered for as long as the service remembers an idempotency key. */
const OUTCOME_LIFETIME_MS = 24 * 3_600_000
const MAX_OUTCOMES = 1_000
const MAX_ATTEMPTS = 32

type Part = 'request' | 'outcome' | `attempt-${number}`

/** The key has no space, so the parts of a name cannot be shifted. */
const entryName = (key: string, part: Part, scope: string) => `${key} ${part} ${scope}`

export function createCallRecords(callerStore: CallStore, scope: string) {
  const store = reportFailures(callerStore)
  const read = async <T>(key: string, part: Part): Promise<T | undefined> => {
    const text = await store.read(entryName(key, part, scope))
    return text === undefined ? undefined : (parseEntry(text) as T)
  }

  const readAttempts = async (key: string): Promise<Attempt[]> => {
    const attempts: Attempt[] = []
    for (let n = 1; n <= MAX_ATTEMPTS; n++) {
      const attempt = await read<Attempt>(key, `attempt-${n}`)
      if (!attempt) break
      attempts.push(attempt)
    }
    return attempts
  }

  const removeOpen = async (key: string, attempts: number) => {
    await store.remove(entryName(key, 'request', scope))
    for (let n = 1; n <= attempts; n++) await store.remove(entryName(key, `attempt-${n}`, scope))
  }

  /** Opens the record of a call, or the one it has already; throws when the key belongs to another request. */
  const open = async (key: string, identity: string): Promise<CallRecord> => {
    const request: Request = { identity, at: Date.now() }
    const isNew = await store.create(entryName(key, 'request', scope), JSON.stringify(request))
    const existing = isNew ? request : await read<Request>(key, 'request')
    let attempts = await readAttempts(key)
    // Read last: whoever ended the call meanwhile wrote the outcome before removing the rest.
    let outcome = await read<Outcome>(key, 'outcome')
    if (outcome && isNew) await store.remove(entryName(key, 'request', scope))
    const knownIdentity = outcome?.identity ?? existing?.identity ?? identity
    if (knownIdentity !== identity)
      throw new IdempotencyKeyReused(`The idempotency key '${key}' was used for another request.`)
    const lastPayment = () => attempts.findLast(({ payment }) => payment !== null)?.payment ?? undefined

    return {
      get attempts() {
        return attempts
      },
      get outcome() {
        return outcome
      },
      get payment() {
        return outcome ? (outcome.payment ?? undefined) : lastPayment()
      },
      async add(attempt) {
        const n = attempts.length + 1
        if (n > MAX_ATTEMPTS) throw new StoreFailed(`The call '${key}' has ${MAX_ATTEMPTS} attempts; use another key.`)
        const isFirst = await store.create(entryName(key, `attempt-${n}`, scope), JSON.stringify(attempt))
        outcome = await read<Outcome>(key, 'outcome')
        if (outcome && isFirst) await store.remove(entryName(key, `attempt-${n}`, scope))
        attempts = isFirst && !outcome ? [...attempts, attempt] : await readAttempts(key)
        if (!outcome && attempts.length < n) throw new StoreFailed(`The store lost an attempt of the call '${key}'.`)
      },
      async end(status) {
        if (outcome) return
        outcome = { identity, status, payment: lastPayment() ?? null, at: Date.now() }
        await store.create(entryName(key, 'outcome', scope), JSON.stringify(outcome))
        await removeOpen(key, attempts.length)
      },
      forget: () => removeOpen(key, attempts.length),
    }
  }

  /** The last attempt of every call that was sent and has no outcome. */
  const openCalls = async (): Promise<{ key: string; attempt: Attempt }[]> => {
    const calls = []
    for (const key of keysWith('attempt-1', await store.names(), scope)) {
      const attempts = await readAttempts(key)
      const outcome = await read<Outcome>(key, 'outcome')
      if (outcome) await removeOpen(key, attempts.length)
      else if (attempts.length > 0) calls.push({ key, attempt: attempts.at(-1)! })
    }
    return calls
  }

  /** Removes old outcomes, and requests for which nothing was ever signed. */
  const prune = async () => {
    const names = await store.names()
    const outcomes = []
    for (const key of keysWith('outcome', names, scope)) {
      const outcome = await read<Outcome>(key, 'outcome')
      if (outcome) outcomes.push({ key, at: outcome.at })
    }
    outcomes.sort((a, b) => b.at - a.at)
    for (const [index, { key, at }] of outcomes.entries())
      if (index >= MAX_OUTCOMES || at < Date.now() - OUTCOME_LIFETIME_MS)
        await store.remove(entryName(key, 'outcome', scope))
    const sent = new Set(keysWith('attempt-1', names, scope))
    for (const key of keysWith('request', names, scope)) {
      const request = sent.has(key) ? undefined : await read<Request>(key, 'request')
      if (request && request.at < Date.now() - OUTCOME_LIFETIME_MS) await store.remove(entryName(key, 'request', scope))
    }
  }

  return { open, openCalls, prune }
}

function keysWith(part: Part, names: string[], scope: string): string[] {
  const suffix = ` ${part} ${scope}`
  return names.filter((name) => name.endsWith(suffix)).map((name) => name.slice(0, -suffix.length))
}

function parseEntry(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new StoreFailed('An entry of the store is not what was written.', { cause })
  }
}

/** Whatever a store throws means that it cannot be relied on, so nothing may be signed or sent. */
export function reportFailures(store: CallStore): CallStore {
  const report =
    <A extends unknown[], R>(action: string, call: (...values: A) => Promise<R>) =>
    async (...values: A): Promise<R> => {
      try {
        return await call(...values)
      } catch (cause) {
        throw new StoreFailed(`The store could not ${action}; nothing was sent.`, { cause })
      }
    }
  return {
    create: report('write', (name, value) => store.create(name, value)),
    read: report('read', (name) => store.read(name)),
    names: report('read', () => store.names()),
    remove: report('remove', (name) => store.remove(name)),
  }
}
