/** Runs the benchmarks: `npm run bench`, or one of them: `npm run bench settlement`. Each compares both sides in one run. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

const benchmarks = ['run-cost', 'targets', 'group-commit', 'settlement', 'basis', 'log', 'neighbours']
const selectedNames = process.argv.slice(2).filter((argument) => !argument.startsWith('--'))
/** Flags are for the benchmark: `npm run bench run-cost -- --verbose`. */
const flags = process.argv.slice(2).filter((argument) => argument.startsWith('--'))

for (const name of selectedNames.length > 0 ? selectedNames : benchmarks) {
  if (!benchmarks.includes(name)) {
    console.error(`Unknown benchmark '${name}'. Benchmarks: ${benchmarks.join(', ')}.`)
    process.exit(1)
  }
  console.log(`\n== ${name}`)
  const { status } = spawnSync(process.execPath, [join(import.meta.dirname, `${name}.ts`), ...flags], {
    stdio: 'inherit',
  })
  if (status !== 0) process.exitCode = 1
}
