import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'

// Each package is checked with the types of the place it runs in: no Node types in `proof` and `web`, no DOM in `server`.
// The root project holds the tests of `proof` and `web`, which run in Node and drive a browser.
const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc')
const projects = ['proof', 'sdk', 'cli', 'web', 'server', '.']

const check = (project) =>
  new Promise((resolve) =>
    spawn(process.execPath, [tsc, '-p', project], { stdio: 'inherit' }).on('exit', (code) => resolve(code ?? 1)),
  )

let failed = 0
for (const project of projects) failed += (await check(project)) === 0 ? 0 : 1
process.exit(failed === 0 ? 0 : 1)
