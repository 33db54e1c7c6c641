import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkBooks } from '../../src/modules/ledger/check-books.ts'
import type { Database } from '../../src/platform/db.ts'
import { createTestDatabase } from '../harness.ts'

let scratch: Awaited<ReturnType<typeof createTestDatabase>>
let database: Database
beforeAll(async () => {
  scratch = await createTestDatabase()
  database = scratch.open()
})
afterAll(async () => {
  await database.close()
  await scratch.drop()
})

const idOf = (number: number) => `ltx_${String(number).padStart(6, '0')}`

/** Transactions of two accounts; every fifth has the first one twice. */
async function post(numbers: readonly number[]) {
  for (const number of numbers) {
    const amount = number + 1
    const [accounts, amounts] =
      number % 5 === 0
        ? [
            ['assets:a', 'assets:a', 'liabilities:b'],
            [amount, 1, -amount - 1],
          ]
        : [
            ['assets:a', 'liabilities:b'],
            [amount, -amount],
          ]
    await database.pool.query(
      `insert into ledger (id, tenant_id, status, code, ref, asset, accounts, amounts, created_at)
       values ($1, 'ten_a', 'posted', 'run', $2, 'USDC', $3, $4, now())`,
      [idOf(number), `run_${number}`, accounts, amounts],
    )
  }
  await database.pool.query('select count_ledger($1)', [numbers.map(idOf)])
}

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => from + index)

test('of many transactions counted at once every 32nd entry has a snapshot, and late ones correct those after them', async () => {
  const late = [13, 40, 77, 130]
  await post(range(0, 10))
  await post(range(10, 300).filter((number) => !late.includes(number)))
  const { rows } = await database.pool.query<{ account: string; gap: string }>(`
    select account, max(entries - coalesce(before, 0)) as gap from (
      select account, entries, lag(entries) over (partition by account order by transaction_id) as before from (
        select snapshot.account, snapshot.transaction_id,
          (select count(*) from ledger cross join unnest(accounts) as entry(account) where entry.account = snapshot.account and id <= snapshot.transaction_id) as entries
        from ledger_snapshots snapshot
      ) placed
    ) gaps group by account order by account`)
  expect(rows.map(({ account }) => account)).toEqual(['assets:a', 'liabilities:b'])
  for (const { gap } of rows) expect(Number(gap)).toBeLessThanOrEqual(44)
  for (const number of late) await post([number])
  await post(range(300, 340).reverse())
  const balances = (await checkBooks(database.db)).find(({ name }) => name === 'balances')
  expect(balances).toMatchObject({ differences: [] })
  expect(Number(balances!.examined)).toBeGreaterThan(20)
})
