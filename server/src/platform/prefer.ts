/**
 * Whether the header `Prefer` (RFC 7240) asks for an answer before the work is done. Any other preference, and one that is
 * not well-formed, is ignored, as the standard asks.
 */
export const prefersAsync = (header: string | string[] | undefined): boolean =>
  splitOutsideQuotes([header ?? []].flat().join(','), ',').some((preference) => {
    const [name = '', value = ''] = splitOutsideQuotes(splitOutsideQuotes(preference, ';')[0]!, '=')
    const hasValue = value.trim() !== '' && value.trim() !== '""'
    return name.trim().toLowerCase() === 'respond-async' && !hasValue
  })

/** A separator inside a quoted string is text. */
function splitOutsideQuotes(text: string, separator: string): string[] {
  const parts: string[] = []
  let start = 0
  let isQuoted = false
  for (let place = 0; place < text.length; place += 1) {
    const character = text[place]
    if (isQuoted && character === '\\') place += 1
    else if (character === '"') isQuoted = !isQuoted
    else if (character === separator && !isQuoted) {
      parts.push(text.slice(start, place))
      start = place + 1
    }
  }
  return [...parts, text.slice(start)]
}
