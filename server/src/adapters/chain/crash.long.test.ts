import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { afterAll, expect, test } from 'vitest'
import { PAY_TO } from '../../../test/contract/payments.ts'
import { createBench } from '../../../test/postgres/helpers.ts'
import type { Hex } from '../../modules/payments/facilitator.ts'
import { systemClock } from '../../platform/clock.ts'
import { createChainReader } from './chain-reader.ts'
import { USDC } from './edr.ts'
import { createEmbeddedChain } from './embedded-chain.ts'
import { createPostgresJournal } from './journal.ts'

const PROCESS = fileURLToPath(new URL('../../../test/contract/settling-process.ts', import.meta.url))
const CRASHES = 12
const PRICE = 10_000n

type Told = { payer: Hex; nonce: Hex; transaction: Hex }

const bench = createBench()
afterAll(async () => bench.clear())

/** Lets a process settle until it has told of `enough` payments and a little longer, and kills it in the middle of that. */
async function settleAndKill(connection: object, enough: number, longerMs: number): Promise<Told[]> {
  const child = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', PROCESS, JSON.stringify(connection)],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  const told: Told[] = []
  const closed = once(child, 'close')
  const ready = new Promise<void>((resolve) => {
    createInterface(child.stdout).on('line', (line) => {
      try {
        told.push(JSON.parse(line) as Told)
      } catch {
        // The last line may be cut in two by the kill: then nobody was told.
      }
      if (told.length >= enough) resolve()
    })
  })
  await Promise.race([ready, closed])
  await new Promise((resolve) => setTimeout(resolve, longerMs))
  child.kill('SIGKILL')
  await closed
  return told
}

test('whoever was told that a payment is settled finds it on the chain after any number of crashes, once', async () => {
  const { connection } = await bench.start({ dataDir: join(bench.makeFolder(), 'data') })
  const pool = new pg.Pool({ ...connection, max: 2 })
  pool.on('error', () => undefined)
  await pool.query(readFileSync(new URL('../../../migrations/0002_chain.sql', import.meta.url), 'utf8'))
  const told: Told[] = []
  for (let crash = 0; crash < CRASHES; crash++) {
    const some = await settleAndKill(connection, 20, Math.random() * 100)
    expect(some.length).toBeGreaterThan(0)
    told.push(...some)
  }

  const chain = await createEmbeddedChain({
    journal: createPostgresJournal(pool),
    clock: systemClock,
    log: { info() {}, warn() {} },
  })
  const reader = createChainReader(chain)
  for (const { payer, nonce, transaction } of told) {
    expect(await reader.authorization(USDC, payer, nonce)).toMatchObject({
      used: true,
      transaction,
      transfer: { to: PAY_TO, value: PRICE },
    })
  }
  const count = async (query: string) => BigInt((await pool.query(query)).rows[0].count)
  const used = await count('select count(*) from chain_authorizations')
  expect(used).toBeGreaterThanOrEqual(BigInt(told.length))
  // Every used nonce moved the price once, and no money came from nowhere.
  expect(await reader.balanceOf(USDC, PAY_TO)).toBe(used * PRICE)
  expect(await count('select sum(amount) as count from chain_balances')).toBe(
    await count('select supply as count from chain_head'),
  )
  const { rows } = await pool.query<{ owner: Hex; amount: string }>('select owner, amount::text from chain_balances')
  for (const { owner, amount } of rows) expect(await reader.balanceOf(USDC, owner)).toBe(BigInt(amount))
  await chain.close()
  await pool.end()
})
