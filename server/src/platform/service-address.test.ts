import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { readServiceAddress, writeServiceAddress } from './service-address.ts'

const folder = mkdtempSync(join(tmpdir(), 'countersign-address-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('the address of a running service is found', () => {
  expect(readServiceAddress(folder)).toBeUndefined()
  writeServiceAddress(folder, 'http://127.0.0.1:4021')
  expect(readServiceAddress(folder)).toBe('http://127.0.0.1:4021')
})

test('an address that an ended process left behind is not used', () => {
  const { pid } = spawnSync(process.execPath, ['--version'])
  writeFileSync(join(folder, 'service.json'), JSON.stringify({ url: 'http://127.0.0.1:4021', pid }))
  expect(readServiceAddress(folder)).toBeUndefined()
})
