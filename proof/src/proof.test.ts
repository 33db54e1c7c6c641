import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import * as proof from './proof.ts'

const sources = readdirSync(new URL('.', import.meta.url)).filter((file) => /(?<!\.test)\.ts$/.test(file))

test('the public names are exported', () => {
  const verifiers = ['canonicalize', 'verifyReceipt', 'verifyAttestation', 'verifyInclusion', 'verifyConsistency']
  const otherVerifiers = [
    'verifyCheckpoint',
    'verifyReceiptChain',
    'verifyPreauthToken',
    'verifyStatement',
    'verifyAuditExport',
    'verifyOpening',
  ]
  expect(Object.keys(proof)).toEqual(expect.arrayContaining([...verifiers, ...otherVerifiers]))
})

describe('the package runs in every JavaScript environment', () => {
  test.each(sources)('%s imports only its siblings and @noble, and uses no Node or DOM globals', (file) => {
    const source = readFileSync(new URL(file, import.meta.url), 'utf8')
    const imports = [...source.matchAll(/\bfrom '([^']+)'/g)].map(([, name]) => name)
    expect(imports.filter((name) => !/^(\.\/[\w-]+\.ts|@noble\/(curves|hashes)\/[\w-]+\.js)$/.test(name!))).toEqual([])
    const code = source.replace(/\/\*\*[\s\S]*?\*\/|\/\/.*$/gm, '')
    expect(code).not.toMatch(/\b(Buffer|process|require|globalThis|window|document|crypto)\b|Date\.now|new Date\(\)/)
  })
})
