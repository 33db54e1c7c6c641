import { expect, test } from 'vitest'
import { detectLanguage, rankMemories, trigramSimilarity } from './rank-memories.ts'
import { readSynonyms } from './synonyms.ts'

const now = new Date('2026-01-31T00:00:00Z')
const candidate = (
  id: string,
  excerpt: string,
  fields: { shared?: string[]; related?: string[]; days?: number } = {},
) => ({
  id,
  excerpt,
  created_at: new Date(now.getTime() - (fields.days ?? 0) * 86_400_000),
  shared: fields.shared ?? [],
  related: fields.related ?? [],
})

test('a memory that shares nothing with the task is not ranked', () => {
  expect(rankMemories('What is the door code?', [candidate('a', 'They keep three cats.')], now)).toEqual([])
})

test('a rare word counts for more than a common one', () => {
  const many = ['b', 'c', 'd', 'e'].map((id) => candidate(id, 'order', { shared: ['order'] }))
  const [best] = rankMemories(
    'Which order has the kettle?',
    [...many, candidate('a', 'kettle', { shared: ['kettl'] })],
    now,
  )
  expect(best).toEqual({ id: 'a', why: 'words', words: ['kettl'] })
})

test('the same word counts for more than a synonym, and of two equals the newer comes first', () => {
  const ranked = rankMemories(
    'Where is the invoice?',
    [
      candidate('synonym', 'The bill is blue.', { related: ['bill'] }),
      candidate('old', 'The invoice is red.', { shared: ['invoic'], days: 10 }),
      candidate('new', 'The invoice is green.', { shared: ['invoic'] }),
    ],
    now,
  )
  expect(ranked.map(({ id }) => id)).toEqual(['new', 'old', 'synonym'])
  expect(ranked[2]).toMatchObject({ why: 'synonym', words: ['bill'] })
})

test('a misspelled word is found by its trigrams, and a different word of the same length is not', () => {
  const [found] = rankMemories('Which resturant do they like?', [candidate('a', 'Their restaurant is Luigi.')], now)
  expect(found).toEqual({ id: 'a', why: 'spelling', words: ['restaurant'] })
  expect(rankMemories('Which transistor?', [candidate('a', 'Their restaurant is Luigi.')], now)).toEqual([])
})

test('similarity is that of pg_trgm', () => {
  // select similarity('word', 'words') in PostgreSQL.
  expect(trigramSimilarity('word', 'words')).toBeCloseTo(0.571429, 5)
  expect(trigramSimilarity('cat', 'dog')).toBe(0)
  expect(trigramSimilarity('same', 'same')).toBe(1)
})

test.each([
  ['What is the door code of my office?', 'english'],
  ['Wie ist der Code für die Tür?', 'german'],
  ['Quel est le code de la porte pour les clients ?', 'french'],
  ['¿Cuál es el código de la puerta para los clientes?', 'spanish'],
  ['Какой код для двери и что на ней?', 'russian'],
  ['x', 'english'],
])('%s is %s', (text, language) => expect(detectLanguage(text)).toBe(language))

test('synonyms are found in the singular and the plural, and a word without one adds nothing', () => {
  const { findFor } = readSynonyms()
  expect(findFor('Where are the invoices?')).toContain('bill')
  expect(findFor('the bill')).toContain('invoice')
  expect(findFor('zeppelin')).toEqual([])
  expect(findFor('invoice '.repeat(10_000)).length).toBeLessThanOrEqual(32)
})
