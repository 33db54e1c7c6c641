import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { expect, test } from 'vitest'

/** Holds the house's import rules: proof ← platform ← modules ← adapters ← app.ts ← commands; sdk → proof; web → sdk. */
const root = resolve(import.meta.dirname, '../..')

// A module imports only modules that stand before it here.
const modules = [
  'tenants',
  'catalog',
  'audit',
  'webhooks',
  'ledger',
  'receipts',
  'routing',
  'payments',
  'governance',
  'memory',
  'runs',
  'basis',
  'brokerage',
  'insights',
]

// What others may use of a module besides its types: its face, and files that are part of it.
const faces: Record<string, string[]> = {
  payments: ['payments.ts', 'payments.steps.ts', 'x402.ts', 'quote.ts', 'facilitator.ts'],
  catalog: ['catalog.ts', 'price-list.ts'],
  governance: ['governance.ts', 'limit-hold-item.ts', 'rule-result.ts', 'windows.ts'],
}

type Import = { from: string; to: string; typeOnly: boolean }

const sources = (folder: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name) && !/node_modules|dist/.test(entry.parentPath))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))

const isTest = (path: string) => /\.test\.tsx?$|\/test\/|\/bench\/|\/scripts\//.test(path)

function importsOf(path: string): Import[] {
  const text = readFileSync(join(root, path), 'utf8')
  const found = [...text.matchAll(/^(?:import|export)\s+(type\s+)?([^'"]*?)\s*from\s+'([^']+)'|import\('([^']+)'\)/gms)]
  return found.map(([, type, names = '', statically, dynamically]) => {
    const specifier = (statically ?? dynamically)!
    const inlineTypes =
      /^\{[^}]*\}$/s.test(names.trim()) &&
      names
        .replace(/[{}]/g, '')
        .split(',')
        .every((name) => name.trim() === '' || name.trim().startsWith('type '))
    const to = specifier.startsWith('.') ? relative(root, resolve(root, dirname(path), specifier)) : specifier
    return { from: path, to, typeOnly: type !== undefined || inlineTypes }
  })
}

const serverImports = sources('server/src')
  .filter((path) => !isTest(path))
  .flatMap(importsOf)
const layerOf = (path: string) => /^server\/src\/(platform|modules|adapters|commands)\//.exec(path)?.[1] ?? path
const moduleOf = (path: string) => /^server\/src\/modules\/([^/]+)\//.exec(path)?.[1]
const broken = (imports: Import[]) => imports.map(({ from, to }) => `${from} → ${to}`)

test('the platform knows no business', () => {
  const wrong = serverImports.filter(
    ({ from, to }) => layerOf(from) === 'platform' && to.startsWith('server/') && layerOf(to) !== 'platform',
  )
  expect(broken(wrong)).toEqual([])
})

test('modules know the platform and earlier modules, never adapters', () => {
  const wrong = serverImports.filter(({ from, to }) => {
    const own = moduleOf(from)
    if (!own || !to.startsWith('server/') || layerOf(to) === 'platform') return false
    const other = moduleOf(to)
    if (!other) return !to.startsWith('server/data/')
    return own !== other && modules.indexOf(other) > modules.indexOf(own)
  })
  expect(broken(wrong)).toEqual([])
})

test('every module folder stands in the order', () => {
  expect(readdirSync(join(root, 'server/src/modules')).filter((name) => !modules.includes(name))).toEqual([])
})

test('a module uses another through its face; types are free', () => {
  const wrong = serverImports.filter(({ from, to, typeOnly }) => {
    const own = moduleOf(from)
    const other = moduleOf(to)
    if (!own || !other || own === other || typeOnly) return false
    return !(faces[other] ?? [`${other}.ts`]).some((face) => to.endsWith(`/${other}/${face}`))
  })
  expect(broken(wrong)).toEqual([])
})

test('adapters know the platform, other adapters and the ports of modules', () => {
  const wrong = serverImports.filter(({ from, to, typeOnly }) => {
    if (layerOf(from) !== 'adapters' || !to.startsWith('server/src')) return false
    if (layerOf(to) === 'modules') return !typeOnly && !/\/(facilitator|lane|broker|price-source)\.ts$/.test(to)
    return layerOf(to) !== 'platform' && layerOf(to) !== 'adapters'
  })
  expect(broken(wrong)).toEqual([])
})

test('only commands know the composition root', () => {
  const wrong = serverImports.filter(
    ({ from, to }) => to === 'server/src/app.ts' && layerOf(from) !== 'commands' && from !== 'server/src/main.ts',
  )
  expect(broken(wrong)).toEqual([])
})

test('no file imports itself in a circle', () => {
  const graph = new Map<string, string[]>()
  for (const { from, to, typeOnly } of serverImports)
    if (!typeOnly && to.startsWith('server/')) graph.set(from, [...(graph.get(from) ?? []), to])
  const done = new Set<string>()
  const circles: string[] = []
  const visit = (path: string, trail: string[]) => {
    if (trail.includes(path)) return void circles.push([...trail.slice(trail.indexOf(path)), path].join(' → '))
    if (done.has(path)) return
    done.add(path)
    for (const next of graph.get(path) ?? []) visit(next, [...trail, path])
  }
  for (const path of graph.keys()) visit(path, [])
  expect(circles).toEqual([])
})

test('proof runs in a browser: no Node, nothing of ours but itself', () => {
  const wrong = sources('proof/src')
    .filter((path) => !isTest(path))
    .flatMap(importsOf)
    .filter(({ to }) => !to.startsWith('proof/src/') && !to.startsWith('@noble/'))
  expect(broken(wrong)).toEqual([])
})

test('sdk and web never reach into the server', () => {
  const wrong = [...sources('sdk'), ...sources('web')]
    .filter((path) => !isTest(path))
    .flatMap(importsOf)
    .filter(({ to }) => to.startsWith('server/') || to.startsWith('@countersign/server'))
  expect(broken(wrong)).toEqual([])
})

test('SQL functions call only those of the platform and of earlier modules', () => {
  const files = readdirSync(join(root, 'server/sql')).map((name) => ({
    module: name.replace('.sql', ''),
    text: readFileSync(join(root, 'server/sql', name), 'utf8'),
  }))
  const defined = files.flatMap(({ module, text }) =>
    [...text.matchAll(/create or replace function (\w+)/g)].map(([, name]) => ({ name: name!, module })),
  )
  // `emit_event` and `audit_event` are ports of the platform, whoever provides them.
  const ports = ['emit_event', 'audit_event']
  const rank = (module: string) => modules.indexOf(module)
  const wrong = files.flatMap(({ module, text }) =>
    defined
      .filter(
        ({ name, module: other }) =>
          other !== module &&
          !ports.includes(name) &&
          new RegExp(`\\b${name}\\s*\\(`).test(text) &&
          rank(other) > rank(module),
      )
      .map(({ name, module: other }) => `${module}.sql calls ${name} of ${other}.sql`),
  )
  expect(wrong).toEqual([])
})
