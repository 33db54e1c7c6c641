/** Each figure is a ratio measured in one run: `npm run bench`, or name one: `npm run bench settlement`. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

const benches = ['group-commit', 'settlement', 'basis', 'log']
const wanted = process.argv.slice(2)

for (const name of wanted.length > 0 ? wanted : benches) {
  if (!benches.includes(name)) {
    console.error(`There is no bench '${name}'. There are ${benches.join(', ')}.`)
    process.exit(1)
  }
  console.log(`\n== ${name}`)
  const { status } = spawnSync(process.execPath, [join(import.meta.dirname, `${name}.ts`)], { stdio: 'inherit' })
  if (status !== 0) process.exitCode = 1
}
