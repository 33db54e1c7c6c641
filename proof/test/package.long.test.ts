import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { jwks, makeReceipt } from './fixtures.ts'

const root = resolve(import.meta.dirname, '../..')
const folder = mkdtempSync(join(tmpdir(), 'countersign-proof-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('the built package verifies a receipt in a project outside this repository, typed and in plain JavaScript', () => {
  const modules = join(folder, 'node_modules')
  mkdirSync(modules)
  cpSync(join(root, 'node_modules/@noble'), join(modules, '@noble'), { recursive: true })
  const node = (...args: string[]) => execFileSync(process.execPath, args, { cwd: folder, encoding: 'utf8' })
  node(join(root, 'scripts/build-proof.mjs'), join(modules, '@countersign/proof'))
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module' }))
  const receiptAndOptions = JSON.stringify([makeReceipt(), { jwks }])
  writeFileSync(
    join(folder, 'use.ts'),
    `import { canonicalize, type Verification, verifyReceipt } from '@countersign/proof'
const [receipt, options] = JSON.parse(${JSON.stringify(receiptAndOptions)})
const good: Verification = verifyReceipt(receipt, options)
const bad: Verification = verifyReceipt({ ...receipt, charged: false }, options)
console.log(canonicalize({ b: good.ok, a: bad.ok }))
`,
  )
  const strict = ['--strict', '--module', 'nodenext', '--target', 'es2022', '--lib', 'es2022,dom']
  node(join(root, 'node_modules/typescript/bin/tsc'), 'use.ts', ...strict)
  expect(node('use.js')).toBe('{"a":false,"b":true}\n')
})
