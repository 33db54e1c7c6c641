import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { createTestDatabase, spawnService } from '../../server/test/harness.ts'
import {
  createClient,
  createDevelopmentAccount,
  type PayingAccount,
  type PaymentEvent,
  RunFailed,
  type RunResult,
} from '../src/client.ts'
import { fileStore } from '../src/file-store.ts'
import { type Fault, type FaultProxy, startFaultProxy } from './fault-proxy.ts'
import { PRICE } from './paying-world.ts'

/**
 * The client against a real service in a process of its own behind a proxy that loses its answers. `SDK_FAULT_RUNS` runs
 * of each kind; every payment is counted on the chain. A soak runs 200 of each, the slow ones at 30 seconds.
 */
const RUNS = Number(process.env.SDK_FAULT_RUNS ?? 20)
const SLOW_MS = Number(process.env.SDK_FAULT_SLOW_MS ?? 3_000)
const CONCURRENCY = 10
/** A service takes half a minute to start on a busy machine, and is soon ended again. */
const DEADLINE_MS = 900_000
/** The service is ended at every so many runs. */
const RESTART_EVERY = 8

type Service = Awaited<ReturnType<typeof spawnService>>
type TestDatabase = Awaited<ReturnType<typeof createTestDatabase>>

let database: TestDatabase
let service: Service
let proxy: FaultProxy
const folder = mkdtempSync(join(tmpdir(), 'countersign-faults-'))

const startProcess = () => spawnService({ DATABASE_URL: database.url, COUNTERSIGN_DATA_DIR: join(folder, 'data') })

beforeAll(async () => {
  database = await createTestDatabase()
  service = await startProcess()
  proxy = await startFaultProxy(service.url)
})
afterAll(async () => {
  await proxy?.close()
  await service?.stop()
  await database?.drop()
  rmSync(folder, { recursive: true, force: true })
})

/** Makes the runs, a few at a time, each by a client of its own as after a restart, all with one payer and one folder. */
async function makeRuns(name: string, timeoutMs: number, chooseFault: (attempt: number, key: string) => Fault) {
  const account = await createDevelopmentAccount()
  const funds = BigInt(RUNS) * PRICE * 3n
  await service.post('/api/dev/faucet', { address: account.address, amount_usdc: Number(funds) / 1_000_000 })
  let signatures = 0
  const counting: PayingAccount = {
    address: account.address,
    signTypedData: (message) => {
      signatures += 1
      return account.signTypedData(message)
    },
  }
  const { body: jwks } = await service.get('/.well-known/jwks.json')
  const attempts = new Map<string, number>()
  proxy.setFault(({ paid, headers }) => {
    if (!paid) return 'none'
    const key = String(headers['idempotency-key'])
    attempts.set(key, (attempts.get(key) ?? 0) + 1)
    return chooseFault(attempts.get(key)!, key)
  })
  const lastPayments = new Map<string, Date>()
  let replaced = 0
  let replacedEarly = 0
  const notePayment = ({ idempotencyKey, validBefore }: PaymentEvent) => {
    const last = lastPayments.get(idempotencyKey)
    lastPayments.set(idempotencyKey, validBefore)
    if (!last) return
    replaced += 1
    if (last.getTime() > Date.now()) replacedEarly += 1
  }
  const store = fileStore(join(folder, name))
  const runIds = new Set<string>()
  let verified = 0
  let interrupted = 0
  let next = 0
  const startedAt = Date.now()
  const makeSome = async () => {
    for (let index = next++; index < RUNS; index = next++) {
      const client = createClient({
        baseUrl: proxy.url,
        account: counting,
        allowDevelopmentChain: true,
        store,
        timeoutMs,
        verify: { jwks },
        hooks: { onPayment: notePayment },
      })
      const request = { task: `Say hello, number ${index}.`, agent_id: 'comedian-v1' }
      // Work that a killed process left undone is answered with "not charged"; the call is then made anew.
      const makeRun = (idempotencyKey: string): Promise<RunResult> =>
        client.run(request, { idempotencyKey, deadlineMs: DEADLINE_MS }).catch((error: unknown) => {
          if (!(error instanceof RunFailed) || error.run.charged !== false) throw error
          interrupted += 1
          return makeRun(`${idempotencyKey}-again`)
        })
      const { run, receipt } = await makeRun(`${name}-${index}`)
      expect(run.status).toBe('completed')
      runIds.add(run.run_id)
      if (receipt.verified) verified += 1
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, makeSome))
  const spent = funds - (await readBalance(account.address))
  const sent = [...attempts.values()].reduce((sum, count) => sum + count, 0)
  console.log(
    `${name}: ${RUNS} runs, ${runIds.size} answers, ${verified} receipts verified, ${spent / PRICE} payments on the chain, ${signatures} signatures, ${sent} paid requests, ${interrupted} interrupted and not charged, ${replaced} replaced after they had expired, ${((Date.now() - startedAt) / 1000).toFixed(1)} s`,
  )
  expect({ answers: runIds.size, verified, spent, signatures, replacedEarly }).toEqual({
    answers: RUNS,
    verified: RUNS,
    spent: BigInt(RUNS) * PRICE,
    signatures: RUNS + interrupted + replaced,
    replacedEarly: 0,
  })
  expect(sent).toBeGreaterThan(RUNS)
  return { interrupted, replaced }
}

