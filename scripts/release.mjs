// `npm run release -- version 1.8.0` writes one version everywhere. `npm run release -- pack` packs all packages into
// release/. `npm run release -- publish` publishes these tarballs, in the order of their dependencies, with provenance.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')
const packages = ['proof', 'sdk', 'server', 'cli']
const folder = join(root, 'release')
const readManifest = (name) => JSON.parse(readFileSync(join(root, name, 'package.json'), 'utf8'))
const run = (command, args, env = {}) =>
  execFileSync(command, args, { cwd: root, stdio: 'inherit', env: { ...process.env, ...env } })
const fail = (message) => {
  console.error(message)
  process.exit(2)
}

function setVersion(version) {
  if (!/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version ?? '')) fail('Give the version, such as 1.8.0.')
  for (const name of ['.', ...packages, 'web']) {
    const manifest = { ...readManifest(name), version }
    for (const kind of ['dependencies', 'optionalDependencies'])
      for (const dependency of Object.keys(manifest[kind] ?? {}))
        if (dependency.startsWith('@countersign/')) manifest[kind][dependency] = version
    writeFileSync(join(root, name, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
  }
  run('npm', ['install', '--package-lock-only', '--ignore-scripts'])
  console.log(`All packages are ${version}. Write what changed into CHANGELOG.md.`)
}

/** Provenance compares the repository in the manifest with the one that the build runs in. */
function repositoryUrl() {
  const { GITHUB_SERVER_URL, GITHUB_REPOSITORY, COUNTERSIGN_REPOSITORY } = process.env
  if (COUNTERSIGN_REPOSITORY) return COUNTERSIGN_REPOSITORY
  return GITHUB_REPOSITORY ? `git+${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}.git` : undefined
}

function pack() {
  const { version } = readManifest('.')
  if (!readFileSync(join(root, 'CHANGELOG.md'), 'utf8').includes(`\n## ${version}\n`))
    fail(`CHANGELOG.md has no section for ${version}.`)
  const url = repositoryUrl()
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder)
  const workspaces = packages.flatMap((name) => ['--workspace', name])
  run('npm', ['pack', ...workspaces, '--pack-destination', folder], url ? { COUNTERSIGN_REPOSITORY: url } : {})
}

/** Publishes what `pack` made and the tests used, not a second build. `--dry-run` publishes nothing. */
function publish(flags) {
  const isDryRun = flags.includes('--dry-run')
  if (!isDryRun && !repositoryUrl())
    fail(
      'Set COUNTERSIGN_REPOSITORY (git+https://….git) and pack again: provenance needs the address of the repository.',
    )
  for (const name of packages) {
    const { name: packageName, version } = readManifest(name)
    const tarball = join(folder, `${packageName.replace('@', '').replace('/', '-')}-${version}.tgz`)
    if (!existsSync(tarball)) fail(`${tarball} is missing: run \`npm run release -- pack\` first.`)
    // A dry run needs no identity of a build service.
    run('npm', ['publish', tarball, ...(isDryRun ? ['--dry-run', '--no-provenance'] : ['--provenance'])])
  }
}

const [command, ...args] = process.argv.slice(2)
const commands = { version: () => setVersion(args[0]), pack, publish: () => publish(args) }
if (!commands[command]) fail(`Commands: ${Object.keys(commands).join(', ')}.`)
commands[command]()
