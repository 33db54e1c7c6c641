/**
 * `npm run test:soak -- old-folder`: a data folder that an earlier commit filled, opened by this one. Prints how long that
 * took, and fails unless everything in it is there and goes on: receipts, log, balances, holds, webhooks, open
 * pre-authorisations, answers of old payments and keys.
 *
 * Options: --from COMMIT, --runs N.
 */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { isDeepStrictEqual, parseArgs } from 'node:util'
import { verifyConsistency } from '@countersign/proof'
import pg from 'pg'
import { runLoad, startLoadGenerator } from '../../bench/support/load.ts'
import { checkOut } from '../../bench/support/old-checkout.ts'
import { createTenantWithWallet, walletRun } from '../../bench/support/wallet-load.ts'
import { waitForDrain } from '../../bench/support/writes.ts'
import { checkLedger } from '../failover/checks.ts'
import { findFreePort } from '../free-port.ts'
import { readChallenge, signPayment, spawnService, testEnv } from '../harness.ts'
import { openReceiver } from '../webhooks/receiver.ts'

const { values } = parseArgs({
  options: { from: { type: 'string', default: '0808496' }, runs: { type: 'string', default: '100000' } },
})
const RUNS = Number(values.runs)
const IN_FLIGHT = 64
const KEPT_ANSWERS = 20
const COMPARED_RECEIPTS = 100
/** The fourth attempt comes two minutes after the third. */
const DELIVERY_DEADLINE_MS = 240_000

type Service = Awaited<ReturnType<typeof spawnService>>
type Tenant = Awaited<ReturnType<Service['onboard']>>
type LogHead = { size: number; root: string }
type KeptCall = { headers: Record<string, string>; body: unknown; answer: string }

const startedAt = performance.now()
const seconds = (since: number) => ((performance.now() - since) / 1000).toFixed(1)
const say = (text: string) => console.log(`${seconds(startedAt).padStart(7)} s  ${text}`)
const faults: string[] = []
const expect = (isRight: boolean, fault: string) => {
  if (!isRight) faults.push(fault)
}

const checkout = checkOut(values.from)
if ('reason' in checkout) {
  console.error(`No earlier commit to start from: ${checkout.reason}.`)
  process.exit(2)
}
const dataDir = mkdtempSync(join(tmpdir(), 'countersign-old-folder-'))
// Both commits listen at the same address: it is the issuer of tokens.
const env = {
  ...testEnv,
  PORT: String(await findFreePort()),
  COUNTERSIGN_DATA_DIR: dataDir,
  PAYER_EXPOSURE_USDC: '1000000',
}
let receiverStatus = 500
const receiver = await openReceiver((_received, response) => response.writeHead(receiverStatus).end())
const generator = await startLoadGenerator()
let service: Service | undefined
try {
  service = await spawnService(env, checkout.root)
  const old = await fill(service)
  await drain()
  const before = await readFacts(service, old)
  say(
    `${values.from} has ${before.counts.runs} runs, a log of ${before.log.size} entries and ${before.folderMB} MB of tables`,
  )
  await service.stop()

  const openedAt = performance.now()
  service = await spawnService(env)
  say(`this commit listens ${seconds(openedAt)} s after its start, the migration included`)
  await drain()
  say(`its background work is done ${seconds(openedAt)} s after its start`)
  const after = await readFacts(service, old)
  compare('', before.facts, after.facts)
  expect(before.counts.runs === after.counts.runs, `${before.counts.runs} runs became ${after.counts.runs}`)
  const isSame = await isSameLog(service, before.log, after.log)
  expect(isSame, `the log had the root ${before.log.root} and does not extend it`)
  if (isSame)
    say(`the first ${before.log.size} of ${after.log.size} entries of the log have the same root: ${before.log.root}`)
  say(`${after.folderMB} MB of tables`)
  await goOn(service, old)
} catch (error) {
  faults.push(String((error as Error).stack ?? error), service?.output().slice(-3_000) ?? '')
} finally {
  for (const fault of faults) console.log(`FAULT ${fault}`)
  say(faults.length === 0 ? 'everything is there and goes on' : `${faults.length} faults`)
  await service?.stop('SIGTERM')
  generator.stop()
  await receiver.close()
  checkout.remove()
  rmSync(dataDir, { recursive: true, force: true })
}
process.exit(faults.length === 0 ? 0 : 1)

