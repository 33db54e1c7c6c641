/**
 * `npm run test:soak -- sumdb`: fetches Go and golang.org/x/mod from Debian into a temporary folder, without installing
 * them, builds judge.go and runs the test with it.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const folder = mkdtempSync(join(tmpdir(), 'countersign-go-'))
const run = (command: string, args: string[], env: Record<string, string> = {}): string => {
  const { status, stdout, error } = spawnSync(command, args, {
    cwd: folder,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...env },
  })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${status ?? error?.message}.`)
  return stdout
}

try {
  // `golang-go` is a package of links; the compiler and its library are in those that carry the version.
  const version = /golang-(\d+\.\d+)-go/.exec(run('apt-cache', ['depends', 'golang-go']))?.[1]
  if (version === undefined) throw new Error('Debian has no golang-go here.')
  run('apt-get', ['download', `golang-${version}-go`, `golang-${version}-src`, 'golang-golang-x-mod-dev'])
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.deb'))) run('dpkg', ['-x', file, 'root'])
  const packages = join(folder, 'gopath/src/golang.org/x')
  mkdirSync(packages, { recursive: true })
  symlinkSync(join(folder, 'root/usr/share/gocode/src/golang.org/x/mod'), join(packages, 'mod'))
  const goRoot = join(folder, 'root/usr/lib', `go-${version}`)
  const judge = join(folder, 'judge')
  run(join(goRoot, 'bin/go'), ['build', '-o', judge, resolve(import.meta.dirname, 'judge.go')], {
    GO111MODULE: 'off',
    GOPATH: join(folder, 'gopath'),
    GOROOT: goRoot,
    GOCACHE: join(folder, 'cache'),
    CGO_ENABLED: '0',
  })
  const repository = resolve(import.meta.dirname, '../../..')
  const { status } = spawnSync(process.execPath, ['scripts/test-long.mjs', 'server/test/sumdb'], {
    cwd: repository,
    stdio: 'inherit',
    env: { ...process.env, SUMDB_JUDGE: judge },
  })
  process.exitCode = status ?? 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
