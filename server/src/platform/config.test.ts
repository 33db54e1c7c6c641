import { expect, test } from 'vitest'
import { ConfigError, readConfig, usesEmbeddedChain } from './config.ts'

test('without settings everything is embedded', () => {
  const config = readConfig({})
  expect(config).toMatchObject({
    PORT: 4020,
    HOST: '127.0.0.1',
    COUNTERSIGN_DATA_DIR: './.countersign',
    LANE_PROVIDER: 'offline',
  })
  expect(usesEmbeddedChain(config)).toBe(true)
  expect(config.provided.size).toBe(0)
})

const invalidSettings: [Record<string, string>, string][] = [
  [{ PORT: 'eighty' }, 'PORT'],
  [{ PORT: '70000' }, 'PORT'],
  [{ PORT: '4020.5' }, 'PORT'],
  [{ DATABASE_URL: 'mysql://x' }, 'DATABASE_URL'],
  [{ DATABASE_DIRECT_URL: 'mysql://x' }, 'DATABASE_DIRECT_URL'],
  [{ DATABASE_DIRECT_URL: 'postgres://x' }, 'DATABASE_URL'],
  [{ INSTANCE_BEAT_MS: '10' }, 'INSTANCE_BEAT_MS'],
  [{ INSTANCE_BEAT_MS: '2500', INSTANCE_GRACE_MS: '9999' }, 'INSTANCE_GRACE_MS'],
  [{ PAY_TO_ADDRESS: '0x12' }, 'PAY_TO_ADDRESS'],
  [{ FACILITATOR_URL: 'not a url', PAY_TO_ADDRESS: `0x${'1'.repeat(40)}` }, 'FACILITATOR_URL'],
  [
    { FACILITATOR_PRIVATE_KEY: 'abc', CHAIN_RPC_URL: 'http://x', PAY_TO_ADDRESS: `0x${'1'.repeat(40)}` },
    'FACILITATOR_PRIVATE_KEY',
  ],
  [{ FACILITATOR_PRIVATE_KEY: `0x${'1'.repeat(64)}` }, 'CHAIN_RPC_URL'],
  [{ CHAIN_RPC_URL: 'http://127.0.0.1:1', FACILITATOR_PRIVATE_KEY: `0x${'1'.repeat(64)}` }, 'PAY_TO_ADDRESS'],
  [{ SIGNING_KEY: 'short' }, 'SIGNING_KEY'],
  [{ LANE_PROVIDER: 'openai-compatible' }, 'LANE_MODEL'],
  [{ LOG_LEVEL: 'loud' }, 'LOG_LEVEL'],
]
for (const [env, name] of invalidSettings) {
  test(`an invalid ${Object.keys(env).join(' with ')} stops the start with a message that names ${name}`, () => {
    expect(() => readConfig(env)).toThrow(ConfigError)
    expect(() => readConfig(env)).toThrow(name)
  })
}

test('the message about an invalid secret does not contain it', () => {
  expect(() => readConfig({ SIGNING_KEY: 'hunter2' })).toThrow(/^((?!hunter2).)*$/)
})
