import { rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { type Connection, createSandbox, query, waitUntil } from './helpers.ts'

const sandbox = createSandbox()
afterEach(() => sandbox.clear())

const ROUNDS = 9
const KILLS = ['the server', 'Node', 'both'] as const

test('no acknowledged row is lost when the server, Node or both are killed under load', async () => {
  const dataDir = sandbox.makeFolder()
  const acknowledged: number[] = []
  let connection: Connection | undefined
  for (let round = 0; round < ROUNDS; round += 1) {
    const victim = KILLS[round % KILLS.length]!
    const databaseProcess = sandbox.spawn({ dataDir, insert: true })
    const ready = await databaseProcess.ready
    connection = ready.connection
    await waitUntil('rows were acknowledged', () => databaseProcess.acknowledged.length >= 100)
    if (victim !== 'Node') process.kill(ready.pid, 'SIGKILL')
    if (victim === 'the server') {
      // What the process had written before the kill may still be on its way, so it is no sign of a new start.
      await waitUntil('it is up again', () => databaseProcess.messages.includes('The database is up again.'))
      const before = databaseProcess.acknowledged.length
      await waitUntil('rows are acknowledged again', () => databaseProcess.acknowledged.length >= before + 100)
    }
    await databaseProcess.kill()
    acknowledged.push(...databaseProcess.acknowledged)
  }
  const database = await sandbox.start({ dataDir })
  expect(database.connection).toEqual(connection)
  const rows = await query<{ id: string }>(database.connection, 'select id from acknowledged')
  const storedIds = new Set(rows.map(({ id }) => Number(id)))
  expect(acknowledged.length).toBeGreaterThanOrEqual(ROUNDS * 100)
  expect(new Set(acknowledged).size).toBe(acknowledged.length)
  expect(acknowledged.filter((id) => !storedIds.has(id))).toEqual([])
})

test('a socket that is deleted under a running process is restored by a restart', async () => {
  const dataDir = sandbox.makeFolder()
  const database = await sandbox.start({ dataDir, settings: { fsync: 'off' } })
  const before = database.pid()
  rmSync(database.connection.host, { recursive: true })
  await waitUntil('the server was restarted', () => database.isUp() && database.pid() !== before)
  expect(await query(database.connection, 'select 1 as one')).toEqual([{ one: 1 }])
})

test('a folder that another machine or container keeps using is refused after a wait', async () => {
  const dataDir = sandbox.makeFolder()
  const settings = { fsync: 'off' }
  await (await sandbox.start({ dataDir, settings })).stop()
  const marker = join(dataDir, 'postgres.host')
  writeFileSync(marker, 'elsewhere pid:[1]\n')
  const heartbeat = setInterval(() => utimesSync(marker, new Date(), new Date()), 1_000)
  try {
    await expect(sandbox.start({ dataDir, settings })).rejects.toThrow(
      'in use by another machine or container (elsewhere',
    )
  } finally {
    clearInterval(heartbeat)
  }
  const startedAt = performance.now()
  const database = await sandbox.start({ dataDir, settings })
  expect(performance.now() - startedAt).toBeGreaterThan(5_000)
  expect(database.messages.join()).toContain('waiting until it is free')
})
