import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { INSTALL_LIMIT_MS, installPackages } from '../install-packages.ts'
import { cleanEnv, mustRun, run, writeFiles } from './packed.ts'

/** The release script in a clone of its own, against a real registry on loopback. Only a soak runs it: it installs a registry. */
const repository = resolve(import.meta.dirname, '../../..')
const REGISTRY = 'verdaccio@6.8.0'
const NAMES = ['@countersign/proof', '@countersign/sdk', '@countersign/server', 'countersign']

describe.runIf(process.env.RELEASE_REGISTRY === 'verdaccio')('npm run release', () => {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-release-'))
  const clone = join(folder, 'clone')
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=Test', '-c', 'user.email=test@example.com', ...args], {
      cwd: clone,
      encoding: 'utf8',
    })
  const { version } = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8')) as { version: string }
  let registry: ChildProcess
  let url: string
  let installed: Awaited<ReturnType<typeof installPackages>>

  beforeAll(async () => {
    // What is committed and what is not yet: the script is tested as it is in this folder.
    execFileSync('git', ['clone', '-q', repository, clone])
    symlinkSync(join(repository, 'node_modules'), join(clone, 'node_modules'))
    writeFileSync(join(clone, '.git/info/exclude'), 'node_modules\n')
    writeFileSync(join(clone, 'scripts/release.mjs'), readFileSync(join(repository, 'scripts/release.mjs')))
    if (git('status', '--porcelain') !== '') git('commit', '-qam', 'The release script under test')

    installed = await installPackages([REGISTRY], { overrides: { 'node-fetch': '2.7.0' } })
    const port = await findFreePort()
    url = `http://127.0.0.1:${port}`
    writeFiles(folder, {
      'registry.yaml': `storage: ${join(folder, 'storage')}
auth: { htpasswd: { file: ${join(folder, 'htpasswd')} } }
packages: { '**': { access: $all, publish: $anonymous } }
log: { type: stdout, format: pretty, level: warn }
`,
      npmrc: `registry=${url}\n//127.0.0.1:${port}/:_authToken=anybody\n`,
    })
    registry = spawn(
      process.execPath,
      [
        join(installed.folder, 'node_modules/verdaccio/bin/verdaccio'),
        ...['--config', join(folder, 'registry.yaml'), '--listen', `127.0.0.1:${port}`],
      ],
      { cwd: folder, env: cleanEnv(), stdio: 'ignore' },
    )
    await vi.waitFor(async () => expect((await fetch(`${url}/-/ping`)).ok).toBe(true), {
      timeout: 60_000,
      interval: 200,
    })
  }, INSTALL_LIMIT_MS)
  afterAll(() => {
    registry?.kill()
    installed?.remove()
    rmSync(folder, { recursive: true, force: true })
  })

  const release = (...args: string[]) =>
    run('npm', ['run', 'release', '--', ...args], {
      cwd: clone,
      env: { npm_config_userconfig: join(folder, 'npmrc') },
      limitMs: 400_000,
    })
  const published = async (name: string) =>
    Object.keys(
      (
        await fetch(`${url}/${name.replace('/', '%2f')}`).then(
          (response) => response.json() as Promise<{ versions?: object }>,
        )
      ).versions ?? {},
    )

  test('refuses a tree with changes, whatever it is asked to do', async () => {
    appendFileSync(join(clone, 'README.md'), 'A change.\n')
    for (const args of [['version', '9.9.9'], ['pack'], ['publish', '--dry-run']]) {
      const { code, stderr } = await release(...args)
      expect([args, code, stderr]).toEqual([args, 2, expect.stringContaining('README.md')])
    }
    git('checkout', '-q', 'README.md')
    expect(existsSync(join(clone, 'release'))).toBe(false)
  })

  test('refuses to publish before packing, without an address for provenance, and a flag that it does not know', async () => {
    expect((await release('publish', '--no-provenance')).stderr).toContain('run `npm run release -- pack` first')
    expect((await release('publish')).stderr).toContain('COUNTERSIGN_REPOSITORY')
    expect((await release('publish', '--force')).stderr).toContain('Unknown: --force')
  })

  test('packs all packages; a dry run publishes nothing', async () => {
    const packed = await release('pack')
    expect(packed.code, packed.stderr).toBe(0)
    expect(readdirSync(join(clone, 'release')).filter((name) => name.endsWith('.tgz'))).toHaveLength(NAMES.length)
    expect(git('status', '--porcelain')).toBe('')
    const dry = await release('publish', '--dry-run')
    expect([dry.code, dry.stdout], dry.stderr).toEqual([
      0,
      expect.stringContaining(`Would have published @countersign/proof ${version}`),
    ])
    for (const name of NAMES) expect(await published(name)).toEqual([])
  })

  test('refuses tarballs of another commit', async () => {
    git('commit', '-q', '--allow-empty', '-m', 'Another commit')
    const { code, stderr } = await release('publish', '--no-provenance')
    expect([code, stderr]).toEqual([2, expect.stringContaining('of another commit')])
    git('reset', '-q', '--hard', 'HEAD~1')
  })

  test('publishes all packages, which then install from the registry', async () => {
    const { code, stdout, stderr } = await release('publish', '--no-provenance')
    expect([code, stdout], stderr).toEqual([0, expect.stringContaining(`countersign ${version}.`)])
    for (const name of NAMES) expect(await published(name)).toEqual([version])
    const project = join(folder, 'project')
    writeFiles(project, {
      'package.json': '{"private":true,"type":"module"}',
      '.npmrc': `@countersign:registry=${url}\n`,
      'use.js': "import { createClient } from '@countersign/sdk'\nconsole.log(typeof createClient)\n",
    })
    await mustRun('npm', ['install', '--no-audit', '--no-fund', `@countersign/sdk@${version}`], {
      cwd: project,
      limitMs: 400_000,
    })
    expect(await mustRun('node', ['use.js'], { cwd: project })).toBe('function\n')
  })

  test('refuses a version that exists, also in a dry run; --resume passes over what has the same content', async () => {
    for (const flags of [['--no-provenance'], ['--dry-run']]) {
      const { code, stderr } = await release('publish', ...flags)
      expect([code, stderr]).toEqual([2, expect.stringContaining(`@countersign/proof ${version} is published already`)])
    }
    const resumed = await release('publish', '--no-provenance', '--resume')
    expect([resumed.code, resumed.stdout], resumed.stderr).toEqual([0, expect.stringContaining('Published nothing.')])
    appendFileSync(join(clone, 'proof/README.md'), 'Other content.\n')
    git('commit', '-qam', 'Other content')
    expect((await release('pack')).code).toBe(0)
    const { code, stderr } = await release('publish', '--no-provenance', '--resume')
    expect([code, stderr]).toEqual([2, expect.stringContaining('with another content')])
    expect(await published('@countersign/proof')).toEqual([version])
  })

  test('a new version is written everywhere and is not packed before CHANGELOG.md describes it', async () => {
    // The lockfile is made by npm, which needs the packages of others.
    const env = { npm_config_userconfig: '/dev/null' }
    const set = await run('npm', ['run', 'release', '--', 'version', '9.9.9'], { cwd: clone, env, limitMs: 400_000 })
    expect(set.code, set.stderr).toBe(0)
    for (const name of ['.', 'proof', 'sdk', 'server', 'cli', 'web'])
      expect(JSON.parse(readFileSync(join(clone, name, 'package.json'), 'utf8')).version).toBe('9.9.9')
    git('commit', '-qam', '9.9.9')
    expect((await release('pack')).stderr).toContain('CHANGELOG.md has no section for 9.9.9')
  })
})

async function findFreePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const { port } = server.address() as AddressInfo
  await new Promise((closed) => server.close(closed))
  return port
}
