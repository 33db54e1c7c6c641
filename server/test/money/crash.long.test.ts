import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startEmbeddedPostgres } from '../../src/adapters/postgres/embedded.ts'
import { runSteps } from '../../src/modules/runs/run.ts'
import { clients, type Payer, readChallenge, signPayment, silent } from '../harness.ts'

/**
 * `kill -9` of the service and of its database at every step of a run, with others at other steps around it: runs and
 * loops paid by x402, runs paid from a wallet, in escrow too, and top-ups. Everybody sends the same again until it is
 * answered. Then chain, ledger, receipts, runs and wallets must agree to the last unit.
 */
const root = resolve(import.meta.dirname, '../../..')
const dataDir = mkdtempSync(join(tmpdir(), 'countersign-money-crash-'))
const env = {
  PATH: process.env.PATH,
  HOME: process.env.HOME,
  NODE_ENV: 'test',
  PORT: '0',
  LOG_LEVEL: 'silent',
  RATE_LIMIT_ANON_PER_MINUTE: '0',
  RATE_LIMIT_KEY_PER_MINUTE: '0',
  COUNTERSIGN_DATA_DIR: dataDir,
}
/** Not the first to come to a step: others shall be before and behind it. Payments are mined together, so that comes once. */
const hitOf = (at: string) => (at === 'mined' ? 1 : 4)
const points = [...runSteps, 'mined']

type Running = ReturnType<typeof clients> & { child: ChildProcess; url: string }
let running: Running | undefined

async function start(): Promise<Running> {
  const child = spawn(process.execPath, ['server/test/money/crashing-service.ts'], {
    cwd: root,
    env,
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  let said = ''
  const url = await new Promise<string>((found, failed) => {
    child.stdout!.on('data', (text) => {
      said += text
      const match = /listens on (http:\/\/\S+)/.exec(said)
      if (match) found(match[1]!)
    })
    child.once('exit', (code, signal) =>
      failed(new Error(`The service ended (${signal ?? code}) before it listened: ${said}`)),
    )
  })
  return { child, url, ...clients(url) }
}

let payers: Payer[]
let tenant: { headers: Record<string, string>; walletId: string }

beforeAll(async () => {
  running = await start()
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
}, 60_000)

/** In order if it can, and after a while by force; and never with the database left running. */
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
}, 60_000)

type Request = { what: string; path: string; body: unknown; headers: Record<string, string> }

/** Twelve requests, ready to be sent, each of which can be sent again and again. */
async function prepare(label: string): Promise<Request[]> {
  const { post } = running!
  const paid = async (
    what: string,
    path: string,
    body: unknown,
    payer: Payer,
    headers: Record<string, string> = {},
  ): Promise<Request> => {
    const asked = await post(path, body, headers)
    return { what, path, body, headers: { ...headers, ...(await signPayment(payer, readChallenge(asked.headers))) } }
  }
  const fromWallet = (n: number, escrow: boolean): Request => ({
    what: escrow ? 'escrow' : 'wallet',
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
        .map((payer, n) => paid('x402', '/api/run', { task: `Run ${n} at ${label}.`, agent_id: 'comedian-v1' }, payer)),
    )),
    await paid('loop', '/api/loop', { input: `Loop at ${label}.` }, payers[6]!),
    await paid('topup', topUp, { amount: '40000' }, payers[7]!, tenant.headers),
    fromWallet(1, false),
    fromWallet(2, false),
    fromWallet(3, true),
    fromWallet(4, true),
  ]
}

const seen: Record<string, Record<string, string>> = {}
const dead = Symbol('dead')

/** Sends until there is a final answer. A service that has died is somebody else's to start again. */
async function settle(request: Request): Promise<string | typeof dead> {
  for (let tries = 0; tries < 150; tries++) {
    const answer = await running!.post(request.path, request.body, request.headers).catch(() => undefined)
    if (!answer) return dead
    if (answer.status === 200) return answer.text
    if (answer.status === 500 && answer.body?.charged === false) return answer.text
    // 402 to somebody who has paid would make him pay again.
    expect([409, 500, 503], `${request.what}: ${answer.text}`).toContain(answer.status)
    await pause(200)
  }
  throw new Error(`No end to ${request.what} ${JSON.stringify(request.body)}`)
}

for (const victim of ['server', 'postgres'] as const)
  for (const at of points)
    test(`${victim} dies at ${at}`, async () => {
      const label = `${victim}-${at}`
      const requests = await prepare(label)
      const child = running!.child
      const armed = once(child, 'message')
      child.send({ at, hit: hitOf(at), victim })
      expect((await armed)[0]).toEqual({ armed: true })
      const died = new Promise<unknown>((resume) => {
        child.once('message', resume)
      })
      const exited = victim === 'server' ? once(child, 'exit') : undefined
      const first = await Promise.all(requests.map(settle))
      expect(await died).toEqual({ died: victim, at })
      if (exited) expect((await exited)[1]).toBe('SIGKILL')
      // A service that dies of its database's death has to be survived as well; the table below tells whether one did.
      const gone = child.exitCode !== null || child.signalCode !== null
      if (gone) running = await start()
      const last = await Promise.all(requests.map(settle))
      // What was answered before stays the answer.
      first.forEach((text, index) => {
        if (text !== dead) expect(last[index]).toBe(text)
      })
      const outcomes = last.map((text) => (JSON.parse(text as string).charged === false ? 'failed' : 'done'))
      seen[label] = {
        'answered before': String(first.filter((text) => text !== dead).length),
        done: String(outcomes.filter((one) => one === 'done').length),
        'service died': gone ? 'yes' : 'no',
        'failed, not charged': String(outcomes.filter((one) => one === 'failed').length),
      }
    }, 120_000)

test('after all of it chain, ledger, receipts, runs and wallets agree to the last unit', async () => {
  console.table(seen)
  const check = spawn(process.execPath, ['server/src/main.ts', 'ledger-check', '--json'], { cwd: root, env })
  let output = ''
  check.stdout.on('data', (text) => (output += text))
  check.stderr.on('data', (text) => (output += text))
  const [code] = await once(check, 'close')
  expect(code, output).toBe(0)
  const { checks } = JSON.parse(output)
  console.table(Object.fromEntries(checks.map((one: { name: string; examined: number }) => [one.name, one.examined])))
  const { body: wallet } = await running!.get(`/api/wallets/${tenant.walletId}`, tenant.headers)
  expect(wallet.balance).toMatchObject({ pending: '0', reserved: '0', escrowed: '0' })
  const { body: ledger } = await running!.get('/api/ledger', tenant.headers)
  expect(ledger.invariants).toEqual({ balanced: true, wallets_match: true })
  expect(ledger.entries.filter((entry: { status: string }) => entry.status === 'pending')).toEqual([])
})
