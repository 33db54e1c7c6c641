// `npm run release -- version 1.8.0` writes one version everywhere. `npm run release -- pack` packs all packages into
// release/. `npm run release -- publish` publishes these tarballs, in the order of their dependencies, with provenance.
// Flags of `publish`: `--dry-run` publishes nothing; `--no-provenance` is for a registry of your own; `--resume` goes on after
// a publication that broke off, and passes over what is there with the same content.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')
const packages = ['proof', 'sdk', 'server', 'cli']
const folder = join(root, 'release')
const commitFile = join(folder, 'COMMIT')
const readManifest = (name) => JSON.parse(readFileSync(join(root, name, 'package.json'), 'utf8'))
// npm finds its settings beside the Node that runs it: the host's, not the one that `npm run` puts in front.
const hostPath = process.env.PATH.split(delimiter)
  .filter((directory) => !directory.includes('node_modules'))
  .join(delimiter)
const run = (command, args, { env = {}, ...options } = {}) =>
  execFileSync(command, args, {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, PATH: hostPath, ...env },
    ...options,
  })
const readOutput = (command, args) => run(command, args, { stdio: ['ignore', 'pipe', 'pipe'], encoding: 'utf8' }).trim()
const fail = (message) => {
  console.error(message)
  process.exit(2)
}

/** A tarball must be what its commit says. */
function requireCleanTree() {
  const changes = readOutput('git', ['status', '--porcelain'])
  if (changes !== '') fail(`Commit or remove these changes first:\n${changes}`)
  return readOutput('git', ['rev-parse', 'HEAD'])
}

function setVersion(version) {
  if (!/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version ?? '')) fail('Give the version, such as 1.8.0.')
  requireCleanTree()
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
  const commit = requireCleanTree()
  const { version } = readManifest('.')
  if (!readFileSync(join(root, 'CHANGELOG.md'), 'utf8').includes(`\n## ${version}\n`))
    fail(`CHANGELOG.md has no section for ${version}.`)
  const url = repositoryUrl()
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder)
  const workspaces = packages.flatMap((name) => ['--workspace', name])
  run('npm', ['pack', ...workspaces, '--pack-destination', folder], {
    env: url ? { COUNTERSIGN_REPOSITORY: url } : {},
  })
  writeFileSync(commitFile, commit)
}

/** The checksum of a version that is in the registry; undefined when it is not there. */
function findPublished(packageName, version) {
  try {
    return JSON.parse(readOutput('npm', ['view', `${packageName}@${version}`, 'dist.integrity', '--json']) || 'null')
  } catch (error) {
    if (/E404/.test(String(error.stderr))) return undefined
    return fail(`The registry does not say whether it has ${packageName} ${version}:\n${error.stderr}`)
  }
}

/** Publishes what `pack` made and the tests used, not a second build. Nothing is published when one package cannot be. */
function publish(flags) {
  const unknown = flags.filter((flag) => !['--dry-run', '--no-provenance', '--resume'].includes(flag))
  if (unknown.length > 0) fail(`Unknown: ${unknown.join(' ')}. There are --dry-run, --no-provenance and --resume.`)
  // A dry run needs no identity of a build service.
  const isDryRun = flags.includes('--dry-run')
  const withProvenance = !isDryRun && !flags.includes('--no-provenance')
  const commit = requireCleanTree()
  if (withProvenance && !repositoryUrl())
    fail(
      'Set COUNTERSIGN_REPOSITORY (git+https://….git) and pack again: provenance needs the address of the repository.',
    )
  const tarballs = packages.map((name) => {
    const { name: packageName, version } = readManifest(name)
    const file = join(folder, `${packageName.replace('@', '').replace('/', '-')}-${version}.tgz`)
    if (!existsSync(file)) fail(`${file} is missing: run \`npm run release -- pack\` first.`)
    return { packageName, version, file }
  })
  if (!existsSync(commitFile) || readFileSync(commitFile, 'utf8') !== commit)
    fail(`The tarballs in ${folder} are of another commit: run \`npm run release -- pack\` again.`)

  const missing = tarballs.filter(({ packageName, version, file }) => {
    const published = findPublished(packageName, version)
    if (!published) return true
    const isSame = published === `sha512-${createHash('sha512').update(readFileSync(file)).digest('base64')}`
    if (isSame && flags.includes('--resume')) return false
    return fail(
      `${packageName} ${version} is published already${isSame ? ' with the same content: --resume publishes the others' : ', with another content'}. A new release needs a new version: \`npm run release -- version …\`.`,
    )
  })
  for (const { file } of missing)
    run('npm', [
      'publish',
      file,
      ...(isDryRun ? ['--dry-run'] : []),
      withProvenance ? '--provenance' : '--no-provenance',
    ])
  const names = missing.map(({ packageName, version }) => `${packageName} ${version}`).join(', ') || 'nothing'
  console.log(`${isDryRun ? 'Would have published' : 'Published'} ${names}.`)
}

const [command, ...args] = process.argv.slice(2)
const commands = { version: () => setVersion(args[0]), pack, publish: () => publish(args) }
if (!commands[command]) fail(`Commands: ${Object.keys(commands).join(', ')}.`)
commands[command]()
