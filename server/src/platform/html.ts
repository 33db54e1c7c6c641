const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

export const escapeHtml = (text: string) => text.replace(/[&<>"']/g, (character) => entities[character]!)

/** Markup, as opposed to text that has to be escaped. */
export class Html {
  readonly markup: string
  constructor(markup: string) {
    this.markup = markup
  }
}

export type HtmlValue = Html | string | number | false | null | undefined | readonly HtmlValue[]

const toMarkup = (value: HtmlValue): string => {
  if (value instanceof Html) return value.markup
  if (Array.isArray(value)) return value.map(toMarkup).join('')
  return value === false || value === null || value === undefined ? '' : escapeHtml(String(value))
}

/** Markup in which every value that is not markup itself is escaped; empty values are left out. */
export const html = (parts: TemplateStringsArray, ...values: HtmlValue[]): Html =>
  new Html(parts.reduce((markup, part, index) => `${markup}${toMarkup(values[index - 1])}${part}`))
