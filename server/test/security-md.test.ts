import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '../..')

type Row = { attack: string; files: string[]; names: string[] }

/** The rows `| attack | defence | file › test |` of the threat model; a row may name several files or tests. */
const readRows = (text: string): Row[] =>
  text.split('\n').flatMap((line) => {
    const cells = line.split(' | ').map((cell) => cell.replace(/^\| | \|$/g, ''))
    const [files, ...names] = (cells[2] ?? '').split(' › ')
    return cells.length === 3 && files?.includes('.test.ts')
      ? [{ attack: cells[0]!, files: files.split(', '), names }]
      : []
  })

/** `…` stands for what a parametrised test fills in. */
function hasTest(source: string, name: string): boolean {
  const fragments = name.split('…').map((fragment) => fragment.trim())
  return fragments.every((fragment) => source.includes(fragment) || source.includes(fragment.replaceAll("'", "\\'")))
}

const findMissing = (text: string): string[] =>
  readRows(text).flatMap(({ files, names }) =>
    files.flatMap((file) => {
      const path = join(root, file)
      if (!existsSync(path)) return [file]
      const source = readFileSync(path, 'utf8')
      return names.filter((name) => !hasTest(source, name)).map((name) => `${file} › ${name}`)
    }),
  )

const security = readFileSync(join(root, 'SECURITY.md'), 'utf8')

test('every test that SECURITY.md names exists', () => {
  expect(readRows(security).length).toBeGreaterThan(20)
  expect(findMissing(security)).toEqual([])
})

test('every attack of the threat model names a test', () => {
  const [, threats] = security.split('## What holds')
  const rows = threats!.split('\n').filter((line) => /^\| (?!Attack)/.test(line))
  const named = new Set(readRows(security).map(({ attack }) => attack))
  expect(rows.filter((line) => !named.has(line.split(' | ')[0]!.slice(2)))).toEqual([])
})

test('a test or a file that is gone is found', () => {
  // Put together here, so that this file does not contain the name.
  const name = ['no test', 'has this name'].join(' ')
  expect(findMissing(`| a | b | server/test/security-md.test.ts › ${name} |`)).toHaveLength(1)
  expect(findMissing('| a | b | server/test/nothing.test.ts › a test |')).toHaveLength(1)
})
