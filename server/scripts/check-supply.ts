import { execFileSync } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import {
  checkLicences,
  checkLockfile,
  checkManifest,
  checkSbom,
  findSecrets,
  type Lockfile,
  type Sbom,
} from './supply-checks.ts'

/** `npm run check:supply`: without a network, from the lockfile and the tracked files. */
const root = resolve(import.meta.dirname, '../..')
const MAX_FILE_BYTES = 4_000_000
/** Keys in test data, which guard nothing. */
const TEST_KEYS: string[] = [
  // Invented by who wrote `server/data/verification/development.jsonl`: outputs that leak a secret.
  'a8Xk2PqL0vTz55RmYw91BcDe',
  '204817736-88213',
  'T7uQm3ZxV1bN8cKd',
  'Qm8sVd2LkXo77yTz',
]

const readJson = (path: string) => JSON.parse(readFileSync(join(root, path), 'utf8'))
const run = (command: string, args: string[]) =>
  execFileSync(command, args, {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
    stdio: ['ignore', 'pipe', 'ignore'],
  })

const lockfile: Lockfile = readJson('package-lock.json')
const sbom: Sbom = JSON.parse(run('npm', ['sbom', '--sbom-format=cyclonedx', '--package-lock-only', '--offline']))
const files = run('git', ['ls-files', '-z'])
  .split('\0')
  .filter((path) => path !== '' && statSync(join(root, path), { throwIfNoEntry: false })?.isFile())
const texts = files.filter((path) => statSync(join(root, path)).size < MAX_FILE_BYTES)
const manifests = files.filter((path) => /(^|\/)package\.json$/.test(path))

/** Stryker is installed apart from the project, by `npm run test:mutation`. */
const mutationLockfile: Lockfile = readJson('scripts/mutation/package-lock.json')

const results: [check: string, faults: string[]][] = [
  ['licences', checkLicences(lockfile)],
  [
    'lockfile',
    [
      ...checkLockfile(lockfile),
      ...checkLockfile(mutationLockfile),
      ...manifests.flatMap((path) => checkManifest(path, readJson(path))),
    ],
  ],
  ['bill of materials', checkSbom(sbom, lockfile)],
  ['secrets', texts.flatMap((path) => findSecrets(path, readFileSync(join(root, path), 'utf8'), TEST_KEYS))],
]
for (const [check, faults] of results) {
  console.log(`${check}: ${faults.length === 0 ? 'ok' : `${faults.length} found`}`)
  for (const fault of faults.slice(0, 20)) console.log(`  ${fault}`)
}
console.log(`${sbom.components?.length ?? 0} components, ${texts.length} files`)
process.exit(results.some(([, faults]) => faults.length > 0) ? 1 : 0)
