/** Runs the benchmarks: `npm run bench`, or one of them: `npm run bench settlement`. Each compares both sides in one run. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

const benches = ['group-commit', 'settlement', 'basis', 'log']
const selected = process.argv.slice(2)

for (const name of selected.length > 0 ? selected : benches) {
  if (!benches.includes(name)) {
    console.error(`Unknown benchmark '${name}'. Benchmarks: ${benches.join(', ')}.`)
    process.exit(1)
  }
  console.log(`\n== ${name}`)
  const { status } = spawnSync(process.execPath, [join(import.meta.dirname, `${name}.ts`)], { stdio: 'inherit' })
  if (status !== 0) process.exitCode = 1
}
