import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { spawnService } from '../harness.ts'

const dataDir = mkdtempSync(join(tmpdir(), 'countersign-port-'))
afterAll(() => rmSync(dataDir, { recursive: true, force: true }))

test('a start on a port in use fails and leaves no database server running', async () => {
  const occupant = createServer()
  const port = await new Promise<number>((resolve) =>
    occupant.listen(0, '127.0.0.1', () => resolve((occupant.address() as { port: number }).port)),
  )
  await expect(spawnService({ COUNTERSIGN_DATA_DIR: dataDir, PORT: String(port) })).rejects.toThrow(/EADDRINUSE/)
  expect(existsSync(join(dataDir, 'postgres', 'PG_VERSION'))).toBe(true)
  // PostgreSQL removes this file when it stops.
  expect(existsSync(join(dataDir, 'postgres', 'postmaster.pid'))).toBe(false)
  occupant.close()
})
