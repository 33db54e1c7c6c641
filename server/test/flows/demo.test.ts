import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, hostEnv, spawnService } from '../harness.ts'

const dataDir = mkdtempSync(join(tmpdir(), 'countersign-demo-'))
let database: Awaited<ReturnType<typeof createTestDatabase>>
let service: Awaited<ReturnType<typeof spawnService>>
beforeAll(async () => {
  database = await createTestDatabase()
  service = await spawnService({ DATABASE_URL: database.url, COUNTERSIGN_DATA_DIR: dataDir })
})
afterAll(async () => {
  await service?.stop()
  await database?.drop()
  rmSync(dataDir, { recursive: true, force: true })
})

async function runDemo(env: Record<string, string>) {
  const child = spawn(process.execPath, ['server/src/main.ts', 'demo'], {
    cwd: resolve(import.meta.dirname, '../../..'),
    env: { ...hostEnv, NODE_ENV: 'test', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 100_000,
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
  const exit = await new Promise((done) => child.once('close', done))
  return { exit, output }
}

test('the start names port, data folder and a command to try', () => {
  expect(service.output()).toContain(service.url)
  expect(service.output()).toContain(dataDir)
  expect(service.output()).toMatch(/Try it: +COUNTERSIGN_DATA_DIR=\S+ npm run demo\n/)
  expect(service.output()).toContain(`curl ${service.url}/api/pricing`)
})

test('the demo finds the service that was started on another port, and verifies its receipt', async () => {
  const { exit, output } = await runDemo({ COUNTERSIGN_DATA_DIR: dataDir, PORT: '1' })
  expect(output).toContain(`The service at ${service.url}`)
  expect(output).toContain('The receipt is valid.')
  expect(exit).toBe(0)
})

test('beside a service with another data folder the demo says which setting it needs', async () => {
  const elsewhere = mkdtempSync(join(tmpdir(), 'countersign-demo-elsewhere-'))
  try {
    const { exit, output } = await runDemo({ COUNTERSIGN_DATA_DIR: elsewhere, PORT: new URL(service.url).port })
    expect(output).toMatch(/no dev-payer\.key in \S+keys, so nobody can pay\. .* set COUNTERSIGN_DATA_DIR/)
    expect(output).not.toMatch(/ENOENT|at readPayer/)
    expect(exit).toBe(1)
  } finally {
    rmSync(elsewhere, { recursive: true, force: true })
  }
})
