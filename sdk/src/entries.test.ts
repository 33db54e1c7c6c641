import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'

/** Every module that is loaded at once or on first use, and the packages they load. */
function importsOf(entry: string) {
  const files = new Set<string>()
  const packages = new Map<string, 'static' | 'dynamic'>()
  const visit = (file: string) => {
    if (files.has(file)) return
    files.add(file)
    const source = readFileSync(file, 'utf8')
    for (const [, isType, name] of source.matchAll(/^(?:import|export) (type )?(?:[^'=;(]*? from )?'([^']+)'/gm)) {
      if (isType) continue
      if (name!.startsWith('.')) visit(join(dirname(file), name!))
      else packages.set(name!, 'static')
    }
    for (const [, name] of source.matchAll(/import\('([^']+)'\)/g))
      if (!packages.has(name!)) packages.set(name!, 'dynamic')
  }
  visit(join(import.meta.dirname, entry))
  return { files, packages }
}

test.each(['client.ts', 'pay.ts'])('%s loads nothing of Node, and the payment libraries only on first use', (entry) => {
  const { files, packages } = importsOf(entry)
  expect(files.size).toBeGreaterThan(5)
  expect([...files].every((file) => existsSync(file))).toBe(true)
  expect([...packages.keys()].filter((name) => name.startsWith('node:'))).toEqual([])
  expect([...packages].filter(([, kind]) => kind === 'static')).toEqual([])
  expect([...packages.keys()]).toEqual(expect.arrayContaining(['@x402/evm', '@x402/fetch', 'viem/accounts']))
})

test('what needs Node is an entry of its own', () => {
  expect([...importsOf('file-store.ts').packages.keys()].every((name) => name.startsWith('node:'))).toBe(true)
})
