import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { createTestDatabase, hostEnv, readChallenge, spawnService, startService, testEnv } from '../harness.ts'

/** What a start refuses, and what it says. */
const folders: string[] = []
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})
const makeDataDir = () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'countersign-start-'))
  folders.push(dataDir)
  return dataDir
}

/** Runs a command of the service until it ends; one that keeps running is killed. */
async function runCommand(command: string, env: Record<string, string>) {
  const child = spawn(process.execPath, ['server/src/main.ts', command], {
    cwd: resolve(import.meta.dirname, '../../..'),
    env: { ...hostEnv, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 100_000,
    killSignal: 'SIGKILL',
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
  const exit = await new Promise<number | string>((done) =>
    child.once('exit', (code, signal) => done(signal ?? code ?? 0)),
  )
  return { exit, output }
}

const productionSettings = {
  NODE_ENV: 'production',
  ADMIN_KEY: 'a'.repeat(24),
  DATABASE_URL: 'postgres://127.0.0.1:1/none',
  PAY_TO_ADDRESS: `0x${'11'.repeat(20)}`,
  SIGNING_KEY: 's'.repeat(32),
  ENCRYPTION_KEY: 'e'.repeat(32),
  FACILITATOR_URL: 'http://127.0.0.1:1',
}

describe('a start in production', () => {
  test.each(['serve', 'work'])(
    '%s is refused with all missing settings in one message, before a key is made',
    async (command) => {
      const dataDir = makeDataDir()
      const { exit, output } = await runCommand(command, {
        NODE_ENV: 'production',
        PORT: '0',
        COUNTERSIGN_DATA_DIR: join(dataDir, 'new'),
      })
      expect(exit).toBe(1)
      for (const name of [
        'ADMIN_KEY',
        'DATABASE_URL',
        'PAY_TO_ADDRESS',
        'SIGNING_KEY',
        'ENCRYPTION_KEY',
        'FACILITATOR_URL',
      ])
        expect(output).toContain(name)
      expect(() => readFileSync(join(dataDir, 'new/keys/signing.key'))).toThrow()
    },
  )

  test('with workers is refused as well', async () => {
    const env = { NODE_ENV: 'production', WORKERS: '2', PORT: '0', COUNTERSIGN_DATA_DIR: makeDataDir() }
    const { exit, output } = await runCommand('serve', env)
    expect([exit, output]).toEqual([1, expect.stringContaining('SIGNING_KEY')])
  })

  test('names only what is missing: without a facilitator or chain it would take worthless payments', async () => {
    const { FACILITATOR_URL: _, ...settings } = productionSettings
    const { exit, output } = await runCommand('serve', { ...settings, COUNTERSIGN_DATA_DIR: makeDataDir() })
    expect(exit).toBe(1)
    expect(output).toContain('FACILITATOR_URL')
    expect(output).not.toContain('SIGNING_KEY')
  })

  test('with all of them gets past this check', async () => {
    const { output } = await runCommand('serve', {
      ...productionSettings,
      PORT: '0',
      COUNTERSIGN_DATA_DIR: makeDataDir(),
    })
    expect(output).toContain('ECONNREFUSED')
  })

  test('on a database whose commits wait for no other server is refused, unless a setting accepts that', async () => {
    const database = await createTestDatabase()
    const env = { ...productionSettings, DATABASE_URL: database.url, PORT: '0', LOG_LEVEL: 'silent' }
    try {
      for (const command of ['serve', 'work']) {
        const { exit, output } = await runCommand(command, { ...env, COUNTERSIGN_DATA_DIR: makeDataDir() })
        expect([exit, output]).toEqual([1, expect.stringContaining('DATABASE_SYNC_REPLICATION=preferred')])
        expect(output).toContain("synchronous_standby_names is ''")
      }
      const service = await spawnService({ ...env, DATABASE_SYNC_REPLICATION: 'preferred', BACKGROUND_WORK: 'off' })
      try {
        expect((await service.get('/api/health')).body).toMatchObject({ database_replication: 'asynchronous' })
      } finally {
        await service.stop()
        rmSync(service.dataDir, { recursive: true, force: true })
      }
    } finally {
      await database.drop()
    }
  }, 120_000)
})

test.each([
  ['signing.key', ''],
  ['encryption.key', 'short\n'],
  ['admin.key', 'too short'],
])('a key file that is empty or short is refused: %s', async (name, content) => {
  const dataDir = makeDataDir()
  mkdirSync(join(dataDir, 'keys'))
  writeFileSync(join(dataDir, 'keys', name), content)
  const env = { ...testEnv, COUNTERSIGN_DATA_DIR: dataDir, DATABASE_URL: 'postgres://127.0.0.1:1/none' }
  const { exit, output } = await runCommand('serve', env)
  expect(exit).toBe(1)
  expect(output).toContain(join(dataDir, 'keys', name))
  expect(output).toMatch(/at least (24|32) characters/)
})

test('a wrong ENCRYPTION_KEY is refused at the start, and the right one is accepted again', async () => {
  const database = await createTestDatabase()
  const start = (ENCRYPTION_KEY: string) => startService({ databaseUrl: database.url, env: { ENCRYPTION_KEY } })
  try {
    await (await start('the key of this database, long enough')).close()
    await expect(start('another key, which is long enough too')).rejects.toThrow(/ENCRYPTION_KEY is not the key/)
    await (await start('the key of this database, long enough')).close()
  } finally {
    await database.drop()
  }
})

test('every 402 of the embedded chain says that it is a development chain, to both versions of the protocol', async () => {
  const service = await startService()
  try {
    const challenge = await service.post('/api/run', { task: 'Tell me a joke.' })
    expect(challenge.status).toBe(402)
    expect(readChallenge(challenge.headers).accepts[0].extra).toMatchObject({ name: 'USD Coin', development: true })
    expect(challenge.body.accepts[0].extra).toEqual({ name: 'USD Coin', version: '2', development: true })
  } finally {
    await service.close()
  }
})
