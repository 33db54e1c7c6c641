import { afterAll, beforeAll, expect, test } from 'vitest'
import { readerTexts } from './hostile-texts.ts'
import { openReaders, READERS } from './readers.ts'

let readers: Awaited<ReturnType<typeof openReaders>>
beforeAll(async () => {
  readers = await openReaders()
})
afterAll(() => readers.close())

test.each(READERS)('%s reads hostile texts of 1 to 32 kB in steps that grow no faster than the text', async (name) => {
  expect(await readers.findSlow(name, readerTexts)).toEqual([])
})
