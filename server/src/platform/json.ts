/** PostgreSQL and our own JSON carry a bigint as decimal text: a JSON number would lose digits beyond 2^53. */
export const stringifyWithBigints = (value: unknown): string => JSON.stringify(replaceBigints(value))

/**
 * The value with its bigints as text. Only what contains one is copied: JSON.stringify without a replacer takes a fifth of
 * the time, and most of a step's input is text.
 */
function replaceBigints(value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString()
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return replaceInArray(value)
  // Dates and buffers write themselves.
  if (typeof (value as { toJSON?: unknown }).toJSON === 'function') return value
  return replaceInObject(value as Record<string, unknown>)
}

function replaceInArray(items: readonly unknown[]): readonly unknown[] {
  let copy: unknown[] | undefined
  for (let index = 0; index < items.length; index += 1) {
    const item = items[index]
    const replaced = replaceBigints(item)
    if (replaced === item) continue
    copy ??= [...items]
    copy[index] = replaced
  }
  return copy ?? items
}

function replaceInObject(value: Record<string, unknown>): Record<string, unknown> {
  let copy: Record<string, unknown> | undefined
  for (const name in value) {
    const item = value[name]
    const replaced = replaceBigints(item)
    if (replaced === item) continue
    copy ??= { ...value }
    copy[name] = replaced
  }
  return copy ?? value
}
