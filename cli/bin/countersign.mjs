#!/usr/bin/env node
// Plain JavaScript, because the host's Node may be as old as 20. A clone has the source, which needs Node 24; the npm package
// has what is built of it, which runs on this Node.
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const source = fileURLToPath(new URL('../src/main.ts', import.meta.url))
if (existsSync(source)) {
  process.argv.splice(2, 0, source)
  await import('../../launch.mjs')
} else {
  await import('../dist/main.js')
}
