/**
 * Measures group commit: wallet-paid runs of one busy tenant under one budget, 64 in flight, once with up to 64 steps per
 * commit and once with one. Real PostgreSQL with fsync on. Run: node launch.mjs server/bench/group-commit.ts
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createService } from '../src/app.ts'
import { readConfig } from '../src/platform/config.ts'
import { createLog } from '../src/platform/log.ts'
import { clients } from '../test/harness.ts'

const RUNS = Number(process.env.BENCH_RUNS ?? 600)
const IN_FLIGHT = 64

async function measure(maxBatch: number): Promise<number> {
  const dataDir = mkdtempSync(join(tmpdir(), 'countersign-bench-'))
  const env = {
    NODE_ENV: 'test',
    PORT: '0',
    COUNTERSIGN_DATA_DIR: dataDir,
    RATE_LIMIT_ANON_PER_MINUTE: '0',
    RATE_LIMIT_KEY_PER_MINUTE: '0',
  }
  const service = await createService(readConfig(env), { log: createLog('silent'), maxBatch })
  try {
    const { post, payer, onboard } = clients(await service.listen())
    const tenant = await onboard()
    const { body: wallet } = await post('/api/wallets', {}, tenant.headers)
    const fundedPayer = await payer(1_000)
    const path = `/api/wallets/${wallet.wallet_id}/topup`
    const address = `${service.publicUrl()}${path}`
    const headers = { 'content-type': 'application/json', ...tenant.headers }
    for (let topUp = 0; topUp < 10; topUp++) {
      const response = await fundedPayer.fetch(address, {
        method: 'POST',
        headers,
        body: JSON.stringify({ amount_usdc: 0.9 }),
      })
      if (response.status !== 200) throw new Error(`The top-up returned ${response.status}: ${await response.text()}`)
    }
    await post(
      '/api/budgets',
      { scope: { type: 'tenant' }, window: 'total', limit_usdc: 1_000, on_breach: 'block' },
      tenant.headers,
    )
    const run = async (index: number) => {
      const body = { task: `Say ${index}.`, agent_id: 'comedian-v1', payment: { wallet_id: wallet.wallet_id } }
      const response = await post('/api/run', body, tenant.headers)
      if (response.status !== 200) throw new Error(`A run returned ${response.status}: ${response.text}`)
    }
    for (let index = 0; index < 20; index++) await run(-index)
    const startedAt = performance.now()
    let next = 0
    await Promise.all(
      Array.from({ length: IN_FLIGHT }, async () => {
        while (next < RUNS) await run(next++)
      }),
    )
    return RUNS / ((performance.now() - startedAt) / 1000)
  } finally {
    await service.close()
    rmSync(dataDir, { recursive: true, force: true })
  }
}

const groupedPerSecond = await measure(64)
const singlePerSecond = await measure(1)
console.log(`up to 64 steps per commit: ${groupedPerSecond.toFixed(0)} runs/s`)
console.log(`one step per commit:       ${singlePerSecond.toFixed(0)} runs/s`)
console.log(`ratio = ${(groupedPerSecond / singlePerSecond).toFixed(2)}`)
