import { expect, test } from 'vitest'
import { groupReads } from './group-reads.ts'

test('keys that are requested while a query is under way share the next one, and each gets its own value', async () => {
  const queries: string[][] = []
  let release = () => {}
  const read = groupReads(async (keys: readonly string[]) => {
    queries.push([...keys])
    if (queries.length === 1) await new Promise<void>((resolve) => (release = resolve))
    return keys.map((key) => (key === 'none' ? undefined : key.toUpperCase()))
  })
  const first = read('a')
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
  const others = [read('b'), read('none'), read('c')]
  release()
  expect(await Promise.all([first, ...others])).toEqual(['A', 'B', undefined, 'C'])
  expect(queries).toEqual([['a'], ['b', 'none', 'c']])
})

test('a query that fails rejects its own callers only, and the next one is made', async () => {
  let calls = 0
  const read = groupReads(async (keys: readonly string[]) => {
    calls += 1
    if (calls === 1) throw new Error('The connection was lost.')
    return keys
  })
  const failures = await Promise.allSettled([read('a'), read('b')])
  expect(failures.map((result) => result.status)).toEqual(['rejected', 'rejected'])
  expect(await read('c')).toBe('c')
})

test('a read never returns a row that was read before it was requested', async () => {
  let stored = 1
  const read = groupReads(async (keys: readonly string[]) => {
    const valueAtStart = stored
    await new Promise((resolve) => setTimeout(resolve, 5))
    return keys.map(() => valueAtStart)
  })
  const before = read('a')
  await new Promise((resolve) => setTimeout(resolve, 2))
  stored = 2
  expect([await before, await read('a')]).toEqual([1, 2])
})

test('a group has at most maxKeys keys, and at most maxInFlight groups are read at once', async () => {
  let inFlight = 0
  let mostInFlight = 0
  const sizes: number[] = []
  const read = groupReads(
    async (keys: readonly number[]) => {
      inFlight += 1
      mostInFlight = Math.max(mostInFlight, inFlight)
      sizes.push(keys.length)
      await new Promise((resolve) => setTimeout(resolve, 2))
      inFlight -= 1
      return keys
    },
    { maxKeys: 3, maxInFlight: 2 },
  )
  const keys = Array.from({ length: 10 }, (_, index) => index)
  expect(await Promise.all(keys.map(read))).toEqual(keys)
  expect(Math.max(...sizes)).toBe(3)
  expect(mostInFlight).toBe(2)
})
