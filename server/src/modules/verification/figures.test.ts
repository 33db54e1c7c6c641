import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import {
  type LabelledOutput,
  measureVerification,
  renderConfusionTable,
  summarise,
} from '../../../scripts/confusion-table.ts'

const read = (path: string) => readFileSync(new URL(`../../../../${path}`, import.meta.url), 'utf8')
const documented = (name: string) =>
  read('docs/verification.md').split(`<!-- ${name} -->\n`)[1]?.split(`\n<!-- /${name} -->`)[0]

const measure = (name: string) =>
  measureVerification(
    read(`server/data/verification/${name}.jsonl`)
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as LabelledOutput),
  )

test('the figures in the guide are those of the committed sets, and none got worse', async () => {
  const ordinary = await measure('ordinary-validation')
  expect(renderConfusionTable(ordinary)).toBe(documented('ordinary-validation'))
  const week = summarise(ordinary)
  expect([week.right, week.bad]).toEqual([1_500, 1_308])
  expect(week.badRefused / week.bad).toBeGreaterThanOrEqual(0.95)
  expect(week.rightRefused / week.right).toBeLessThanOrEqual(0.02)
  const validation = await measure('validation')
  expect(renderConfusionTable(validation)).toBe(documented('validation'))
  const { right, rightRefused, bad, badRefused } = summarise(validation)
  expect([right, bad]).toEqual([184, 175])
  // The hard set: what was measured.
  expect(badRefused).toBeGreaterThanOrEqual(152)
  expect(rightRefused).toBeLessThanOrEqual(8)
}, 600_000)

test('the set that the checks were written on stays refused where it is wrong, and accepted where it is right', async () => {
  const development = await measure('development')
  expect(renderConfusionTable(development)).toBe(documented('development'))
  expect(summarise(development).rightRefused).toBeLessThanOrEqual(4)
  const calibration = await measure('calibration')
  const refused = calibration.filter(({ item, verified }) => item.label === 'right' && !verified)
  // They share no word with their task, break off by order, or say honestly that nobody can know.
  expect(refused.map(({ item }) => item.id)).toEqual([
    'm1-160',
    'o1-115',
    'o2-094',
    't2-102',
    'y5-020',
    'a1-111',
    'y6-007',
    'y6-013',
    'y6-028',
    'y6-031',
    'y6-044',
    'y6-059',
    'y6-116',
    'y6-123',
    'y6-124',
    'y6-139',
    'y6-156',
    'y6-160',
    'd2-178',
    'e1-108',
    'e2-008',
    'e2-112',
  ])
  // One sorts by what it computed.
  const { rightRefused, badRefused } = summarise(await measure('ordinary'))
  expect(rightRefused).toBeLessThanOrEqual(1)
  expect(badRefused).toBeGreaterThanOrEqual(1_805)
}, 600_000)
