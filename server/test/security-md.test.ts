import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '../..')

type Row = { attack: string; file: string; name: string }

/** The rows `| attack | defence | file › test |` of the threat model. */
const readRows = (text: string): Row[] =>
  text.split('\n').flatMap((line) => {
    const cells = line.split(/(?<!\\)\|/).map((cell) => cell.trim())
    const [file, name] = (cells[3] ?? '').split(' › ')
    return cells.length === 5 && file && name ? [{ attack: cells[1]!, file, name }] : []
  })

/** `…` stands for what a parametrised test fills in. */
function hasTest(source: string, name: string): boolean {
  const fragments = name
    .split('…')
    .map((fragment) => fragment.trim())
    .filter((fragment) => fragment !== '')
  return fragments.every((fragment) => source.includes(fragment) || source.includes(fragment.replaceAll("'", "\\'")))
}

const findMissing = (text: string): string[] =>
  readRows(text)
    .filter(({ file, name }) => {
      const path = join(root, file)
      return !existsSync(path) || !hasTest(readFileSync(path, 'utf8'), name)
    })
    .map(({ file, name }) => `${file} › ${name}`)

const security = readFileSync(join(root, 'SECURITY.md'), 'utf8')

test('every test that SECURITY.md names exists', () => {
  expect(readRows(security).length).toBeGreaterThan(20)
  expect(findMissing(security)).toEqual([])
})

test('every attack of the threat model names a test', () => {
  const tables = security.split('\n').filter((line) => /^\| (?!Attack|Attacker|-)/.test(line))
  const withoutTest = tables.filter((line) => line.split(/(?<!\\)\|/).length === 5 && !line.includes(' › '))
  const attackers = ['Stranger', 'Payer', 'Tenant', 'Provider', 'Reader of public data', 'Operator of the log']
  expect(withoutTest.filter((line) => !attackers.some((name) => line.startsWith(`| ${name} |`)))).toEqual([])
})

test('a test or a file that is gone is found', () => {
  // Put together here, so that this file does not contain the name.
  const name = ['no test', 'has this name'].join(' ')
  expect(findMissing(`| a | b | server/test/security-md.test.ts › ${name} |`)).toHaveLength(1)
  expect(findMissing('| a | b | server/test/nothing.test.ts › a test |')).toHaveLength(1)
})
