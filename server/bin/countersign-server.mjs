#!/usr/bin/env node
// Plain JavaScript, because the host's Node may be as old as 20. A clone has the source, the npm package what is built of it.
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { runOnRequiredNode } from './required-node.mjs'

const pathOf = (file) => fileURLToPath(new URL(file, import.meta.url))
const source = pathOf('../src/main.ts')
runOnRequiredNode([existsSync(source) ? source : pathOf('../dist/main.js'), ...process.argv.slice(2)])
