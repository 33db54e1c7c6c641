import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { build } from 'vite'

const root = resolve(import.meta.dirname, '../../..')
const web = join(root, 'web')
const dist = join(web, 'dist')
const sources = ['web/src', 'web/public', 'web/index.html', 'web/vite.config.ts', 'sdk/src/client.ts', 'proof/src']

const modifiedAt = (path: string): number => {
  const { mtimeMs } = statSync(path)
  if (!statSync(path).isDirectory()) return mtimeMs
  return Math.max(0, ...readdirSync(path).map((name) => modifiedAt(join(path, name))))
}

/** Builds the dashboard when it is missing or older than its sources, in a staging folder that then replaces `dist`. */
export async function buildDashboardIfStale(): Promise<void> {
  const page = join(dist, 'index.html')
  const newest = Math.max(...sources.map((path) => modifiedAt(join(root, path))))
  if (existsSync(page) && statSync(page).mtimeMs >= newest) return
  const stagingFolder = mkdtempSync(join(root, 'node_modules', '.dashboard-'))
  const newDist = join(stagingFolder, 'new')
  // The test runner's own value would build React for development, which is larger and several times slower.
  const { NODE_ENV } = process.env
  process.env.NODE_ENV = 'production'
  await build({
    configFile: join(web, 'vite.config.ts'),
    logLevel: 'error',
    build: { outDir: newDist, emptyOutDir: true },
  })
  process.env.NODE_ENV = NODE_ENV
  if (existsSync(dist)) renameSync(dist, join(stagingFolder, 'old'))
  renameSync(newDist, dist)
  rmSync(stagingFolder, { recursive: true, force: true })
}