/** One tenant with many runs, and one with something of every kind that is not finished. */
async function fill(from: Service) {
  const payer = await from.payer(100_000)
  const busy = await createTenantWithWallet(from, payer, Math.ceil(RUNS / 50) + 10)
  const { port } = new URL(from.url)
  const requests = [walletRun(busy.headers, busy.walletId)]
  for (let sent = 0; sent < RUNS; sent += 10_000) {
    const count = Math.min(10_000, RUNS - sent)
    const { perSecond } = await load(Number(port), requests, count, sent)
    say(`${sent + count} runs, ${perSecond} a second`)
  }

  const tenant = await createTenantWithWallet(from, payer, 10)
  const seller = await post(from, '/api/wallets', { name: 'Seller' }, tenant.headers)
  const hook = { url: receiver.url, events: ['run.completed', 'preauth.closed'] }
  const webhook = await post(from, '/api/webhooks', hook, tenant.headers)
  const constraints = [{ type: 'payment.budget', currency: 'USDC', max: 2 }]
  const mandate = await post(from, '/api/mandates', { name: 'Maps', agent_id: 'fleet-7', constraints }, tenant.headers)

  const keyed: KeptCall[] = []
  const paid: KeptCall[] = []
  for (let n = 0; n < KEPT_ANSWERS; n += 1) {
    const body = { task: `Say ${n}.`, agent_id: 'comedian-v1', payment: { wallet_id: tenant.walletId } }
    keyed.push(await keep(from, body, { ...tenant.headers, 'idempotency-key': randomUUID() }))
    const bare = { task: `Say ${n} for money.`, agent_id: 'comedian-v1' }
    const challenge = readChallenge((await from.post('/api/run', bare)).headers)
    paid.push(await keep(from, bare, await signPayment(payer, challenge)))
  }
  const preauths: string[] = []
  for (let n = 1; n <= 3; n += 1) {
    const preauth = { agent_id: 'fleet-7', mandate_id: mandate.mandate_id, amount_usdc: n / 100 }
    const merchant = { id: 'maps.example', pay_to: `0x${'1'.repeat(40)}` }
    preauths.push((await post(from, '/api/pre-auth', { ...preauth, merchant }, tenant.headers)).preauth_id)
  }
  const escrows: string[] = []
  for (const amount of [0.2, 0.3]) {
    const escrow = { amount_usdc: amount, to_wallet_id: seller.wallet_id }
    escrows.push((await post(from, `/api/wallets/${tenant.walletId}/escrow`, escrow, tenant.headers)).escrow_id)
  }
  await waitUntil(() => receiver.received.length > 0, 60_000)
  const receiptIds = await query<{ id: string }>(`select id from receipts order by md5(id) limit ${COMPARED_RECEIPTS}`)
  return { busy, tenant, webhook, mandate, keyed, paid, preauths, escrows, payer, receiptIds }
}

type Old = Awaited<ReturnType<typeof fill>>