async function makeUninterruptedRuns(...values: Parameters<typeof makeRuns>) {
  expect(await makeRuns(...values)).toEqual({ interrupted: 0, replaced: 0 })
}

/** The service may just be starting again. */
const readBalance = (address: string): Promise<bigint> =>
  vi.waitFor(() => service.balance(address), { timeout: 30_000, interval: 200 })

const PATIENT_MS = 20_000
const LONG = { timeout: 3_600_000 }

test('a service that answers 503 after settling: no second payment, and every answer arrives', LONG, () =>
  makeUninterruptedRuns('answers-503', PATIENT_MS, (attempt) => (attempt <= 2 ? '503-after' : 'none')),
)

test(
  'a connection that drops before, during or after the answer: no second payment, and every answer arrives',
  LONG,
  () =>
    makeUninterruptedRuns(
      'drops',
      PATIENT_MS,
      (attempt) => (['drop-before', 'cut-after', 'drop-after'] as const)[attempt - 1] ?? 'none',
    ),
)

test('a service that takes longer than the client waits: no second payment, and every answer arrives', LONG, () => {
  const firstAt = new Map<string, number>()
  return makeUninterruptedRuns('slow', SLOW_MS / 3, (_, key) => {
    const since = Date.now() - (firstAt.get(key) ?? firstAt.set(key, Date.now()).get(key)!)
    return since < SLOW_MS ? { delayMs: SLOW_MS } : 'none'
  })
})

test(
  'a service that is ended and started again under way: no second payment, and every answer arrives',
  LONG,
  async () => {
    let runs = 0
    let nextRestart = RESTART_EVERY
    let restarts = 0
    let restart: Promise<void> | undefined
    const killAndStart = async () => {
      // Somewhere between the arrival of the request and its answer.
      await sleep(Math.random() * 60)
      await service.stop(restarts % 2 === 0 ? 'SIGKILL' : 'SIGTERM')
      service = await startProcess()
      proxy.setTarget(service.url)
      restarts += 1
      restart = undefined
    }
    await makeRuns('restarts', PATIENT_MS, (attempt) => {
      if (attempt === 1) runs += 1
      // While one restart is under way the next may come due; it follows then.
      if (runs >= nextRestart && !restart) {
        nextRestart += RESTART_EVERY
        restart = killAndStart()
      }
      return 'none'
    })
    await restart
    console.log(`restarts: the service was ended ${restarts} times, every second time by SIGKILL`)
    expect(restarts).toBeGreaterThan(1)
  },
)
