/** Tables and text for people. What a service sent cannot steer the terminal: control characters are replaced. */
const isTerminal = () => process.stdout.isTTY === true && !process.env.NO_COLOR

const paint = (code: number, text: string) => (isTerminal() ? `\u001b[${code}m${text}\u001b[0m` : text)
export const bold = (text: string) => paint(1, text)
export const green = (text: string) => paint(32, text)
export const red = (text: string) => paint(31, text)
export const dim = (text: string) => paint(90, text)

const MAX_CELL = 80

export const safeText = (text: string) => text.replaceAll(/[^\P{Cc}\n\t]/gu, '\ufffd')

const cell = (value: unknown): string => {
  const text =
    value === null || value === undefined ? '–' : typeof value === 'object' ? JSON.stringify(value) : String(value)
  const line = safeText(text).replaceAll(/\s+/g, ' ')
  return line.length > MAX_CELL ? `${line.slice(0, MAX_CELL - 1)}…` : line
}

export type Column<T> = [heading: string, value: (row: T) => unknown]

export function formatTable<T>(rows: T[], columns: Column<T>[], empty = 'None.'): string {
  if (rows.length === 0) return empty
  const cells = rows.map((row) => columns.map(([, value]) => cell(value(row))))
  const widths = columns.map(([heading], index) =>
    Math.max(heading.length, ...cells.map((line) => line[index]!.length)),
  )
  const isNumber = columns.map((_, index) => cells.every((line) => /^(–|-?[\d.]+)$/.test(line[index]!)))
  const format = (line: string[]) =>
    line
      .map((text, index) => (isNumber[index] ? text.padStart(widths[index]!) : text.padEnd(widths[index]!)))
      .join('  ')
      .trimEnd()
  return [bold(format(columns.map(([heading]) => heading))), ...cells.map(format)].join('\n')
}

/** `label  value` lines. */
export function formatFields(fields: [label: string, value: unknown][]): string {
  const width = Math.max(...fields.map(([label]) => label.length))
  return fields.map(([label, value]) => `${dim(label.padEnd(width))}  ${safeText(String(value ?? '–'))}`).join('\n')
}

/** JSON for programs, else what `format` makes of it for people. */
export function show<T>(value: T, { json }: { json?: boolean }, format: (value: T) => string) {
  console.log(json ? JSON.stringify(value, null, 2) : format(value))
}

export async function collect<T>(list: AsyncIterable<T>, limit: number): Promise<T[]> {
  const items: T[] = []
  for await (const item of list) {
    items.push(item)
    if (items.length >= limit) break
  }
  return items
}

/** On a terminal, says that long work is under way; returns how to remove that. */
export function progress(text: string): () => void {
  if (!process.stderr.isTTY) return () => {}
  const frames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
  let frame = 0
  const timer = setInterval(() => process.stderr.write(`\r${frames[frame++ % frames.length]} ${text}`), 100)
  timer.unref()
  return () => {
    clearInterval(timer)
    process.stderr.write('\r\u001b[K')
  }
}
