import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { createDemoWorld } from '../../src/commands/demo-world.ts'
import { findFreePort } from '../free-port.ts'
import { startService } from '../harness.ts'

const root = resolve(import.meta.dirname, '../../..')

test('without a running service it says how to start one', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'demo-seed-'))
  const env = { ...process.env, COUNTERSIGN_DATA_DIR: folder, PORT: String(await findFreePort()) }
  const { code, stderr } = await new Promise<{ code: unknown; stderr: string }>((ended) =>
    execFile('node', ['launch.mjs', 'server/src/main.ts', 'demo-seed'], { cwd: root, env }, (error, _, text) =>
      ended({ code: error?.code, stderr: text }),
    ),
  )
  rmSync(folder, { recursive: true })
  expect(code).toBe(1)
  expect(stderr).toContain('No service is running. Start one with `npm start`')
})

test('the organisation has rows of every kind, all of them made through the API', async () => {
  const service = await startService()
  const { apiKey, readerKey, ids } = await createDemoWorld({ url: service.url, adminKey: service.service.adminKey })
  const headers = { 'x-api-key': apiKey }
  const { body: tower } = await service.get('/api/control-tower', headers)
  expect(tower).toMatchObject({ approvals_pending: 2, brokerage_approvals_pending: 1, preauth: { open: 1 } })
  // The run that was approved starts by itself and uses the rest of the budget.
  await expect
    .poll(async () => (await service.get('/api/control-tower', headers)).body.budgets_at_risk)
    .toMatchObject([{ budget_id: 'writer-day' }])
  expect(tower.frozen_agents).toMatchObject([{ agent_id: 'office-bot' }])
  expect(tower.webhooks.failing).toBe(1)
  const paths = {
    run: '/api/runs',
    policy: '/api/policies',
    approval: '/api/approvals',
    mandate: '/api/mandates',
    preauth: '/api/pre-auth',
    trade: '/api/rh/runs',
    escrow: '/api/escrow',
    wallet: '/api/wallets',
    webhook: '/api/webhooks',
  } satisfies Record<keyof typeof ids, string>
  for (const [name, path] of Object.entries(paths))
    expect((await service.get(`${path}/${ids[name as keyof typeof ids]}`, headers)).status, name).toBe(200)
  expect((await service.get('/api/me', { 'x-api-key': readerKey })).body.scopes).toEqual(['read'])
  await service.close()
})

test('in production there is no test money, and nothing is written', async () => {
  const service = await startService({ env: { NODE_ENV: 'production' } })
  const { adminKey } = service.service
  await expect(createDemoWorld({ url: service.url, adminKey })).rejects.toThrow('/api/dev/faucet answered 404')
  const { body } = await service.get('/api/admin/tenants', { 'x-admin-key': adminKey })
  expect(body.tenants).toEqual([])
  await service.close()
})
