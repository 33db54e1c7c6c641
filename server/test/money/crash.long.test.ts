import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startEmbeddedPostgres } from '../../src/adapters/postgres/embedded.ts'
import { runSteps } from '../../src/modules/runs/paid-unit.ts'
import { clients, hostEnv, type Payer, readChallenge, signPayment, silent, testEnv } from '../harness.ts'

/**
 * `kill -9` of the service or its database at every step of a run, while other requests are at other steps: runs and
 * loops paid by x402, runs paid from a wallet, also in escrow, and top-ups. Clients repeat their request until it is
 * answered. Then chain, ledger, receipts, runs and wallets must agree to the last unit.
 */
const root = resolve(import.meta.dirname, '../../..')
const dataDir = mkdtempSync(join(tmpdir(), 'countersign-money-crash-'))
const env = {
  ...hostEnv,
  ...testEnv,
  COUNTERSIGN_DATA_DIR: dataDir,
}
/** The kill is at the fourth request that reaches a step, so that others are before and after it; payments are mined together. */
const hitNumber = (at: string) => (at === 'mined' ? 1 : 4)
const points = [...runSteps, 'mined']

type Running = ReturnType<typeof clients> & { child: ChildProcess; url: string }
let running: Running | undefined

async function startCrashingService(): Promise<Running> {
  const child = spawn(process.execPath, ['server/test/money/crashing-service.ts'], {
    cwd: root,
    env,
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  let output = ''
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout!.on('data', (text) => {
      output += text
      const match = /listens on (http:\/\/\S+)/.exec(output)
      if (match) resolve(match[1]!)
    })
    child.once('exit', (code, signal) =>
      reject(new Error(`The service ended (${signal ?? code}) before it listened: ${output}`)),
    )
  })
  return { child, url, ...clients(url) }
}

let payers: Payer[]
let tenant: { headers: Record<string, string>; walletId: string }

beforeAll(async () => {
  running = await startCrashingService()
  payers = await Promise.all(Array.from({ length: 8 }, () => running!.payer(50)))
  const { headers } = await running.onboard()
  const { body: wallet } = await running.post('/api/wallets', {}, headers)
  tenant = { headers, walletId: wallet.wallet_id }
  const path = `/api/wallets/${wallet.wallet_id}/topup`
  const payment = await signPayment(
    payers[0]!,
    readChallenge((await running.post(path, { amount_usdc: 5 }, headers)).headers),
  )
  expect((await running.post(path, { amount_usdc: 5 }, { ...headers, ...payment })).status).toBe(200)
})

/** Stops the service, by force if necessary, and never leaves the database running. */
afterAll(async () => {
  const { child } = running!
  if (child.exitCode === null && child.signalCode === null) {
    const exited = once(child, 'exit')
    child.kill('SIGTERM')
    await Promise.race([exited, pause(15_000)])
    child.kill('SIGKILL')
    await exited
  }
  const postgres = await startEmbeddedPostgres({ dataDir, log: silent })
  await postgres.stop()
  rmSync(dataDir, { recursive: true, force: true })
})

type Request = { kind: string; path: string; body: unknown; headers: Record<string, string> }

/** Twelve requests, each of which can be repeated. */
async function prepare(label: string): Promise<Request[]> {
  const { post } = running!
  const createPaidRequest = async (
    kind: string,
    path: string,
    body: unknown,
    payer: Payer,
    headers: Record<string, string> = {},
  ): Promise<Request> => {
    const challenge = await post(path, body, headers)
    return {
      kind,
      path,
      body,
      headers: { ...headers, ...(await signPayment(payer, readChallenge(challenge.headers))) },
    }
  }
  const createWalletRequest = (n: number, escrow: boolean): Request => ({
    kind: escrow ? 'escrow' : 'wallet',
    path: '/api/run',
    body: {
      task: `Wallet ${n} at ${label}.`,
      agent_id: 'comedian-v1',
      payment: { wallet_id: tenant.walletId, escrow },
    },
    headers: { ...tenant.headers, 'idempotency-key': `${label}-${n}` },
  })
  const topUp = `/api/wallets/${tenant.walletId}/topup`
  return [
    ...(await Promise.all(
      payers
        .slice(0, 6)
        .map((payer, n) =>
          createPaidRequest('x402', '/api/run', { task: `Run ${n} at ${label}.`, agent_id: 'comedian-v1' }, payer),
        ),
    )),
    await createPaidRequest('loop', '/api/loop', { input: `Loop at ${label}.` }, payers[6]!),
    await createPaidRequest('topup', topUp, { amount: '40000' }, payers[7]!, tenant.headers),
    createWalletRequest(1, false),
    createWalletRequest(2, false),
    createWalletRequest(3, true),
    createWalletRequest(4, true),
  ]
}

