import { describe, expect, test } from 'vitest'
import { ConfigError, readConfig } from './config.ts'
import { splitDatabaseUrl } from './database-url.ts'

const SECRET = 'dont-show-me'

describe('an address of a database that cannot be used is refused at the start, without its password', () => {
  const refusals: [string, string, RegExp][] = [
    ['another scheme', `mysql://u:${SECRET}@h/db`, /starts with postgres:/],
    ['an empty host between commas', `postgres://u:${SECRET}@h1,,h3/db`, /host 2 of 3/],
    ['a port that is no number', `postgres://u:${SECRET}@h1:5432,h2:fifty/db`, /host 2 of 2/],
    ['a port out of range', `postgres://u:${SECRET}@h1:5432,h2:70000/db`, /from 1 to 65535.*host 2 of 2/],
    ['a password with an unescaped slash', `postgres://u:${SECRET}/x@h1/db`, /its host is not one/],
    [
      'a session that may be a standby',
      `postgres://u:${SECRET}@h1,h2/db?target_session_attrs=any`,
      /read-write or primary/,
    ],
    ['hosts in a parameter', `postgres://u:${SECRET}@/db?host=h1,h2`, /not in the parameter/],
    ['too many hosts', `postgres://u:${SECRET}@${'h,'.repeat(16)}h/db`, /at most 16 hosts/],
  ]
  test.each(refusals)('%s', (_name, url, message) => {
    for (const name of ['DATABASE_URL', 'DATABASE_DIRECT_URL']) {
      const read = () => readConfig({ DATABASE_URL: 'postgres://h/db', [name]: url })
      expect(read).toThrow(ConfigError)
      expect(read).toThrow(message)
      expect(read).toThrow(new RegExp(`^${name} is not usable`))
      expect(read).not.toThrow(SECRET)
    }
  })
})

test('an address with several hosts is one address for each, without what only libpq reads', () => {
  const url = 'postgres://u:p@h1:5432,h2,[::1]:6000/db?sslmode=require&target_session_attrs=read-write'
  expect(splitDatabaseUrl(url)).toEqual([
    'postgres://u:p@h1:5432/db?sslmode=require',
    'postgres://u:p@h2/db?sslmode=require',
    'postgres://u:p@[::1]:6000/db?sslmode=require',
  ])
  expect(splitDatabaseUrl('postgresql://u:p%40s@h:5432/db')).toEqual(['postgresql://u:p%40s@h:5432/db'])
  expect(splitDatabaseUrl('postgres:///db?host=/run/postgresql')).toEqual(['postgres:///db?host=/run/postgresql'])
})
