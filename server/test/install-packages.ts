import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'

const INSTALL_TIMEOUT_MS = 120_000

/** Installs other people's packages into a temporary folder, so that they are never in the lockfile. */
export async function installPackages(...specifiers: string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-packages-'))
  writeFileSync(join(folder, 'package.json'), '{"private":true,"type":"module"}')
  const options = ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--no-save', ...specifiers]
  await promisify(execFile)('npm', options, { cwd: folder, timeout: INSTALL_TIMEOUT_MS })
  const require = createRequire(join(folder, 'package.json'))
  return {
    folder,
    // biome-ignore lint/suspicious/noExplicitAny: the types of these packages are not installed
    load: (name: string): Promise<any> => import(pathToFileURL(require.resolve(name)).href),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
