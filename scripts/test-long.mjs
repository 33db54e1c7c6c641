// Crash, race, fuzz and browser tests: those that need longer than the quick suite allows.
import { spawn } from 'node:child_process'

const vitest = spawn(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', ...process.argv.slice(2)], {
  stdio: 'inherit',
  env: { ...process.env, COUNTERSIGN_TESTS: 'long' },
})
vitest.on('exit', (code) => process.exit(code ?? 1))
