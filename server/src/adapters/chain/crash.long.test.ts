import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { afterAll, expect, test } from 'vitest'
import { PAY_TO } from '../../../test/contract/payments.ts'
import { createSandbox } from '../../../test/postgres/helpers.ts'
import type { Hex } from '../../modules/payments/facilitator.ts'
import { systemClock } from '../../platform/clock.ts'
import { createChainReader } from './chain-reader.ts'
import { USDC } from './edr.ts'
import { createEmbeddedChain } from './embedded-chain.ts'
import { createPostgresJournal } from './journal.ts'

const PROCESS = fileURLToPath(new URL('../../../test/contract/settling-process.ts', import.meta.url))
const CRASHES = 12
const PRICE = 10_000n

type ReportedPayment = { payer: Hex; nonce: Hex; transaction: Hex }

const sandbox = createSandbox()
afterAll(async () => sandbox.clear())

/** Lets a process settle until it has reported `minReported` payments and a little longer, then kills it. */
async function settleAndKill(connection: object, minReported: number, extraMs: number): Promise<ReportedPayment[]> {
  const child = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', PROCESS, JSON.stringify(connection)],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  const reported: ReportedPayment[] = []
  const closed = once(child, 'close')
  const ready = new Promise<void>((resolve) => {
    createInterface(child.stdout).on('line', (line) => {
      try {
        reported.push(JSON.parse(line) as ReportedPayment)
      } catch {
        // The kill may truncate the last line: that payment was not reported.
      }
      if (reported.length >= minReported) resolve()
    })
  })
  await Promise.race([ready, closed])
  await new Promise((resolve) => setTimeout(resolve, extraMs))
  child.kill('SIGKILL')
  await closed
  return reported
}

test('a payment that was reported as settled is on the chain, once, after any number of crashes', async () => {
  const { connection } = await sandbox.start({ dataDir: join(sandbox.makeFolder(), 'data') })
  const pool = new pg.Pool({ ...connection, max: 2 })
  pool.on('error', () => undefined)
  await pool.query(readFileSync(new URL('../../../migrations/0002_chain.sql', import.meta.url), 'utf8'))
  const reported: ReportedPayment[] = []
  for (let crash = 0; crash < CRASHES; crash++) {
    const reportedNow = await settleAndKill(connection, 20, Math.random() * 100)
    expect(reportedNow.length).toBeGreaterThan(0)
    reported.push(...reportedNow)
  }

  const chain = await createEmbeddedChain({
    journal: createPostgresJournal(pool),
    clock: systemClock,
    log: { info() {}, warn() {} },
  })
  const reader = createChainReader(chain)
  for (const { payer, nonce, transaction } of reported) {
    expect(await reader.authorization(USDC, payer, nonce)).toMatchObject({
      used: true,
      transaction,
      transfer: { to: PAY_TO, value: PRICE },
    })
  }
  const count = async (query: string) => BigInt((await pool.query(query)).rows[0].count)
  const usedCount = await count('select count(*) from chain_authorizations')
  expect(usedCount).toBeGreaterThanOrEqual(BigInt(reported.length))
  // Every used nonce moved the price once, and the balances add up to the supply.
  expect(await reader.balanceOf(USDC, PAY_TO)).toBe(usedCount * PRICE)
  expect(await count('select sum(amount) as count from chain_balances')).toBe(
    await count('select supply as count from chain_head'),
  )
  const { rows } = await pool.query<{ owner: Hex; amount: string }>('select owner, amount::text from chain_balances')
  for (const { owner, amount } of rows) expect(await reader.balanceOf(USDC, owner)).toBe(BigInt(amount))
  await chain.close()
  await pool.end()
})
