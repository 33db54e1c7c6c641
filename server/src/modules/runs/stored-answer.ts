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
