import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parse } from '@babel/parser'
import { expect, test } from 'vitest'
import { usedPatterns } from './count-steps.ts'
import { baitFor, type HostileText, hostileTexts } from './hostile-texts.ts'
import { openReaders, READERS } from './readers.ts'
import { compilePattern } from './regex-steps.ts'

const SOURCE = resolve(import.meta.dirname, '../../src')
const FILES = [
  ...['adapters/lanes/offline', 'adapters/lanes', 'modules/routing', 'modules/memory', 'modules/verification'].flatMap(
    (folder) =>
      readdirSync(join(SOURCE, folder))
        .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
        .map((name) => join(folder, name)),
  ),
  'platform/strict-json.ts',
  'platform/storable-text.ts',
]

type Pattern = { source: string; flags: string }

/** The patterns written in a file, and those that the readers have built. */
function patternsOf(file: string): Pattern[] {
  const patterns: Pattern[] = []
  const visit = (node: unknown) => {
    if (typeof node !== 'object' || node === null) return
    if ((node as { type?: string }).type === 'RegExpLiteral') {
      const { pattern, flags } = node as unknown as { pattern: string; flags: string }
      patterns.push({ source: pattern, flags })
    }
    for (const value of Object.values(node)) visit(value)
  }
  const text = readFileSync(join(SOURCE, file), 'utf8')
  visit(parse(text, { sourceType: 'module', plugins: ['typescript'] }).program)
  return patterns
}

const SIZES = [400, 800] as const
/** A pattern may look some characters ahead from each place, but not to the end of the text. */
const MAX_STEPS_PER_CHARACTER = 600
const MAX_STEPS = SIZES[1] * MAX_STEPS_PER_CHARACTER

/** The texts on which a search takes more than a bounded number of steps for each character. */
function findSlowTexts({ source, flags }: Pattern, texts: readonly HostileText[]): string[] {
  const search = compilePattern(source, flags, MAX_STEPS)
  return texts.flatMap(({ name, make }) => {
    const [short, long] = SIZES.map((size) => search(make(size), 0, false).steps) as [number, number]
    const isSlow = long >= MAX_STEPS || (long > 2.7 * short && long > 50 * SIZES[1])
    return isSlow ? [`/${source.slice(0, 80)}/${flags} on ${name}: ${short}, ${long} steps`] : []
  })
}

test('the counter finds what the engine finds, and sees backtracking', () => {
  const texts = hostileTexts.map(({ make }) => make(120)).concat('Rank A and B by cost, 12% of $1,200.50 the the end.')
  for (const pattern of FILES.flatMap(patternsOf)) {
    const search = compilePattern(pattern.source, pattern.flags, MAX_STEPS)
    for (const text of texts) {
      const { steps, start, end } = search(text, 0, false)
      if (steps >= MAX_STEPS) continue
      const match = new RegExp(pattern.source, pattern.flags.replace(/[gy]/g, '')).exec(text)
      expect([pattern.source, start, end]).toEqual([
        pattern.source,
        match?.index ?? -1,
        match ? match.index + match[0].length : -1,
      ])
    }
  }
  for (const source of ['[.!]+$', '(?:[a!]+)+$', '\\s*x', '\\w+.*:$'])
    expect([source, findSlowTexts({ source, flags: '' }, hostileTexts).length > 0]).toEqual([source, true])
})

test.each(FILES)('no pattern of %s backtracks over more than a bounded part of a text', (file) => {
  expect(patternsOf(file).flatMap((pattern) => findSlowTexts(pattern, baitFor(pattern.source)))).toEqual([])
})

test('no pattern that a reader builds backtracks over more than a bounded part of a text', async () => {
  const readers = await openReaders()
  for (const name of READERS) await readers.findSlow(name, hostileTexts.slice(-6))
  readers.close()
  // The SQL parser uses this one on its own error messages, in a thread and on at most 4,000 characters.
  const built = [...usedPatterns.values()].filter(
    ({ source }) => source.length < 6_000 && source !== 'A (.+) token based on:',
  )
  expect(built.length).toBeGreaterThan(100)
  expect(built.flatMap((pattern) => findSlowTexts(pattern, hostileTexts))).toEqual([])
})
