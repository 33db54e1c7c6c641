import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import * as proof from './proof.ts'

const sources = readdirSync(new URL('.', import.meta.url)).filter((file) => /(?<!\.test)\.ts$/.test(file))

test('the names others rely on are exported', () => {
  const relied = ['canonicalize', 'verifyReceipt', 'verifyAttestation', 'verifyInclusion', 'verifyConsistency']
  const more = ['verifyCheckpoint', 'verifyReceiptChain', 'verifyPreauthToken', 'verifyStatement', 'verifyAuditExport']
  expect(Object.keys(proof)).toEqual(expect.arrayContaining([...relied, ...more]))
})

describe('the package runs wherever JavaScript does', () => {
  test.each(sources)('%s imports only its neighbours and @noble, and touches nothing of Node or of a page', (file) => {
    const source = readFileSync(new URL(file, import.meta.url), 'utf8')
    const imports = [...source.matchAll(/\bfrom '([^']+)'/g)].map(([, name]) => name)
    expect(imports.filter((name) => !/^(\.\/[\w-]+\.ts|@noble\/(curves|hashes)\/[\w-]+\.js)$/.test(name!))).toEqual([])
    const code = source.replace(/\/\*\*[\s\S]*?\*\/|\/\/.*$/gm, '')
    expect(code).not.toMatch(/\b(Buffer|process|require|globalThis|window|document|crypto)\b|Date\.now|new Date\(\)/)
  })
})
