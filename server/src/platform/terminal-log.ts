/** Log lines for a person at a terminal: time, level, message and fields. Elsewhere a line is JSON. */
const LEVELS: Record<number, { name: string; colour: number }> = {
  10: { name: 'TRACE', colour: 90 },
  20: { name: 'DEBUG', colour: 90 },
  30: { name: 'INFO', colour: 32 },
  40: { name: 'WARN', colour: 33 },
  50: { name: 'ERROR', colour: 31 },
  60: { name: 'FATAL', colour: 31 },
}

type LogLine = { level: number; time: number; msg?: string; err?: { message?: string; stack?: string } }

export function formatLogLine(line: string, { colour }: { colour: boolean }): string {
  let fields: LogLine & Record<string, unknown>
  try {
    fields = JSON.parse(line)
  } catch {
    return `${withoutControls(line)}\n`
  }
  const { level, time, msg = '', err, ...rest } = fields
  const { name, colour: code } = LEVELS[level] ?? { name: String(level), colour: 0 }
  const paint = (text: string, color: number) => (colour ? `\u001b[${color}m${text}\u001b[0m` : text)
  const details = Object.entries(rest).map(([key, value]) => `${key}=${formatValue(value)}`)
  const stack = err && (err.stack ?? err.message ?? JSON.stringify(err))
  return [
    `${paint(clockTime(time), 90)} ${paint(name.padEnd(5), code)} ${[withoutControls(msg), ...details].join(' ')}\n`,
    ...(stack ? stack.split('\n').map((stackLine) => `  ${withoutControls(stackLine)}\n`) : []),
  ].join('')
}

const clockTime = (time: number) => {
  const date = new Date(time)
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map((part) => String(part).padStart(2, '0')).join(':')
}

const formatValue = (value: unknown) => withoutControls(typeof value === 'string' ? value : JSON.stringify(value))

/** What a caller sent may be in a line: it must not steer the terminal. */
const withoutControls = (text: string) => text.replaceAll(/\p{Cc}/gu, '\ufffd')
