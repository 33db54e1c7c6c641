import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { build } from 'vite'

const root = resolve(import.meta.dirname, '../../..')
const web = join(root, 'web')
const dist = join(web, 'dist')
const sources = ['web/src', 'web/public', 'web/index.html', 'web/vite.config.ts', 'sdk/src/client.ts', 'proof/src']

const changedAt = (path: string): number => {
  const { mtimeMs } = statSync(path)
  if (!statSync(path).isDirectory()) return mtimeMs
  return Math.max(0, ...readdirSync(path).map((name) => changedAt(join(path, name))))
}

/** Builds the dashboard when there is none, or when what it is made of is newer. Built aside and put in place at once. */
export async function builtDashboard(): Promise<void> {
  const page = join(dist, 'index.html')
  const newest = Math.max(...sources.map((path) => changedAt(join(root, path))))
  if (existsSync(page) && statSync(page).mtimeMs >= newest) return
  const aside = mkdtempSync(join(root, 'node_modules', '.dashboard-'))
  const fresh = join(aside, 'new')
  await build({
    configFile: join(web, 'vite.config.ts'),
    logLevel: 'error',
    build: { outDir: fresh, emptyOutDir: true },
  })
  if (existsSync(dist)) renameSync(dist, join(aside, 'old'))
  renameSync(fresh, dist)
  rmSync(aside, { recursive: true, force: true })
}
