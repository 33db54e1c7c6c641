import { readFileSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { runInNewContext } from 'node:vm'
import { build } from 'vite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { jwks, makeReceipt } from '../../../proof/test/fixtures.ts'
import { INSTALL_LIMIT_MS, installPackages } from '../install-packages.ts'
import { noteRan } from '../other-software/ran.ts'
import { cleanEnv, mustRun, PACKAGES, packAll, run, startProgram, writeFiles } from './packed.ts'

/** What somebody gets who has the packages and nothing of this repository. */
const repository = resolve(import.meta.dirname, '../../..')
const LINTERS = ['publint@0.3.25', '@arethetypeswrong/cli@0.18.5']
const readManifests = () => PACKAGES.map((name) => readFileSync(join(repository, name, 'package.json'), 'utf8'))

let tarballs: string[]
let project: string
let service: Awaited<ReturnType<typeof startProgram>>
const folders: string[] = []
async function install(packages: string[]): Promise<string> {
  const { folder } = await installPackages(packages, { plain: true })
  folders.push(folder)
  return folder
}
const manifestsBefore = readManifests()

beforeAll(async () => {
  tarballs = await packAll()
  folders.push(dirname(tarballs[0]!))
  project = await install(tarballs)
  writeFiles(project, {
    'receipt.json': JSON.stringify(makeReceipt()),
    'changed.json': JSON.stringify({ ...makeReceipt(), charged: false }),
    'jwks.json': JSON.stringify(jwks),
    'verify.js': `import { verifyReceipt } from '@countersign/proof'
import { readFileSync } from 'node:fs'
const [receipt, changed, jwks] = ['receipt', 'changed', 'jwks'].map((name) => JSON.parse(readFileSync(name + '.json', 'utf8')))
console.log(verifyReceipt(receipt, { jwks }).ok, verifyReceipt(changed, { jwks }).ok)
`,
  })
}, INSTALL_LIMIT_MS)
afterAll(async () => {
  await service?.stop()
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

const contentsOf = async (tarball: string) =>
  (await mustRun('tar', ['-tzf', tarball], { cwd: repository }))
    .trim()
    .split('\n')
    .map((path) => path.replace(/^package\//, ''))

test('each tarball has built files, README, licence and changelog, and neither tests nor TypeScript', async () => {
  expect(tarballs).toHaveLength(PACKAGES.length)
  for (const tarball of tarballs) {
    const files = await contentsOf(tarball)
    expect(files, tarball).toEqual(expect.arrayContaining(['package.json', 'README.md', 'LICENSE', 'CHANGELOG.md']))
    expect(files.filter((file) => /\.test\.|(^|\/)(test|testdata|bench|fuzz)\/|\.jsonl$/.test(file))).toEqual([])
    expect(files.filter((file) => /(?<!\.d)\.tsx?$/.test(file))).toEqual([])
    expect(files.filter((file) => /^dist\/.*\.js$/.test(file)).length, tarball).toBeGreaterThan(0)
    expect(files.filter((file) => /^dist\/.*\.js\.map$/.test(file)).length, tarball).toBeGreaterThan(0)
  }
})

test('npm pack leaves the manifests of the repository as they were', () => {
  expect(readManifests()).toEqual(manifestsBefore)
})

test('the published manifests name nothing that is not in the tarball', async () => {
  for (const name of ['countersign', '@countersign/proof', '@countersign/sdk', '@countersign/server']) {
    const folder = join(project, 'node_modules', name)
    const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    expect(manifest.private, name).toBeUndefined()
    expect(manifest.scripts, name).toBeUndefined()
    expect(manifest.devDependencies, name).toBeUndefined()
    expect(manifest.publishConfig, name).toEqual({ access: 'public', provenance: true })
    const targets = Object.values(manifest.exports as Record<string, string | { types: string; default: string }>)
    for (const target of targets.flatMap((value) => (typeof value === 'string' ? [value] : Object.values(value))))
      expect(() => readFileSync(join(folder, target)), target).not.toThrow()
  }
})

test('publint and attw find nothing', async () => {
  const linters = await install(LINTERS)
  const bin = (name: string) => join(linters, 'node_modules/.bin', name)
  for (const tarball of tarballs) {
    const publint = await run(process.execPath, [bin('publint'), tarball, '--strict'], { cwd: linters })
    expect([publint.code, publint.stdout + publint.stderr]).toEqual([0, expect.stringContaining('All good')])
  }
  // The other two are programs: they export no types.
  for (const tarball of tarballs.filter((name) => /-(proof|sdk)-/.test(name))) {
    // The packages are ES modules only, which every Node from 20 on loads.
    const args = [bin('attw'), tarball, '--profile', 'esm-only', '--format', 'table-flipped', '--no-color']
    const attw = await run(process.execPath, args, { cwd: linters })
    expect([attw.code, attw.stdout + attw.stderr]).toEqual([0, expect.stringContaining('🟢 (ESM)')])
  }
  for (const linter of LINTERS) noteRan(linter)
})

describe('countersign', () => {
  test('demo starts its own service, pays and verifies, with nothing else installed', async () => {
    const output = await mustRun('npx', ['--no-install', 'countersign', 'demo'], { cwd: project })
    expect(output).toContain('No service is running, so the demo starts one.')
    expect(output).toContain('The receipt is valid.')
  })

  test('verify works without a network', async () => {
    writeFiles(project, {
      'no-network.mjs': `import net from 'node:net'
net.Socket.prototype.connect = () => { throw new Error('There is no network.') }
globalThis.fetch = () => { throw new Error('There is no network.') }
`,
    })
    const verify = (file: string) =>
      run('npx', ['--no-install', 'countersign', 'verify', file, '--jwks', 'jwks.json'], {
        cwd: project,
        env: { NODE_OPTIONS: `--import=${join(project, 'no-network.mjs')}` },
      })
    const [good, bad] = [await verify('receipt.json'), await verify('changed.json')]
    expect([good.code, good.stdout]).toEqual([0, expect.stringContaining('Result: valid')])
    expect([bad.code, bad.stdout]).toEqual([1, expect.stringContaining('Result: NOT VALID')])
  })

  test('serve starts the service of the package, with its database, API page and dashboard', async () => {
    service = await startProgram('npx', ['--no-install', 'countersign', 'serve'], { cwd: project, env: { PORT: '0' } })
    expect(service.output()).toContain(join(project, '.countersign'))
    expect(service.output()).toContain('npx countersign demo')
    for (const path of [
      '/api/health',
      '/dashboard',
      '/docs',
      '/docs/guides/money',
      '/docs/assets/docs.js',
      '/openapi.json',
    ])
      expect([path, (await fetch(`${service.url}${path}`)).status]).toEqual([path, 200])
  })
})

/** The host's own Node if it is that old, else one from npm. */
async function findNode(major: number): Promise<string> {
  if (Number(process.versions.node.split('.')[0]) === major) return process.execPath
  const version = await run('node', ['--version'], { cwd: project })
  if (version.stdout.startsWith(`v${major}.`)) return 'node'
  const name = `node-${process.platform}-${process.arch}`
  const folder = await install([`${name}@${major}`])
  return join(folder, 'node_modules', name, 'bin/node')
}

describe('@countersign/sdk and @countersign/proof', () => {
  test.each([20, 24])('run in plain Node %i', async (major) => {
    const node = await findNode(major)
    expect(await mustRun(node, ['verify.js'], { cwd: project })).toBe('true false\n')
    writeFiles(project, {
      'prices.js': `import { createClient } from '@countersign/sdk'
const client = createClient({ baseUrl: process.env.URL })
const { agents } = await client.get('/api/pricing')
console.log(process.versions.node.split('.')[0], agents.length > 0)
`,
    })
    expect(await mustRun(node, ['prices.js'], { cwd: project, env: { URL: service.url } })).toBe(`${major} true\n`)
  })

  test('the sample of README pays and prints its result in plain Node 20', async () => {
    const [, sample] = /^```js\n\/\/ pay\.mjs\n(.*?)^```/ms.exec(readFileSync(join(repository, 'README.md'), 'utf8'))!
    writeFiles(project, { 'pay.mjs': sample!.replace('http://127.0.0.1:4020', service.url) })
    const output = await mustRun(await findNode(20), ['pay.mjs'], { cwd: project })
    expect(output).toMatch(/0\.\d+ USDC, receipt rcpt_\S+, verified: true\n$/)
  })

  test('compile in a strict TypeScript project, and a wrong field does not', async () => {
    const use = (task: string) => `import { verifyReceipt, type Verification } from '@countersign/proof'
import { type Client, CountersignError, createClient, type Receipt } from '@countersign/sdk'
import { accountFromKey, payingFetch } from '@countersign/sdk/pay'

export const client: Client = createClient({ baseUrl: 'http://127.0.0.1:4020' })
export async function show(receipt: Receipt, key: \`0x\${string}\`): Promise<Verification> {
  const { agents } = await client.get('/api/pricing')
  for (const { agent_id, price_usdc } of agents) console.log(agent_id.toUpperCase(), price_usdc.toFixed(2))
  await client.post('/api/route', { body: { ${task}: 'Sum 1 and 2.' } })
  createClient({ baseUrl: '', fetch: await payingFetch(await accountFromKey(key)) })
  try {
    await client.get('/api/me')
  } catch (error) {
    if (error instanceof CountersignError) console.log(error.status, error.code)
  }
  return verifyReceipt(receipt, { jwks: await client.get('/.well-known/jwks.json') })
}
`
    const compile = (moduleResolution: 'nodenext' | 'bundler', file: string) =>
      run(
        process.execPath,
        [
          join(repository, 'node_modules/typescript/bin/tsc'),
          ...['--noEmit', '--strict', '--noUncheckedIndexedAccess', '--exactOptionalPropertyTypes'],
          ...['--target', 'es2022', '--lib', 'es2022,dom', '--skipLibCheck', 'false'],
          ...[
            '--module',
            moduleResolution === 'bundler' ? 'esnext' : 'nodenext',
            '--moduleResolution',
            moduleResolution,
          ],
          file,
        ],
        { cwd: project },
      )
    writeFiles(project, { 'use.ts': use('task'), 'wrong.ts': use('tsk') })
    for (const moduleResolution of ['nodenext', 'bundler'] as const)
      expect([moduleResolution, await compile(moduleResolution, 'use.ts')]).toEqual([
        moduleResolution,
        expect.objectContaining({ code: 0, stdout: '' }),
      ])
    const wrong = await compile('nodenext', 'wrong.ts')
    expect([wrong.code, wrong.stdout]).toEqual([2, expect.stringContaining("'tsk' does not exist")])
  })

  test('are bundled for a browser without anything of Node, and only what is used', async () => {
    writeFiles(project, {
      'page/main.js': `import { verifyReceipt } from '@countersign/proof'
import { createClient } from '@countersign/sdk'
const client = createClient({ baseUrl: 'https://countersign.example' })
globalThis.result = { ok: verifyReceipt(globalThis.receipt, { jwks: globalThis.jwks }).ok, get: typeof client.get }
`,
      'page/tiny.js': `import { canonicalize } from '@countersign/proof'
globalThis.result = canonicalize({ b: 1, a: 2 })
`,
    })
    const bundle = async (entry: string) => {
      const built = await build({
        root: join(project, 'page'),
        configFile: false,
        logLevel: 'error',
        build: {
          write: false,
          target: 'es2022',
          lib: { entry, formats: ['es'], fileName: 'main' },
          // One file that can be executed here; otherwise what signs payments is a file of its own, loaded on first use.
          rollupOptions: { output: { inlineDynamicImports: true } },
        },
      })
      const [{ output }] = built as unknown as [
        { output: { type: string; isEntry?: boolean; code: string; fileName: string }[] },
      ]
      const [main] = output.filter(({ isEntry }) => isEntry)
      return { code: main!.code, all: output.map(({ code }) => code).join('\n') }
    }
    const { code, all } = await bundle('main.js')
    expect(all).not.toMatch(/["']node:|__vite-browser-external/)
    // No Node global, as in a browser or an edge runtime.
    const globals = {
      TextEncoder,
      TextDecoder,
      URL,
      atob,
      btoa,
      crypto,
      fetch,
      Headers,
      AbortSignal,
      receipt: makeReceipt(),
      jwks,
    }
    const context: Record<string, unknown> = { ...globals }
    context.globalThis = context
    runInNewContext(code.replace(/^export \{\s*\};?$/m, ''), context)
    expect(context.result).toEqual({ ok: true, get: 'function' })
    const tiny = await bundle('tiny.js')
    expect(tiny.code.length).toBeLessThan(code.length / 5)
  })
})

test('the service of the package ends on SIGTERM to npx', async () => {
  expect(await service.stop()).toBeDefined()
  // npx ends at once; the service finishes what it has begun.
  const answers = () =>
    fetch(`${service.url}/api/health`).then(
      () => true,
      () => false,
    )
  await expect.poll(answers, { timeout: 60_000 }).toBe(false)
})

test('the environment of these tests has nothing that tells npm where this repository is', () => {
  expect(Object.keys(cleanEnv()).filter((name) => /^npm_(package|lifecycle)|INIT_CWD/.test(name))).toEqual([])
})
