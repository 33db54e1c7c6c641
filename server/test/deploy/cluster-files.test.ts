import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'

const folder = join(import.meta.dirname, '../../../ops/cluster')
const readFile = (name: string) => readFileSync(join(folder, name), 'utf8')
const temporary = mkdtempSync(join(tmpdir(), 'countersign-cluster-'))
afterAll(() => rmSync(temporary, { recursive: true, force: true }))

const templates = ['patroni.yaml', 'etcd.yaml', 'haproxy.cfg']
const variablesOf = (text: string) => new Set([...text.matchAll(/\$\{([A-Z_]+)\}/g)].map(([, name]) => name!))

test('machine.env.example names what the templates need, and nothing else', () => {
  const named = new Set([...readFile('machine.env.example').matchAll(/^([A-Z_]+)=/gm)].map(([, name]) => name!))
  const needed = new Set(templates.flatMap((name) => [...variablesOf(readFile(name))]))
  expect([...needed].sort()).toEqual([...named].sort())
})

test('real machines wait for a standby, have a watchdog, and Patroni accepts its times', () => {
  const example = readFile('machine.env.example')
  expect(example).toMatch(/^SYNCHRONOUS_MODE=true$/m)
  expect(example).toMatch(/^WATCHDOG_MODE=required$/m)
  const patroni = readFile('patroni.yaml')
  expect(patroni).toContain('synchronous_mode_strict: ${'.concat('SYNCHRONOUS_MODE}'))
  const seconds = (name: string) => Number(new RegExp(`^ +${name}: (\\d+)$`, 'm').exec(patroni)![1])
  expect(seconds('primary_start_timeout')).toBe(0)
  expect(seconds('ttl')).toBeGreaterThanOrEqual(20)
  expect(seconds('loop_wait') + 2 * seconds('retry_timeout')).toBeLessThanOrEqual(seconds('ttl'))
})

test('the archive accepts a segment again and refuses another one of its name', () => {
  const archive = (bytes: string) => {
    const source = join(temporary, 'segment')
    writeFileSync(source, bytes)
    return spawnSync(join(folder, 'archive-wal'), [source, '000000010000000000000001', temporary], { encoding: 'utf8' })
  }
  expect(archive('one history').status).toBe(0)
  expect(archive('one history').status).toBe(0)
  const refused = archive('another history')
  expect(refused.status).toBe(1)
  expect(refused.stderr).toContain('exists and differs')
  expect(readFileSync(join(temporary, '000000010000000000000001'), 'utf8')).toBe('one history')
})

test('a restore writes into a new folder only, from a base backup only', () => {
  const restore = (...args: string[]) => spawnSync(join(folder, 'restore'), args, { encoding: 'utf8' })
  expect(restore(temporary, temporary, temporary, 'latest').stderr).toContain('exists')
  expect(restore(temporary, temporary, join(temporary, 'new'), 'latest').stderr).toContain('is no base backup')
})