const summary: Record<string, Record<string, string>> = {}
const DEAD = Symbol('dead')

/** Repeats the request until the response is final. Returns DEAD when the service has died; the caller restarts it. */
async function sendUntilFinal(request: Request): Promise<string | typeof DEAD> {
  for (let attempt = 0; attempt < 150; attempt++) {
    const response = await running!.post(request.path, request.body, request.headers).catch(() => undefined)
    if (!response) return DEAD
    if (response.status === 200) return response.text
    if (response.status === 500 && response.body?.charged === false) return response.text
    // A 402 would make a client that has paid pay again.
    expect([409, 503], `${request.kind}: ${response.text}`).toContain(response.status)
    await pause(200)
  }
  throw new Error(`No final response to ${request.kind} ${JSON.stringify(request.body)}`)
}

for (const victim of ['server', 'postgres'] as const)
  for (const at of points)
    test(`the ${victim} is killed at the step ${at}`, async () => {
      const label = `${victim}-${at}`
      const requests = await prepare(label)
      const child = running!.child
      const armedMessage = once(child, 'message')
      child.send({ at, hit: hitNumber(at), victim })
      expect((await armedMessage)[0]).toEqual({ armed: true })
      const deathMessage = new Promise<unknown>((resume) => {
        child.once('message', resume)
      })
      const exited = victim === 'server' ? once(child, 'exit') : undefined
      const firstResponses = await Promise.all(requests.map(sendUntilFinal))
      expect(await deathMessage).toEqual({ died: victim, at })
      if (exited) expect((await exited)[1]).toBe('SIGKILL')
      // The service may exit when its database dies; the summary table shows whether it did.
      const hasExited = child.exitCode !== null || child.signalCode !== null
      if (hasExited) running = await startCrashingService()
      const finalResponses = await Promise.all(requests.map(sendUntilFinal))
      // A response that was final before the crash does not change.
      firstResponses.forEach((text, index) => {
        if (text !== DEAD) expect(finalResponses[index]).toBe(text)
      })
      const outcomes = finalResponses.map((text) => (JSON.parse(text as string).charged === false ? 'failed' : 'done'))
      summary[label] = {
        'answered before': String(firstResponses.filter((text) => text !== DEAD).length),
        done: String(outcomes.filter((outcome) => outcome === 'done').length),
        'service died': hasExited ? 'yes' : 'no',
        'failed, not charged': String(outcomes.filter((outcome) => outcome === 'failed').length),
      }
    }, 120_000)

test('after all crashes chain, ledger, receipts, runs and wallets agree to the last unit', async () => {
  console.table(summary)
  const check = spawn(process.execPath, ['server/src/main.ts', 'ledger-check', '--json'], { cwd: root, env })
  let output = ''
  check.stdout.on('data', (text) => (output += text))
  check.stderr.on('data', (text) => (output += text))
  const [code] = await once(check, 'close')
  expect(code, output).toBe(0)
  const { checks } = JSON.parse(output)
  console.table(
    Object.fromEntries(checks.map((entry: { name: string; examined: number }) => [entry.name, entry.examined])),
  )
  const { body: wallet } = await running!.get(`/api/wallets/${tenant.walletId}`, tenant.headers)
  expect(wallet.balance).toMatchObject({ pending: '0', reserved: '0', escrowed: '0' })
  const { body: ledger } = await running!.get('/api/ledger', tenant.headers)
  expect(ledger.invariants).toEqual({ balanced: true, wallets_match: true })
  expect(ledger.entries.filter((entry: { status: string }) => entry.status === 'pending')).toEqual([])
})
