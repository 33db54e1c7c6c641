/**
 * Terms, instruments and quotes are stored as JSON in which bigints and dates are text. The name gives the type:
 * `…E8`, `…E2` and `…Micro` are bigints; `…At`, `…Until` and `…By` are dates.
 */
const BIGINT_NAME = /(E8|E2|Micro)$/
const DATE_NAME = /(At|Until|By)$/
const ISO_DATE = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/

export function reviveStoredJson<T>(parsed: unknown): T {
  return revive('', parsed) as T
}

function revive(name: string, value: unknown): unknown {
  if (typeof value === 'string' && BIGINT_NAME.test(name)) return BigInt(value)
  if (typeof value === 'string' && DATE_NAME.test(name) && ISO_DATE.test(value)) return new Date(value)
  if (Array.isArray(value)) return value.map((item) => revive(name, item))
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, revive(key, item)]))
}