/** What callers can read of it, and what the operator can. */
async function readFacts(from: Service, { busy, tenant, webhook, mandate, preauths, escrows, receiptIds }: Old) {
  const read = async (path: string, { headers }: Tenant) => {
    const { status, body, text } = await from.get(path, headers)
    if (status !== 200) throw new Error(`GET ${path} returned ${status}: ${text}`)
    return body
  }
  const readAll = (paths: string[], of: Tenant) =>
    Promise.all(paths.map(async (path) => [path, await read(path, of)] as const)).then(Object.fromEntries)
  const checkpoint = (await from.get('/api/log/checkpoint')).text
  const [, size, root] = checkpoint.split('\n')
  const [counts] = await query<{ runs: string; folder: string }>(
    `select (select count(*) from runs)::text as runs, pg_database_size(current_database())::text as folder`,
  )
  return {
    log: { size: Number(size), root: root! },
    counts: { runs: Number(counts!.runs) },
    folderMB: Math.round(Number(counts!.folder) / 1e6),
    facts: {
      ...(await readAll([`/api/wallets/${busy.walletId}`], busy)),
      ...(await readAll(
        [
          `/api/wallets/${tenant.walletId}`,
          `/api/mandates/${mandate.mandate_id}`,
          ...preauths.map((id) => `/api/pre-auth/${id}`),
          ...escrows.map((id) => `/api/escrow/${id}`),
        ],
        tenant,
      )),
      deliveries: await readDeliveries(from, tenant, webhook.id),
      budgets: await read('/api/budgets', busy),
      receipts: await readReceipts(from, receiptIds),
    },
  }
}

/** Everything that was open is finished now, what was answered is answered the same, and new work is done. */
async function goOn(to: Service, { tenant, busy, keyed, paid, preauths, escrows, payer }: Old) {
  const spent = await to.balance(payer.address)
  for (const { headers, body, answer } of [...keyed, ...paid]) {
    const again = await to.post('/api/run', body, headers)
    expect(
      again.status === 200 && again.text === answer,
      `an old answer is ${again.status} ${again.text.slice(0, 200)}`,
    )
  }
  expect((await to.balance(payer.address)) === spent, 'an old payment was charged again')
  for (const id of preauths) {
    const close = { preauth_id: id, outcome: 'settled', actual_amount_usdc: 0.01 }
    const { status, text } = await to.post('/api/pre-auth/close', close, tenant.headers)
    expect(status === 200, `the pre-authorisation ${id} could not be closed: ${status} ${text}`)
  }
  for (const [id, act] of [
    [escrows[0], 'release'],
    [escrows[1], 'dispute'],
  ]) {
    const { status, text } = await to.post(`/api/escrow/${id}/${act}`, { reason: 'Late' }, tenant.headers)
    expect(status === 200, `the escrow ${id} could not ${act}: ${status} ${text}`)
  }
  receiverStatus = 200
  receiver.received.length = 0
  const delivered = () =>
    new Set(receiver.received.filter(({ json }) => json.type === 'run.completed').map(({ json }) => json.seq)).size
  await waitUntil(() => delivered() >= KEPT_ANSWERS, DELIVERY_DEADLINE_MS)
  expect(delivered() >= KEPT_ANSWERS, `${delivered()} of ${KEPT_ANSWERS} events were delivered`)
  const { port } = new URL(to.url)
  const { perSecond } = await load(Number(port), [walletRun(busy.headers, busy.walletId)], 1_000, RUNS)
  say(`1,000 more runs, ${perSecond} a second`)
  const sample = keyed.concat(paid).map(({ answer }) => JSON.parse(answer).receipt)
  for (const receipt of sample) {
    const { body } = await to.post('/api/receipts/verify', { receipt })
    expect(body.ok === true, `a receipt is not verified: ${JSON.stringify(body).slice(0, 300)}`)
  }
  await drain()
  // Runs from before the upgrade are added up one by one, until the sums by the hour begin.
  for (const { headers, tenantId } of [busy, tenant]) {
    const { body: report } = await to.get('/api/spend?group_by=spender', headers)
    const [meter] = await query<{ amount: string; count: string }>(
      'select sum(amount_micro)::text as amount, count(amount_micro)::text as count from spend_entries where tenant_id = $1',
      [tenantId],
    )
    const isSame = report.totals?.amount === meter!.amount && String(report.totals.count) === meter!.count
    expect(isSame, `spend is ${JSON.stringify(report.totals)} instead of ${JSON.stringify(meter)}`)
  }
  const databaseUrl = `postgres://postgres@localhost/countersign?host=${encodeURIComponent(socketFolder())}`
  const differences = await checkLedger({ ...process.env, ...env, DATABASE_URL: databaseUrl } as Record<string, string>)
  faults.push(...differences.map((difference) => `ledger-check: ${difference}`))
}

