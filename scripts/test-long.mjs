// Runs the long tests: crash, race, fuzz and browser.
import { spawn } from 'node:child_process'

const filters = process.argv.slice(2)
const vitest = spawn(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', ...filters], {
  stdio: 'inherit',
  env: { ...process.env, COUNTERSIGN_TESTS: 'long' },
})
vitest.on('exit', (code) => process.exit(code ?? 1))
