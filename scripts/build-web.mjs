// Builds the dashboard into web/dist; part of `npm ci`. Without the development dependencies there is nothing to build with.
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)
try {
  require.resolve('vite/package.json')
} catch {
  console.log('vite is not installed, so the dashboard is not built.')
  process.exit(0)
}
const { build } = await import('vite')
await build({ configFile: new URL('../web/vite.config.ts', import.meta.url).pathname, logLevel: 'error' })
