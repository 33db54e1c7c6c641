/** Rows as CSV. A value that a spreadsheet would take for a formula gets an apostrophe before it. */
export function toCsv(header: readonly string[], rows: readonly (string | number | null)[][]): string {
  return [header, ...rows].map((row) => row.map(toField).join(',')).join('\r\n')
}

function toField(value: string | number | null): string {
  const text = String(value ?? '')
  const safe = typeof value === 'string' && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
