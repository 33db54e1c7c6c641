import { createHmac, randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { systemClock } from '../../platform/clock.ts'
import { createIds } from '../../platform/ids.ts'
import { createSessions, SESSION_COOKIE, type SessionsDeps } from './sessions.ts'

test('an invented cookie does not reach the database', async () => {
  let lookups = 0
  const sessions = createSessions({
    db: undefined as never,
    clock: systemClock,
    ids: createIds(systemClock),
    keys: { fingerprint: (value) => createHmac('sha256', 'key').update(value).digest('hex') },
    callers: {
      findCaller: async () => {
        lookups += 1
        return undefined
      },
    } as unknown as SessionsDeps['callers'],
    publicUrl: () => 'http://127.0.0.1',
  })
  for (let guess = 0; guess < 100; guess++) {
    const cookie = `${SESSION_COOKIE}=${randomBytes(32).toString('base64url')}`
    expect(await sessions.authenticate({ method: 'GET', headers: { cookie } })).toBeUndefined()
  }
  expect(lookups).toBe(0)
})
