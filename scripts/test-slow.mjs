// `long`: crash, race, fuzz and browser tests. `soak`: those that take many minutes for one guarantee.
import { spawn } from 'node:child_process'

const [suite, ...filters] = process.argv.slice(2)
const vitest = spawn(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', ...filters], {
  stdio: 'inherit',
  env: { ...process.env, COUNTERSIGN_TESTS: suite },
})
vitest.on('exit', (code) => process.exit(code ?? 1))
