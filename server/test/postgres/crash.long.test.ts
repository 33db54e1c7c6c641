import { rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { type Connection, createBench, query, until } from './helpers.ts'

const bench = createBench()
afterEach(() => bench.clear())

const ROUNDS = 9
const KILLS = ['the server', 'Node', 'both'] as const

test('no acknowledged row is lost, whatever is killed under load', async () => {
  const dataDir = bench.makeFolder()
  const acknowledged: number[] = []
  let connection: Connection | undefined
  for (let round = 0; round < ROUNDS; round += 1) {
    const victim = KILLS[round % KILLS.length]!
    const holder = bench.hold({ dataDir, insert: true })
    const ready = await holder.ready
    connection = ready.connection
    await until('rows were acknowledged', () => holder.acknowledged.length >= 100)
    if (victim !== 'Node') process.kill(ready.pid, 'SIGKILL')
    if (victim === 'the server') {
      const before = holder.acknowledged.length
      await until('rows are acknowledged again', () => holder.acknowledged.length >= before + 100)
      expect(holder.sentences).toContain('The database is up again.')
    }
    await holder.kill()
    acknowledged.push(...holder.acknowledged)
  }
  const last = await bench.start({ dataDir })
  expect(last.connection).toEqual(connection)
  const rows = await query<{ id: string }>(last.connection, 'select id from acknowledged')
  const kept = new Set(rows.map(({ id }) => Number(id)))
  expect(acknowledged.length).toBeGreaterThanOrEqual(ROUNDS * 100)
  expect(new Set(acknowledged).size).toBe(acknowledged.length)
  expect(acknowledged.filter((id) => !kept.has(id))).toEqual([])
})

test('a socket that is swept away under a running process is there again soon', async () => {
  const dataDir = bench.makeFolder()
  const database = await bench.start({ dataDir, settings: { fsync: 'off' } })
  const before = database.pid()
  rmSync(database.connection.host, { recursive: true })
  await until('the server was restarted', () => database.isUp() && database.pid() !== before)
  expect(await query(database.connection, 'select 1 as one')).toEqual([{ one: 1 }])
})

test('a folder that another machine or container uses is waited for, and then refused', async () => {
  const dataDir = bench.makeFolder()
  const settings = { fsync: 'off' }
  await (await bench.start({ dataDir, settings })).stop()
  const note = join(dataDir, 'postgres.host')
  writeFileSync(note, 'elsewhere pid:[1]\n')
  const beat = setInterval(() => utimesSync(note, new Date(), new Date()), 1_000)
  try {
    await expect(bench.start({ dataDir, settings })).rejects.toThrow(
      'in use by another machine or container (elsewhere',
    )
  } finally {
    clearInterval(beat)
  }
  const begin = performance.now()
  const database = await bench.start({ dataDir, settings })
  expect(performance.now() - begin).toBeGreaterThan(5_000)
  expect(database.sentences.join()).toContain('waiting until it is free')
})
