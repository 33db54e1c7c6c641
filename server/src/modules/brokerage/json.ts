/**
 * How terms, instruments and fills cross into JSON and back: the name says the type. `…E8`, `…E2` and `…Micro` are
 * bigints, `…At`, `…Until` and `…By` are moments; both are text in JSON.
 */
const BIGINT_NAME = /(E8|E2|Micro)$/
const MOMENT_NAME = /(At|Until|By)$/
const MOMENT = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/

export const toJson = (value: unknown): string =>
  JSON.stringify(value, (_, item: unknown) => (typeof item === 'bigint' ? item.toString() : item))

export function fromJson<T>(parsed: unknown): T {
  return revive('', parsed) as T
}

function revive(name: string, value: unknown): unknown {
  if (typeof value === 'string' && BIGINT_NAME.test(name)) return BigInt(value)
  if (typeof value === 'string' && MOMENT_NAME.test(name) && MOMENT.test(value)) return new Date(value)
  if (Array.isArray(value)) return value.map((item) => revive(name, item))
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, revive(key, item)]))
}