/** The place in the log is proved by the receipt's verification: the log grows meanwhile, by what is measured every minute. */
async function readReceipts(from: Service, ids: { id: string }[]) {
  const receipts: Record<string, unknown> = {}
  for (const { id } of ids) {
    const { body, text } = await from.get(`/api/receipts/${id}`)
    if (body?.log === undefined) throw new Error(`The receipt ${id} is not in the log: ${text}`)
    const { log: _, ...receipt } = body
    receipts[id] = receipt
    const { body: verification } = await from.post('/api/receipts/verify', { receipt: body })
    expect(verification.ok === true, `${id} is not verified: ${JSON.stringify(verification).slice(0, 300)}`)
  }
  return receipts
}

async function isSameLog(at: Service, before: LogHead, after: LogHead) {
  const { body } = await at.get(`/api/log/consistency?from=${before.size}&to=${after.size}`)
  const heads = { oldSize: before.size, oldRoot: before.root, newSize: after.size, newRoot: after.root }
  return verifyConsistency({ ...heads, proof: body.proof })
}

/** Attempts go on meanwhile, so only what they do not change. */
async function readDeliveries(from: Service, { headers }: Tenant, webhookId: string) {
  const { body } = await from.get(`/api/webhooks/${webhookId}/deliveries?limit=100`, headers)
  return body.deliveries.map(({ id, event_id, type, seq, state }: Record<string, unknown>) => ({
    id,
    event_id,
    type,
    seq,
    state,
  }))
}

async function post(from: Service, path: string, body: unknown, headers: Record<string, string>) {
  const { status, body: answer, text } = await from.post(path, body, headers)
  if (status !== 200 && status !== 201) throw new Error(`POST ${path} returned ${status}: ${text}`)
  return answer
}

async function keep(from: Service, body: unknown, headers: Record<string, string>): Promise<KeptCall> {
  const { status, text } = await from.post('/api/run', body, headers)
  if (status !== 200) throw new Error(`The run returned ${status}: ${text}`)
  return { headers, body, answer: text }
}

async function load(port: number, requests: ReturnType<typeof walletRun>[], count: number, firstNumber: number) {
  const result = await runLoad(generator, { port, inFlight: IN_FLIGHT, requests, count, firstNumber })
  return { perSecond: Math.round(result.responses / result.seconds) }
}

/** Whatever the old answer says, the new one says too; it may say more. */
function compare(path: string, before: unknown, after: unknown) {
  if (typeof before !== 'object' || before === null || Array.isArray(before) !== Array.isArray(after)) {
    expect(isDeepStrictEqual(before, after), `${path} was ${JSON.stringify(before)} and is ${JSON.stringify(after)}`)
    return
  }
  for (const [name, value] of Object.entries(before))
    compare(`${path}.${name}`, value, (after as Record<string, unknown> | undefined)?.[name])
}

async function waitUntil(isDone: () => boolean, deadlineMs: number) {
  const end = performance.now() + deadlineMs
  while (!isDone() && performance.now() < end) await pause(200)
}

function socketFolder() {
  return readFileSync(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8').split('\n')[4]!
}

async function query<Row extends pg.QueryResultRow>(text: string, parameters: unknown[] = []): Promise<Row[]> {
  const client = new pg.Client({ host: socketFolder(), port: 5432, user: 'postgres', database: 'countersign' })
  await client.connect()
  try {
    return (await client.query<Row>(text, parameters)).rows
  } finally {
    await client.end()
  }
}

async function drain() {
  await waitForDrain(query)
}
