/** PostgreSQL and our own JSON carry a bigint as decimal text: a JSON number would lose digits beyond 2^53. */
export const stringifyWithBigints = (value: unknown): string =>
  JSON.stringify(value, (_, item: unknown) => (typeof item === 'bigint' ? item.toString() : item))
