import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { FIRST_DICTIONARY, SECOND_DICTIONARY } from './answer-dictionary.ts'

/** The members of a response body before and after its receipt. */
export type BodyAroundReceipt = { before: Record<string, unknown>; after: Record<string, unknown> }

/** The text of a response body without its receipt, and where the receipt belongs in it. Runs are stored in this form. */
export type AnswerText = { text: string; receiptAt: number }

export function textAroundReceipt({ before, after }: BodyAroundReceipt): AnswerText {
  const head = `${JSON.stringify(before).slice(0, -1)},"receipt":`
  return { text: `${head},${JSON.stringify(after).slice(1)}`, receiptAt: head.length }
}

/** The whole body. `receiptBody` is the canonical text of the receipt; its place in the log is not known yet. */
export const insertReceipt = ({ text, receiptAt }: AnswerText, receiptBody: string): string =>
  `${text.slice(0, receiptAt)}${receiptBody.slice(0, -1)},"log":null}${text.slice(receiptAt)}`

// A small window suffices for an answer and its dictionary, and costs less to set up; so does a buffer of the usual size.
const packing = { level: 1, windowBits: 13, memLevel: 5, chunkSize: 2048, dictionary: SECOND_DICTIONARY }

/** Names the second dictionary. No packed text begins with it: as the header of a block it is invalid. */
const SECOND = Buffer.from([0x07])

/** Compresses the text of an answer, as base64. Answers are kept for good, and most of their text is in the dictionary. */
export const packAnswer = (text: string): string =>
  Buffer.concat([SECOND, deflateRawSync(text, packing)]).toString('base64')

export const unpackAnswer = (packed: Buffer): string =>
  packed[0] === SECOND[0]
    ? inflateRawSync(packed.subarray(1), { dictionary: SECOND_DICTIONARY }).toString('utf8')
    : inflateRawSync(packed, { dictionary: FIRST_DICTIONARY }).toString('utf8')
