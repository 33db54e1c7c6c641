import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { REPOSITORY } from './bench-service.ts'

export type Checkout = { root: string; remove(): void }

const git = (cwd: string, ...flags: string[]) =>
  execFileSync('git', flags, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim()

/** An earlier commit in a temporary folder with its packages, or the reason why there is none. */
export function checkOut(commit: string): Checkout | { reason: string } {
  try {
    git(REPOSITORY, 'cat-file', '-e', `${commit}^{commit}`)
  } catch {
    return { reason: `the history does not contain ${commit} (a shallow clone, or an archive without .git)` }
  }
  const root = mkdtempSync(join(tmpdir(), `countersign-${commit}-`))
  const remove = () => rmSync(root, { recursive: true, force: true })
  try {
    git(root, 'clone', '--quiet', '--shared', '--no-checkout', REPOSITORY, '.')
    git(root, 'checkout', '--quiet', '--detach', commit)
    installPackages(root)
    return { root, remove }
  } catch (error) {
    remove()
    return { reason: `its packages could not be installed: ${(error as Error).message.slice(0, 300)}` }
  }
}

/** Hard links are enough when both commits lock the same packages. */
function installPackages(root: string) {
  const lock = (folder: string) => readFileSync(join(folder, 'package-lock.json'), 'utf8')
  if (lock(root) !== lock(REPOSITORY)) {
    execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: root, stdio: 'pipe' })
    return
  }
  const packages = realpathSync(join(REPOSITORY, 'node_modules'))
  execFileSync('cp', ['-al', packages, join(root, 'node_modules')], { stdio: 'pipe' })
  const dashboard = join(REPOSITORY, 'web/dist')
  if (existsSync(dashboard)) cpSync(dashboard, join(root, 'web/dist'), { recursive: true })
}
