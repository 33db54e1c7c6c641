import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { runSteps } from '../../src/modules/runs/run.ts'
import { readChallenge, signPayment, spawnService } from '../harness.ts'

/** `kill -9` after every step of a run, on the real embedded database with fsync on, then a restart: nothing may be lost. */
const dataDir = mkdtempSync(join(tmpdir(), 'countersign-crash-'))
afterAll(() => rmSync(dataDir, { recursive: true, force: true }))

// `complete` is after COMMIT and before the answer; `mined` is after mining and before we read it.
const points = [...runSteps.slice(0, -2), 'mined', ...runSteps.slice(-2)]
const seen: Record<string, string> = {}

async function until<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  for (let tries = 0; tries < 150; tries++) {
    const found = await look()
    if (found !== undefined) return found
    await new Promise((resume) => setTimeout(resume, 100))
  }
  throw new Error(`Waited in vain for ${what}.`)
}

for (const point of points) {
  test(`killed after ${point}, the payment ends in its 200 or in charged: false`, async () => {
    const crashing = await spawnService({ COUNTERSIGN_DATA_DIR: dataDir, COUNTERSIGN_CRASH_AT: point })
    const payer = await crashing.payer(1)
    const body = { task: `Say something after ${point}.`, agent_id: 'comedian-v1' }
    let challenge = await crashing.post('/api/run', body).catch(() => undefined)
    if (challenge === undefined) {
      // The steps before payment kill the very first call; the challenge then comes from a healthy process.
      expect(await crashing.exited).toBe('SIGKILL')
    }
    const healthyFirst = challenge === undefined ? await spawnService({ COUNTERSIGN_DATA_DIR: dataDir }) : undefined
    challenge ??= await healthyFirst!.post('/api/run', body)
    const header = await signPayment(payer, readChallenge(challenge.headers))
    if (!healthyFirst) {
      await expect(crashing.post('/api/run', body, header)).rejects.toThrow()
      expect(await crashing.exited).toBe('SIGKILL')
    }

    const restarted = healthyFirst ?? (await spawnService({ COUNTERSIGN_DATA_DIR: dataDir }))
    const answer = await until('the answer', async () => {
      const again = await restarted.post('/api/run', body, header)
      expect([200, 409, 500, 503], again.text).toContain(again.status)
      return again.status === 200 || again.status === 500 ? again : undefined
    })
    const balance = await restarted.balance(payer.address)
    if (answer.status === 200) {
      expect(balance).toBe(990_000n)
      const receipt = await restarted.get(answer.body.receipt_url)
      expect(receipt.body).toMatchObject({
        kind: 'run',
        charged: true,
        settlement: { transaction: answer.body.settlement.transaction },
      })
    } else {
      expect(answer.body).toMatchObject({ charged: false, status: 'failed' })
      expect(balance).toBe(1_000_000n)
      const receipts = await restarted.get(`/api/receipts?run_id=${answer.body.run_id}`)
      expect(receipts.body.receipts).toMatchObject([{ kind: 'failure', charged: false }])
    }
    const repeated = await restarted.post('/api/run', body, header)
    expect(repeated.text).toBe(answer.text)
    seen[point] = answer.status === 200 ? 'completed, charged once' : 'failed, not charged'
    expect(await restarted.stop()).toBe(0)
  })
}

test('after all of it chain, ledger, settlements, runs and receipts agree', async () => {
  const service = await spawnService({ COUNTERSIGN_DATA_DIR: dataDir })
  const { startEmbeddedPostgres } = await import('../../src/adapters/postgres/embedded.ts')
  const { silent } = await import('../harness.ts')
  const { openDatabase } = await import('../../src/platform/db.ts')
  const postgres = await startEmbeddedPostgres({ dataDir, log: silent })
  const { pool, close } = openDatabase(postgres.connection, { max: 1, log: silent })
  const one = async (text: string) => Object.values((await pool.query(text)).rows[0])[0]
  const payee = String(await one('select pay_to from settlements limit 1'))
  const onChain = await service.balance(payee)
  expect(await one(`select coalesce(sum(amount_micro), 0)::bigint from settlements where state = 'settled'`)).toBe(
    onChain,
  )
  expect(
    await one(
      `select coalesce(sum(amount_micro), 0)::bigint from ledger_entries where account = 'assets:chain:usdc' and layer = 'posted'`,
    ),
  ).toBe(onChain)
  expect(await one(`select coalesce(sum(amount_micro), 0)::bigint from ledger_entries where layer = 'pending'`)).toBe(
    0n,
  )
  expect(await one(`select coalesce(sum(amount_micro), 0)::bigint from ledger_entries`)).toBe(0n)
  const settled = await one(`select count(*) from settlements where state = 'settled'`)
  expect(await one(`select count(*) from runs where state = 'completed'`)).toBe(settled)
  expect(await one(`select count(*) from receipts where kind = 'run'`)).toBe(settled)
  expect(await one(`select count(*) from runs where state not in ('completed', 'failed')`)).toBe(0n)
  expect(await one(`select coalesce(sum(reserved_micro), 0)::bigint from limits`)).toBe(0n)
  expect(await one(`select count(*) from holds where state = 'open'`)).toBe(0n)
  await close()
  await postgres.stop()
  expect(await service.stop()).toBe(0)
  console.table(seen)
})
