import { deflateRawSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { sha256 } from '../../platform/canonical.ts'
import { FIRST_DICTIONARY, SECOND_DICTIONARY } from './answer-dictionary.ts'
import { insertReceipt, packAnswer, textAroundReceipt, unpackAnswer } from './stored-answer.ts'

test('the dictionaries have the bytes that stored answers were written with', () => {
  expect(sha256(FIRST_DICTIONARY)).toBe('sha256:56b53aeefc39e370b3842eeb3cc9e97c1b8c870dbeed19c8652cec8a5d9e26a3')
  expect(sha256(SECOND_DICTIONARY)).toBe('sha256:f4c4b051201f02d907a160fc95841423abeb4b24236dce0867e36cc4f87463b6')
})

test('an answer that was packed with the first dictionary is read as it was', () => {
  for (const text of ['', '{"status":"completed"}', FIRST_DICTIONARY.toString(), 'x'.repeat(100_000)])
    for (const level of [0, 1, 9])
      expect(unpackAnswer(deflateRawSync(text, { level, windowBits: 13, dictionary: FIRST_DICTIONARY }))).toBe(text)
})

test('an answer is the same after packing, whatever characters its output has', () => {
  for (const output of ['', 'plain', '"receipt":{}', '“résumé” 🦆 \u2028', 'x'.repeat(100_000)]) {
    const { text, receiptAt } = textAroundReceipt({
      before: { output },
      after: { receipt_url: '/api/receipts/rcpt_1' },
    })
    const unpacked = unpackAnswer(Buffer.from(packAnswer(text), 'base64'))
    expect(unpacked).toBe(text)
    expect(JSON.parse(insertReceipt({ text: unpacked, receiptAt }, '{"schema":"run-receipt/v1"}'))).toEqual({
      output,
      receipt: { schema: 'run-receipt/v1', log: null },
      receipt_url: '/api/receipts/rcpt_1',
    })
  }
})

test('an answer of a usual size becomes less than a third of it', () => {
  const text = SECOND_DICTIONARY.toString().slice(-2_400)
  expect(packAnswer(text).length).toBeLessThan(text.length / 3)
})
