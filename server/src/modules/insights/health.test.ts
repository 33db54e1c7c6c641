import { expect, test } from 'vitest'
import { readConfig } from '../../platform/config.ts'
import { checkEnv } from './env-check.ts'
import { createHealth, type DependencyState } from './health.ts'

const healthOf = (redis: DependencyState, supabase: DependencyState) =>
  createHealth({ checks: { redis: async () => redis, supabase: async () => supabase } }).report()

test('only an unreachable dependency degrades the service', async () => {
  expect(await healthOf('not_configured', 'embedded')).toEqual({
    status: 'ok',
    redis: 'not_configured',
    supabase: 'embedded',
  })
  expect((await healthOf('ok', 'ok')).status).toBe('ok')
  expect((await healthOf('unreachable', 'ok')).status).toBe('degraded')
  expect((await healthOf('ok', 'unreachable')).status).toBe('degraded')
})

test('a check that fails or never finishes counts as unreachable, in bounded time', async () => {
  const checks = {
    redis: () => new Promise<DependencyState>(() => {}),
    supabase: async (): Promise<DependencyState> => {
      throw new Error('connection refused')
    },
  }
  const clock = { now: () => new Date(0) }
  const report = await createHealth({ checks, timeoutMs: 20, clock }).report()
  const since = new Date(0).toISOString()
  expect(report).toEqual({
    status: 'degraded',
    redis: 'unreachable',
    supabase: 'unreachable',
    problems: [
      { part: 'database', message: 'The database cannot be reached.', since },
      { part: 'redis', message: 'Redis cannot be reached; each process counts rate limits by itself.', since },
    ],
  })
})

test('a part that others can do without is named and does not degrade the service; one that hangs counts as a problem', async () => {
  const ok = async (): Promise<DependencyState> => 'ok'
  const parts = {
    models: async () => ({ message: 'No model answers.' }),
    chain: () => new Promise<undefined>(() => {}),
    // The database answers slowly, which is no sign of a full disk.
    disk: () => new Promise<undefined>(() => {}),
    facilitator: async () => undefined,
  }
  const health = createHealth({ checks: { redis: ok, supabase: ok }, parts, timeoutMs: 20 })
  const { status, problems } = await health.report()
  expect(status).toBe('ok')
  expect(problems?.map(({ part }) => part)).toEqual(['chain', 'models'])
  const full = { disk: async () => ({ message: 'full', degrades: true as const }) }
  expect((await createHealth({ checks: { redis: ok, supabase: ok }, parts: full }).report()).status).toBe('degraded')
})

test('parts of other people are not asked by every probe', async () => {
  let asked = 0
  const ok = async (): Promise<DependencyState> => 'ok'
  const chain = async () => {
    asked += 1
    return undefined
  }
  const health = createHealth({ checks: { redis: ok, supabase: ok }, parts: { chain } })
  for (let probe = 0; probe < 20; probe++) await health.report()
  expect(asked).toBe(1)
})

test('concurrent probes share one check', async () => {
  let checks = 0
  const check = async (): Promise<DependencyState> => {
    checks += 1
    return 'ok'
  }
  const health = createHealth({ checks: { redis: check, supabase: check } })
  await Promise.all(Array.from({ length: 50 }, () => health.report()))
  expect(checks).toBe(2)
})

test('with the embedded defaults nothing is required, and generated settings count as set', () => {
  const report = checkEnv(readConfig({}), new Map([['SIGNING_KEY', 43]]))
  expect([report.status, report.missing_required]).toEqual(['ok', []])
  expect(report.services.signing!.optional).toMatchObject({
    SIGNING_KEY: '[set, 43 chars]',
    ENCRYPTION_KEY: '[missing]',
  })
})

test('in production the keys, the database and the payee are required', () => {
  const report = checkEnv(readConfig({ NODE_ENV: 'production' }), new Map())
  expect(report.status).toBe('incomplete')
  expect([...report.missing_required].sort()).toEqual(
    ['ADMIN_KEY', 'DATABASE_URL', 'ENCRYPTION_KEY', 'PAY_TO_ADDRESS', 'SIGNING_KEY'].sort(),
  )
  expect(report.services.database!.required).toEqual({ DATABASE_URL: '[missing]' })
})

test('no value is ever shown, only the length of a secret', () => {
  const env = {
    ADMIN_KEY: 'canary-admin-key-0123456789',
    STRIPE_SECRET_KEY: 'canary-stripe',
    PUBLIC_URL: 'https://canary.test',
  }
  const text = JSON.stringify(checkEnv(readConfig(env), new Map()))
  expect(text).not.toContain('canary')
  expect(text).toContain('"ADMIN_KEY":"[set, 27 chars]"')
  expect(text).toContain('"PUBLIC_URL":"[set]"')
})
