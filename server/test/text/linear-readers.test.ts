import { afterAll, beforeAll, expect, test } from 'vitest'
import { hostileTexts } from './hostile-texts.ts'
import { openReaders, READERS } from './readers.ts'

/** The texts that once held the service; all others are in the long test. */
const texts = hostileTexts.filter(({ name }) =>
  ['"." repeated, then a word', 'instructions to the router behind marks'].includes(name),
)

let readers: Awaited<ReturnType<typeof openReaders>>
beforeAll(async () => {
  readers = await openReaders()
})
afterAll(() => readers.close())

test.each(READERS)('%s reads a hostile text of 1 to 32 kB in steps that grow no faster than the text', async (name) => {
  expect(texts).toHaveLength(2)
  expect(await readers.findSlow(name, texts)).toEqual([])
})
