import { readFileSync } from 'node:fs'
import { type LabelledOutput, measureVerification, renderConfusionTable } from './confusion-table.ts'

/** Measures the checks on a labelled set: `node launch.mjs server/scripts/measure-verification.ts <set.jsonl> [--misses]`. */
const [path, ...options] = process.argv.slice(2)
if (!path) throw new Error('Name the labelled set.')
const items = readFileSync(path, 'utf8')
  .split('\n')
  .filter(Boolean)
  .map((line) => JSON.parse(line) as LabelledOutput)
const measured = await measureVerification(items)
console.log(renderConfusionTable(measured))
// Only for a set that the checks may be written on.
if (options.includes('--misses'))
  for (const { item, verified, faults } of measured)
    if (verified !== (item.label === 'right') && (item.visible || item.label === 'right'))
      console.log(item.id, item.lane, item.label, '|', item.note, '|', faults.join('; '))
