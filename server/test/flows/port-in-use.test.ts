import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { findFreePort } from '../free-port.ts'
import { spawnService } from '../harness.ts'

const folders: string[] = []
const makeDataDir = () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'countersign-port-'))
  folders.push(dataDir)
  return dataDir
}
const occupant = createServer()
const occupy = (port: number) =>
  new Promise<number>((resolve) =>
    occupant.listen(port, '127.0.0.1', () => resolve((occupant.address() as { port: number }).port)),
  )
const release = () => new Promise((resolve) => occupant.close(resolve))
afterEach(async () => {
  await release()
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

test('a start on a port in use says at once to set PORT, before a database is made', async () => {
  const dataDir = makeDataDir()
  const port = await occupy(0)
  const start = spawnService({ COUNTERSIGN_DATA_DIR: dataDir, PORT: String(port) })
  await expect(start).rejects.toThrow(
    new RegExp(`ended \\(1\\)[\\s\\S]*Port ${port} of 127.0.0.1 is in use[^]*set PORT[^]*EADDRINUSE`),
  )
  expect(existsSync(join(dataDir, 'postgres'))).toBe(false)
})

test('a start whose port is taken meanwhile fails and leaves no database server running', async () => {
  const dataDir = makeDataDir()
  const port = await findFreePort()
  const start = spawnService({ COUNTERSIGN_DATA_DIR: dataDir, PORT: String(port) })
  start.catch(() => undefined)
  await vi.waitFor(() => expect(existsSync(join(dataDir, 'postgres', 'PG_VERSION'))).toBe(true), {
    timeout: 20_000,
    interval: 20,
  })
  await occupy(port)
  await expect(start).rejects.toThrow(/set PORT.*EADDRINUSE/)
  // PostgreSQL removes this file when it stops.
  expect(existsSync(join(dataDir, 'postgres', 'postmaster.pid'))).toBe(false)
})
