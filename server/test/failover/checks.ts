import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import type { Receiver } from '../webhooks/receiver.ts'
import type { Acknowledged, Http, Load } from './load.ts'
import type { Random } from './random.ts'

/** Work that others left is done after their leases have ended; what is open after this time is stuck. */
const SETTLE_DEADLINE_MS = 120_000
const RESENT_IN_A_ROUND = 8
const RESENT_AT_ONCE = 8
const VERIFIED_IN_A_ROUND = 4

type Options = {
  load: Load
  http: Http
  receiver: Receiver
  databaseUrl: string
  /** The environment of `ledger check`: that of the service. */
  env: Record<string, string>
  random: Random
  /** Nothing is waited for then. */
  isExpectedToFail?: boolean
}

const sum = (list: readonly Acknowledged[]) => list.reduce((total, { amountMicro }) => total + amountMicro, 0n)
const some = (list: readonly string[]) =>
  (list.length > 5 ? [...list.slice(0, 5), `and ${list.length - 5} more`] : [...list]).join(', ')

/** Everything that must hold when no call is under way. Returns what does not. */
export async function checkEverything(
  { load, http, receiver, databaseUrl, env, random, isExpectedToFail = false }: Options,
  { all = false } = {},
) {
  /** Polls until there are no faults, and returns those that stay. */
  const until = async (read: () => Promise<string[]>, deadlineMs = SETTLE_DEADLINE_MS): Promise<string[]> => {
    const end = performance.now() + (isExpectedToFail ? 5_000 : deadlineMs)
    for (;;) {
      const faults = await read().catch((error: Error) => [`could not be checked: ${error.message}`])
      if (faults.length === 0 || performance.now() > end) return faults
      await pause(500)
    }
  }
  const { acknowledged, tenant } = load
  const faults: string[] = []
  const query = async <Row extends pg.QueryResultRow>(text: string, values: unknown[] = []) => {
    const client = new pg.Client({ connectionString: databaseUrl, connectionTimeoutMillis: 5_000 })
    client.on('error', () => {})
    await client.connect()
    try {
      return (await client.query<Row>(text, values)).rows
    } finally {
      await client.end()
    }
  }
  const add = (name: string, list: readonly string[]) => faults.push(...list.map((fault) => `${name}: ${fault}`))

  add(
    'stuck',
    await until(async () => {
      const rows = await query<{ id: string; state: string }>('select id, state from open_runs')
      return rows.map(({ id, state }) => `run ${id} is ${state}`)
    }),
  )
  add(
    'stuck',
    await until(async () => {
      const rows = await query<{ state: string; number: string }>(
        `select state, count(*) as number from settlements where state in ('pending', 'unknown') group by 1`,
      )
      return rows.map(({ state, number }) => `${number} settlements are ${state}`)
    }),
  )

  // The same request again gets the same answer, and no second charge: balances are compared below.
  const resent = random.shuffle(acknowledged).slice(0, all ? acknowledged.length : RESENT_IN_A_ROUND)
  const resend = async () => {
    for (let next = resent.pop(); next; next = resent.pop()) {
      const { kind, runId, output, request } = next
      const { status, body } = await load.sendUntilFinal('/api/run', request.body, request.headers)
      if (status !== 200 || body.run_id !== runId || body.output !== output)
        faults.push(
          `sent again: the ${kind} run ${runId} was answered with ${status} ${body.run_id} ${body.message ?? ''}`,
        )
    }
  }
  await Promise.all(Array.from({ length: RESENT_AT_ONCE }, resend))

  add(
    'lost',
    await until(async () => {
      const ids = acknowledged.map(({ runId }) => runId)
      const rows = await query<{ id: string; state: string; receipts: string; logged: string }>(
        `select asked.id, runs.state,
           (select count(*) from receipts where receipts.run_id = asked.id and receipts.kind = 'run') as receipts,
           (select count(*) from receipts join log_entries on log_entries.receipt_id = receipts.id
            where receipts.run_id = asked.id and receipts.kind = 'run') as logged
         from unnest($1::text[]) as asked(id) left join runs on runs.id = asked.id`,
        [ids],
      )
      return rows.flatMap(({ id, state, receipts, logged }) => [
        ...(state === 'completed' ? [] : [`the acknowledged run ${id} is ${state ?? 'gone'}`]),
        ...(receipts === '1' ? [] : [`the acknowledged run ${id} has ${receipts} receipts`]),
        ...(logged === receipts ? [] : [`the receipt of ${id} is not in the log`]),
      ])
    }, 30_000),
  )

  add(
    'charged',
    await until(async () => {
      const wrong: string[] = []
      for (const address of load.funds.addresses) {
        const toppedUp = address === load.toppedUp.payer ? load.toppedUp.amountMicro : 0n
        const expected = load.funds.payerMicro - toppedUp - sum(acknowledged.filter(({ payer }) => payer === address))
        const balance = await http.balance(address)
        if (balance !== expected) wrong.push(`${address} has ${balance} on the chain and should have ${expected}`)
      }
      const fromWallet = sum(acknowledged.filter(({ kind }) => kind !== 'x402'))
      const expected: Record<string, Record<string, bigint>> = {
        [tenant.buyer]: {
          available: load.toppedUp.amountMicro - fromWallet - load.escrowedMicro(),
          reserved: 0n,
          pending: 0n,
          escrowed: 0n,
        },
        [tenant.seller]: { available: load.escrowedMicro(), reserved: 0n, pending: 0n, escrowed: 0n },
      }
      for (const [wallet, amounts] of Object.entries(expected)) {
        const { body } = await http.get(`/api/wallets/${wallet}`, tenant.headers)
        for (const [name, amount] of Object.entries(amounts))
          if (BigInt(body.balance[name]) !== amount)
            wrong.push(`${name} of the wallet ${wallet} is ${body.balance[name]} and should be ${amount}`)
      }
      return wrong
    }),
  )

  add('ledger check', await until(() => checkLedger(env), 60_000))

  add(
    'webhooks',
    await until(async () => {
      const delivered = new Set(
        receiver.received.flatMap(({ json }) =>
          json?.type === 'run.completed' ? [(json.data as { run_id: string }).run_id] : [],
        ),
      )
      const missing = acknowledged
        .filter(({ kind, runId }) => kind !== 'x402' && !delivered.has(runId))
        .map(({ runId }) => runId)
      const numbers = new Set(receiver.received.map(({ json }) => json.seq))
      const gaps = Array.from({ length: Math.max(0, ...numbers) }, (_, index) => index + 1).filter(
        (seq) => !numbers.has(seq),
      )
      return [
        ...(missing.length > 0 ? [`not delivered: ${some(missing)}`] : []),
        ...(gaps.length > 0 ? [`numbers never received: ${some(gaps.map(String))}`] : []),
      ]
    }, 180_000),
  )

  for (const { runId, receiptId } of random.shuffle(acknowledged).slice(0, all ? 50 : VERIFIED_IN_A_ROUND)) {
    const bad = await until(async () => {
      const { verified, checks } = await tenant.client.verifyReceipt(receiptId)
      return verified ? [] : [`${runId}: ${JSON.stringify(checks.filter(({ ok }) => ok === false))}`]
    }, 30_000)
    add('receipt', bad)
  }
  return faults
}

/** The differences that `ledger check` reports, or why it could not. */
export async function checkLedger(env: Record<string, string>): Promise<string[]> {
  const child = spawn(process.execPath, ['server/src/main.ts', 'ledger-check'], {
    cwd: resolve(import.meta.dirname, '../../..'),
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  child.stdout.on('data', (text) => (output += text))
  child.stderr.on('data', (text) => (output += text))
  const [code] = await once(child, 'close')
  return code === 0
    ? []
    : [
        output
          .split('\n')
          .filter((line) => !line.startsWith('ok'))
          .join('\n'),
      ]
}
