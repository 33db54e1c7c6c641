import { reportFailures } from './call-record.ts'
import type { CallStore } from './call-store.ts'
import type {
  CallOptions,
  OpenPreauth,
  PaymentReport,
  PreauthRequest,
  PreauthResult,
  ResumedCall,
} from './client-types.ts'
import { CountersignError, GovernanceRefused, SettlementUnknown } from './errors.ts'
import type { Preauth, PreauthClosed, PreauthCreated } from './generated/api.ts'
import { approvalNeeded, toRefusal } from './governance-refusal.ts'
import { isObject, type Transport } from './http.ts'
import { findRetry, retryDelayMs, sleep } from './retry.ts'

type Close = { outcome: 'settled' | 'failed' | 'voided' } & PaymentReport

/** How long opening and closing keep trying; the key makes each safe to repeat. */
const PATIENCE_MS = 120_000

/**
 * Opens a pre-authorisation, lets the caller pay with it and closes it. Three entries of the store say where a process
 * that died had come to: `preauth` before it is opened, `paying` before the caller gets the token, `report` before it is
 * closed.
 */
export function createPreauthorize(transport: Transport, callerStore: CallStore) {
  const store = reportFailures(callerStore)
  const entryName = (key: string, part: Part) => `${key} ${part} ${transport.baseUrl}`
  const forget = async (key: string) => {
    for (const part of PARTS) await store.remove(entryName(key, part))
  }
  const report = (key: string, close: Close) => store.create(entryName(key, 'report'), JSON.stringify(close))

  const preauthorize = async <T>(
    request: PreauthRequest,
    pay: (token: string, preauth: OpenPreauth) => Promise<T>,
    { idempotencyKey: key = crypto.randomUUID(), deadlineMs = PATIENCE_MS, signal }: CallOptions = {},
  ): Promise<PreauthResult<T>> => {
    await store.create(entryName(key, 'preauth'), JSON.stringify(request))
    const created = await open(request, key, Date.now() + deadlineMs, signal).catch(async (error: unknown) => {
      if (error instanceof CountersignError) error.idempotencyKey ??= key
      if (error instanceof GovernanceRefused) await forget(key)
      throw error
    })
    await store.create(entryName(key, 'paying'), created.preauth_id)
    const preauth: OpenPreauth = {
      ...created,
      settled: async (payment = {}) => void (await report(key, { outcome: 'settled', ...payment })),
      voided: async () => void (await report(key, { outcome: 'voided' })),
    }
    let result: T
    try {
      result = await pay(created.token, preauth)
    } catch (error) {
      // What was reported before stands: a payment that was made is not undone by a later error.
      await close(key, created.preauth_id, { outcome: 'failed' }).catch(() => undefined)
      throw error
    }
    return { result, closed: await close(key, created.preauth_id, { outcome: 'settled' }) }
  }

  const open = async (
    request: PreauthRequest,
    key: string,
    deadline: number,
    signal?: AbortSignal,
  ): Promise<PreauthCreated & { token: string }> => {
    const created = (await post('/api/pre-auth', { ...request }, key, deadline, signal)) as PreauthCreated
    if (created.token !== null) return { ...created, token: created.token }
    // The stored response has no token; one that was approved since has it in its record.
    const path = { id: created.preauth_id }
    const { token, status } = (await transport.request('get', '/api/pre-auth/{id}', { path, signal })) as Preauth
    if (typeof token === 'string') return { ...created, status: status as PreauthCreated['status'], token }
    const message = 'A person has to approve this pre-authorisation.'
    throw approvalNeeded(transport, 422, { ...created, message }, String(created.approval_id))
  }

  /** Closes with what was reported first, else with `fallback`. Null: a run that used the token has closed it. */
  const close = async (key: string, preauthId: string, fallback: Close): Promise<PreauthClosed | null> => {
    await report(key, fallback)
    const text = await store.read(entryName(key, 'report'))
    const body = { preauth_id: preauthId, ...((text ? JSON.parse(text) : fallback) as Close) }
    const closed = await post('/api/pre-auth/close', body, `${key}:close`, Date.now() + PATIENCE_MS).catch(
      async (error: unknown) => {
        if (error instanceof CountersignError && error.status === 409 && (await isClosed(preauthId))) return null
        throw error
      },
    )
    await forget(key)
    return closed as PreauthClosed | null
  }

  const isClosed = async (id: string): Promise<boolean> => {
    const { status } = (await transport.request('get', '/api/pre-auth/{id}', { path: { id } })) as Preauth
    return status === 'closed'
  }

  const post = async (
    path: string,
    body: Record<string, unknown>,
    key: string,
    untilMs: number,
    signal?: AbortSignal,
  ): Promise<unknown> => {
    for (let attempt = 1; ; attempt++) {
      const result = await transport
        .send('post', path, { body, headers: { 'idempotency-key': key }, signal })
        .catch((error: unknown) => {
          if (error instanceof CountersignError) return error
          throw error
        })
      const isError = result instanceof CountersignError
      const again = isError ? { reason: result.message, retryAfterMs: 0 } : findRetry(result, false)
      if (!isError && !again) {
        const content = isObject(result.body) ? result.body : {}
        if (result.status < 300) return content
        throw toRefusal(transport, result.status, content) ?? new CountersignError(result.status, content)
      }
      const delayMs = retryDelayMs(attempt, again?.retryAfterMs ?? 0)
      if (Date.now() + delayMs > untilMs)
        throw isError ? result : new CountersignError(result.status, isObject(result.body) ? result.body : {})
      await sleep(delayMs, signal)
    }
  }

  /** Closes what a process left open. Whether a payment that nobody reported was made is not known: that is an error. */
  const resume = async (signal?: AbortSignal): Promise<ResumedCall[]> => {
    const suffix = ` preauth ${transport.baseUrl}`
    const resumed: ResumedCall[] = []
    for (const name of (await store.names()).filter((entry) => entry.endsWith(suffix))) {
      signal?.throwIfAborted()
      const idempotencyKey = name.slice(0, -suffix.length)
      await closeLeftOpen(idempotencyKey, signal).then(
        (closed) => resumed.push({ kind: 'preauth', idempotencyKey, closed }),
        (error: unknown) => resumed.push({ kind: 'preauth', idempotencyKey, error }),
      )
    }
    return resumed
  }

  const closeLeftOpen = async (key: string, signal?: AbortSignal): Promise<PreauthClosed | null> => {
    const preauthId = await store.read(entryName(key, 'paying'))
    if (preauthId === undefined) {
      // Nobody got the token. Opened again with its key it is the same one, and nothing was paid with it.
      const request = JSON.parse((await store.read(entryName(key, 'preauth'))) ?? '{}') as PreauthRequest
      const { preauth_id } = await open(request, key, Date.now() + PATIENCE_MS, signal)
      return close(key, preauth_id, { outcome: 'voided' })
    }
    if ((await store.read(entryName(key, 'report'))) !== undefined) return close(key, preauthId, { outcome: 'failed' })
    if (await isClosed(preauthId)) {
      await forget(key)
      return null
    }
    const message = `It is not known whether the payment of ${preauthId} was made. Find out, then close it: POST /api/pre-auth/close.`
    throw new SettlementUnknown(0, { message, preauth_id: preauthId }, undefined)
  }

  return { preauthorize, resume }
}

const PARTS = ['paying', 'report', 'preauth'] as const
type Part = (typeof PARTS)[number]
