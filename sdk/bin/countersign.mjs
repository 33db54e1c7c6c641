#!/usr/bin/env node
// Plain JavaScript, because the host's Node may be as old as 20; the launcher continues on Node 24.
import { fileURLToPath } from 'node:url'

process.argv.splice(2, 0, fileURLToPath(new URL('../src/cli/main.ts', import.meta.url)))
await import('../../launch.mjs')
