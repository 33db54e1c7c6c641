import { closeSync, mkdtempSync, readFileSync, rmSync, statSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createServerLog } from './server-log.ts'

test('a log over the size limit is copied to .1 and truncated, and the open file continues at the start', () => {
  const folder = mkdtempSync(join(tmpdir(), 'cs-log-'))
  const path = join(folder, 'postgres.log')
  const log = createServerLog(path)
  const file = log.open()
  try {
    writeSync(file, 'early line\n')
    log.rotate()
    expect(log.readSince(0)).toBe('early line')

    writeSync(file, `${'x'.repeat(9 * 1024 * 1024)}\n`)
    expect(log.readSince(0).length).toBeLessThanOrEqual(4096)
    log.rotate()
    expect(log.size()).toBe(0)
    expect(statSync(`${path}.1`).size).toBeGreaterThan(9 * 1024 * 1024)

    writeSync(file, 'late line\n')
    expect(readFileSync(path, 'utf8')).toBe('late line\n')
    // An offset from before the truncation is clamped to the file's size.
    expect(log.readSince(9_000_000)).toBe('')
    expect(statSync(path).mode & 0o077).toBe(0)
  } finally {
    closeSync(file)
    rmSync(folder, { recursive: true })
  }
})
