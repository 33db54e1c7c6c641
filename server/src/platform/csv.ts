type Value = string | number | null

/** Comma-separated values (RFC 4180): a header and one line for each row, ended by CRLF. */
export const toCsv = (columns: readonly string[], rows: readonly (readonly Value[])[]): string =>
  [columns, ...rows].map((row) => `${row.map(toField).join(',')}\r\n`).join('')

// A spreadsheet takes a text that begins with one of these for a formula, also after spaces; full-width forms count too.
const FORMULA = /^\s*[=+\-@＝＋－＠]|^[\t\r\n]/

/** A text that a spreadsheet would evaluate gets an apostrophe in front, which shows it as text. Numbers stay numbers. */
function toField(value: Value): string {
  if (value === null) return ''
  if (typeof value === 'number') return String(value)
  const text = FORMULA.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
