import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { mustRun, run } from './packages/packed.ts'

/** Some packages bring a gigabyte, which takes minutes on a busy machine. */
export const INSTALL_LIMIT_MS = 1_200_000
const SCRIPT_LIMIT_MS = 120_000

/** viem's newest version wants a release of `ox` that some mirrors lack; this is the one that this repository uses. */
const VIEM = '2.57.0'

/**
 * Installs other people's packages from npm into a temporary folder, so that they are never in the lockfile. `plain` is for
 * our own tarballs: with install scripts and without anything that a stranger would not have in his project.
 */
export async function installPackages(
  packages: readonly string[],
  options: { plain?: boolean; overrides?: Record<string, string> } = {},
) {
  const { plain = false } = options
  const folder = mkdtempSync(join(tmpdir(), 'countersign-packages-'))
  const remove = () => rmSync(folder, { recursive: true, force: true })
  // npm refuses to override what is installed by name.
  const usual = plain || packages.some((name) => name.startsWith('viem@')) ? {} : { viem: VIEM }
  const overrides = { ...usual, ...options.overrides }
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module', overrides }))
  const flags = ['--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error']
  await mustRun('npm', ['install', ...flags, ...(plain ? [] : ['--ignore-scripts']), ...packages], {
    cwd: folder,
    limitMs: INSTALL_LIMIT_MS,
  }).catch((error) => {
    remove()
    throw error
  })
  const require = createRequire(join(folder, 'package.json'))
  const start = (args: string[], env: Record<string, string> = {}) =>
    run(process.execPath, args, { cwd: folder, env, limitMs: SCRIPT_LIMIT_MS })
  return {
    folder,
    // biome-ignore lint/suspicious/noExplicitAny: the types of these packages are not installed
    load: (name: string): Promise<any> => import(pathToFileURL(require.resolve(name)).href),
    bin: (name: string, args: string[]) => start([join(folder, 'node_modules/.bin', name), ...args]),
    script: (text: string, env: Record<string, string>) => {
      writeFileSync(join(folder, 'script.mjs'), text)
      return start(['script.mjs'], env)
    },
    remove,
  }
}

/** What a script printed as its result. */
export function readResult({ stdout, stderr }: { stdout: string; stderr: string }) {
  const line = stdout.split('\n').find((text) => text.startsWith('RESULT '))
  if (!line) throw new Error(`There is no result:\n${stdout.slice(-2_000)}\n${stderr.slice(-2_000)}`)
  // biome-ignore lint/suspicious/noExplicitAny: tests assert on the result
  return JSON.parse(line.slice('RESULT '.length)) as { status: number; body: any }
}
