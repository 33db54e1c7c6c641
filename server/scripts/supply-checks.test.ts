import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { checkLicences, checkLockfile, checkManifest, checkSbom, findSecrets } from './supply-checks.ts'

const integrity = `sha512-${'a'.repeat(86)}==`
const good = { version: '1.2.3', integrity, license: 'MIT' }
const lockfile = (entry: object) => ({ packages: { '': {}, server: {}, 'node_modules/a': { ...good, ...entry } } })

test('a production dependency with a licence that is not on the list is found', () => {
  for (const license of ['MIT', '(AFL-2.1 OR BSD-3-Clause)', 'MIT AND ISC'])
    expect(checkLicences(lockfile({ license }))).toEqual([])
  for (const license of ['GPL-3.0', 'MIT AND GPL-3.0', 'SEE LICENSE IN LICENSE.md', undefined])
    expect(checkLicences(lockfile({ license }))).toHaveLength(1)
  expect(checkLicences(lockfile({ license: 'GPL-3.0', dev: true }))).toEqual([])
})

test('a package without integrity, with an address, from Git or with an unknown install script is found', () => {
  expect(checkLockfile(lockfile({}))).toEqual([])
  expect(checkLockfile(lockfile({ integrity: undefined }))).toEqual(['node_modules/a has no SHA-512 integrity.'])
  expect(checkLockfile(lockfile({ integrity: 'sha1-abc=' }))).toHaveLength(1)
  expect(checkLockfile(lockfile({ resolved: 'https://registry.example/a.tgz' }))).toHaveLength(1)
  expect(checkLockfile(lockfile({ version: 'git+ssh://git@host/a.git' }))).toHaveLength(1)
  expect(checkLockfile(lockfile({ hasInstallScript: true }))).toHaveLength(1)
  expect(checkLockfile({ packages: { 'node_modules/esbuild': { ...good, hasInstallScript: true } } })).toEqual([])
})

test('a range, an address or a Git repository in a manifest is found', () => {
  expect(checkManifest('package.json', { dependencies: { a: '1.2.3', b: '1.0.0-beta.17' } })).toEqual([])
  for (const version of [
    '^1.2.3',
    '1',
    '*',
    'latest',
    'github:a/b',
    'git+https://host/a.git',
    'file:../a',
    'https://a',
  ])
    expect(checkManifest('package.json', { devDependencies: { a: version } })).toHaveLength(1)
})

test('a bill of materials that lacks a dependency, a hash or its format is found', () => {
  const component = { name: 'a', version: '1.2.3', purl: 'pkg:npm/a@1.2.3', hashes: [{}] }
  const sbom = (components: object[]) => ({ bomFormat: 'CycloneDX', specVersion: '1.5', components })
  expect(checkSbom(sbom([component]), lockfile({}))).toEqual([])
  expect(checkSbom(sbom([]), lockfile({}))).toEqual(['The bill of materials lacks a@1.2.3.'])
  expect(checkSbom(sbom([{ ...component, hashes: undefined }]), lockfile({}))).toHaveLength(1)
  expect(checkSbom({ components: [component] }, lockfile({}))).toHaveLength(1)
})

test('private keys and the keys of this service and of vendors are found, unless they are known test keys', () => {
  const filler = (length: number) => 'aB3'.repeat(20).slice(0, length)
  // Put together here, so that this file holds none.
  const secrets = [
    `-----BEGIN ${'PRIVATE'} KEY-----\n${filler(60)}`,
    `-----BEGIN RSA ${'PRIVATE'} KEY-----\n${filler(60)}`,
    `csk_${filler(49)}`,
    `whsec_${filler(43)}=`,
    `sk_${'live'}_${filler(24)}`,
    `AKIA${'ABCD'.repeat(4)}`,
    `ghp_${filler(36)}`,
    `npm_${filler(36)}`,
    `xoxb-${filler(24)}`,
    `AIza${filler(35)}`,
    `sk-ant-${filler(30)}`,
    `eyJ${filler(24)}.eyJ${filler(24)}.${filler(24)}`,
    `PRIVATE_KEY="0x${'1f'.repeat(32)}"`,
  ]
  for (const secret of secrets) {
    expect(findSecrets('a.ts', `first line\nconst key = '${secret}'`), secret.slice(0, 30)).toEqual([
      expect.stringMatching(/^a\.ts:2 looks like an? /),
    ])
    expect(findSecrets('a.ts', secret, [secret.slice(0, 20)])).toEqual([])
  }
  expect(findSecrets('a.ts', 'sk_test_canary whsec_AAAA csk_live 0xddf252ad1be2c89b69c2b068fc378daa')).toEqual([])
})

test('a machine installs the EVM that is for it, and not those of six others', () => {
  const { packages } = JSON.parse(readFileSync(resolve(import.meta.dirname, '../../package-lock.json'), 'utf8')) as {
    packages: Record<string, { os?: string[]; cpu?: string[]; optional?: boolean }>
  }
  const binaries = Object.entries(packages).filter(([path]) => /\/edr-[a-z]/.test(path))
  expect(binaries).toHaveLength(7)
  for (const [path, { os, cpu, optional }] of binaries)
    expect({ path, os, cpu, optional }, 'run node scripts/narrow-lockfile.mjs').toEqual({
      path,
      os: [expect.stringMatching(/^(darwin|linux|win32)$/)],
      cpu: [expect.stringMatching(/^(arm64|x64)$/)],
      optional: true,
    })
})
