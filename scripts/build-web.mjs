// Builds the dashboard into web/dist; runs as part of `npm ci`. Does nothing without the development dependencies.
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)
try {
  require.resolve('vite/package.json')
} catch {
  console.log('vite is not installed: skipping the dashboard build.')
  process.exit(0)
}
const { build } = await import('vite')
await build({ configFile: new URL('../web/vite.config.ts', import.meta.url).pathname, logLevel: 'error' })
