/** Text that PostgreSQL, canonical JSON and every reader can hold: no NUL character and no half of a surrogate pair. */
export const isStorableText = (text: string): boolean => !text.includes('\0') && text.isWellFormed()

/** Leaves out what cannot be stored. A text cut by length may end in half an emoji. */
export const toStorableText = (text: string): string =>
  isStorableText(text) ? text : text.replaceAll('\0', '').replace(HALF_PAIR, '')

const HALF_PAIR = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g
