import { Html, type HtmlValue, html } from '../../platform/html.ts'

/**
 * The Markdown of our guides as HTML: headings, paragraphs, lists, tables, quotes, code, emphasis, links and images.
 * Markup in a guide is text like any other.
 */
export type Section = { id: string; heading: string; level: number; text: string }
export type RenderedMarkdown = { title: string; body: Html; sections: Section[] }

export type MarkdownOptions = {
  /** The address of a link or image; undefined when its target is not served, and the text stands without a link. */
  resolve(target: string): string | undefined
  /** Markup of a code block. */
  renderCode(code: string, language: string): Html
}

const MAX_DEPTH = 8

export function renderMarkdown(source: string, options: MarkdownOptions): RenderedMarkdown {
  const sections: Section[] = []
  const usedIds = new Map<string, number>()
  const addText = (text: string) => {
    const section = sections.at(-1)
    if (section) section.text += `${section.text && ' '}${text}`
  }
  const inline = (text: string) => renderInline(text, options.resolve)

  const renderHeading = (level: number, text: string) => {
    const heading = plainText(text)
    const id = uniqueId(slug(heading), usedIds)
    sections.push({ id, heading, level, text: '' })
    const anchor = html`<a class="anchor" href="#${id}" aria-label="Link to “${heading}”">#</a>`
    const tag = new Html(`h${level}`)
    return html`<${tag} id="${id}">${inline(text)} ${anchor}</${tag}>\n`
  }

  const renderBlocks = (lines: string[], depth: number): Html[] => {
    const blocks: Html[] = []
    let index = 0
    /** Takes the lines from here on that pass. */
    const takeWhile = (test: (line: string) => boolean) => {
      const start = index
      while (index < lines.length && test(lines[index]!)) index += 1
      return lines.slice(start, index)
    }
    while (index < lines.length) {
      const line = lines[index]!
      const fence = /^ {0,3}(`{3,})\s*([\w-]*)/.exec(line)
      const heading = /^(#{1,6})\s+(.*?)\s*#*$/.exec(line)
      if (line.trim() === '') index += 1
      else if (fence) {
        index += 1
        const code = takeWhile((text) => !text.trim().startsWith(fence[1]!)).join('\n')
        index += 1
        addText(code)
        blocks.push(options.renderCode(code, fence[2]!))
      } else if (line.startsWith('<!--')) {
        takeWhile((text) => !text.includes('-->'))
        index += 1
      } else if (heading) {
        index += 1
        blocks.push(renderHeading(heading[1]!.length, heading[2]!))
      } else if (isTableStart(lines, index)) {
        const rows = takeWhile((text) => text.includes('|')).map(splitCells)
        addText(
          rows
            .flat()
            .map((cell) => plainText(cell))
            .join(' '),
        )
        blocks.push(renderTable(rows, inline))
      } else if (line.startsWith('>')) {
        const quoted = takeWhile((text) => text.startsWith('>')).map((text) => text.replace(/^>\s?/, ''))
        blocks.push(
          html`<blockquote>${depth < MAX_DEPTH ? renderBlocks(quoted, depth + 1) : quoted.join(' ')}</blockquote>\n`,
        )
      } else if (listMarker(line)) {
        const ordered = /\d/.test(listMarker(line)![1]!)
        const items: string[][] = []
        while (index < lines.length && (listMarker(lines[index]!) || isContinuation(lines, index))) {
          const marker = listMarker(lines[index]!)
          if (marker && (items.length === 0 || marker[0].search(/\S/) < 2))
            items.push([lines[index]!.slice(marker[0].length)])
          else items.at(-1)!.push(lines[index]!.replace(/^ {1,4}/, ''))
          index += 1
        }
        blocks.push(renderList(ordered, items, depth))
      } else {
        const first = index
        const paragraph = takeWhile(
          (text) => text.trim() !== '' && (text === lines[first] || !startsBlock(text, lines, index)),
        )
        addText(plainText(paragraph.join(' ')))
        blocks.push(html`<p>${inline(paragraph.join('\n'))}</p>\n`)
      }
    }
    return blocks
  }

  const renderList = (ordered: boolean, items: string[][], depth: number) => {
    const rendered = items.map((item) => {
      const isSimple = item.length === 1 || depth >= MAX_DEPTH
      if (!isSimple) return html`<li>${renderBlocks(item, depth + 1)}</li>\n`
      addText(plainText(item.join(' ')))
      return html`<li>${inline(item.join(' '))}</li>\n`
    })
    return ordered ? html`<ol>\n${rendered}</ol>\n` : html`<ul>\n${rendered}</ul>\n`
  }

  const body = new Html(
    renderBlocks(source.replaceAll('\r', '').split('\n'), 0)
      .map(({ markup }) => markup)
      .join(''),
  )
  return { title: sections.find(({ level }) => level === 1)?.heading ?? '', body, sections }
}

const listMarker = (line: string) => /^\s{0,3}([-*+]|\d{1,3}\.)\s+/.exec(line)

/** A line that belongs to the item before it: indented, or empty with an indented line after it. */
const isContinuation = (lines: string[], index: number): boolean => {
  const line = lines[index]!
  if (line.trim() !== '') return /^ {2,}/.test(line)
  const next = lines[index + 1]
  return next !== undefined && (/^ {2,}\S/.test(next) || listMarker(next) !== null)
}

const isTableStart = (lines: string[], index: number) =>
  lines[index]!.trim().startsWith('|') && /^\|[\s:|-]+\|$/.test(lines[index + 1]?.trim() ?? '')

const startsBlock = (line: string, lines: string[], index: number) =>
  /^(#{1,6}\s|```|>|<!--)/.test(line) || listMarker(line) !== null || isTableStart(lines, index)

/** A pipe inside a cell is written `\|`. */
const splitCells = (row: string): string[] =>
  row
    .trim()
    .replace(/^\||\|$/g, '')
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll('\\|', '|'))

function renderTable([head = [], , ...rows]: string[][], inline: (text: string) => Html): Html {
  const headings = head.map((cell) => (cell === '' ? html`<td></td>` : html`<th scope="col">${inline(cell)}</th>`))
  const body = rows.map((cells) => html`<tr>${cells.map((cell) => html`<td>${inline(cell)}</td>`)}</tr>\n`)
  return html`<div class="scroll" tabindex="0" role="group" aria-label="Table: ${head
    .map((cell) => plainText(cell))
    .filter(Boolean)
    .join(', ')}"><table><thead><tr>${headings}</tr></thead><tbody>\n${body}</tbody></table></div>\n`
}

type Inline =
  | { kind: 'text' | 'code'; text: string }
  | { kind: 'strong' | 'emphasis'; text: string }
  | { kind: 'link' | 'image'; text: string; target: string }

// How far an opening mark looks for its end, so that hostile text takes time in proportion to its length.
const MAX_SPAN = 2_000

/** The parts of a text, from left to right; a mark without its end is text. */
function* scanInline(text: string): Generator<Inline> {
  let start = 0
  let index = 0
  while (index < text.length) {
    const part = scanPart(text, index)
    if (!part) {
      // A run of backticks that has no end is text as a whole.
      index += text[index] === '`' ? backticks(text, index) : 1
      continue
    }
    if (index > start) yield { kind: 'text', text: text.slice(start, index) }
    yield part.inline
    index = part.end
    start = index
  }
  if (start < text.length) yield { kind: 'text', text: text.slice(start) }
}

const backticks = (text: string, index: number) => {
  let end = index
  while (text[end] === '`') end += 1
  return end - index
}

/** Where `mark` is next, within reach; -1 when it is not. */
const findMark = (text: string, mark: string, from: number) => {
  const offset = text.slice(from, from + MAX_SPAN).indexOf(mark)
  return offset < 0 ? -1 : from + offset
}

function scanPart(text: string, index: number): { inline: Inline; end: number } | undefined {
  switch (text[index]) {
    case '`':
      return scanCode(text, index)
    case '\\':
      return /[\\`*_{}[\]()#+.!|<>-]/.test(text[index + 1] ?? '')
        ? { inline: { kind: 'text', text: text[index + 1]! }, end: index + 2 }
        : undefined
    case '!':
      return text[index + 1] === '[' ? scanLink(text, index + 1, 'image') : undefined
    case '[':
      return scanLink(text, index, 'link')
    case '*':
      return scanEmphasis(text, index)
    default:
      return undefined
  }
}

function scanCode(text: string, index: number) {
  const length = backticks(text, index)
  const mark = '`'.repeat(length)
  const end = length < MAX_SPAN ? findMark(text, mark, index + length) : -1
  // A longer run is not the end of a shorter one.
  if (end < 0 || text[end + length] === '`') return undefined
  return { inline: { kind: 'code', text: text.slice(index + length, end) } as const, end: end + length }
}

function scanLink(text: string, index: number, kind: 'link' | 'image') {
  const labelEnd = findMark(text, '](', index)
  if (labelEnd < 0) return undefined
  const targetEnd = findMark(text, ')', labelEnd)
  const target = text.slice(labelEnd + 2, targetEnd)
  if (targetEnd < 0 || target === '' || /[\s(]/.test(target)) return undefined
  return { inline: { kind, text: text.slice(index + 1, labelEnd), target } as const, end: targetEnd + 1 }
}

function scanEmphasis(text: string, index: number) {
  const mark = text.startsWith('**', index) ? '**' : '*'
  const start = index + mark.length
  const end = findMark(text, mark, start + 1)
  const inner = text.slice(start, end)
  if (end < 0 || /^[\s*]|\s$/.test(inner)) return undefined
  // An asterisk between letters is no emphasis.
  if (mark === '*' && (/\w/.test(text[index - 1] ?? '') || /\w/.test(text[end + 1] ?? ''))) return undefined
  const kind = mark === '**' ? ('strong' as const) : ('emphasis' as const)
  return { inline: { kind, text: inner }, end: end + mark.length }
}

/** Text with code, emphasis, links and images. */
export function renderInline(text: string, resolve: MarkdownOptions['resolve'] = () => undefined, depth = 0): Html {
  if (depth > MAX_DEPTH) return html`${text}`
  const nested = (inner: string) => renderInline(inner, resolve, depth + 1)
  const parts = [...scanInline(text)].map((part): HtmlValue => {
    switch (part.kind) {
      case 'text':
        return part.text
      case 'code':
        return html`<code>${part.text}</code>`
      case 'strong':
        return html`<strong>${nested(part.text)}</strong>`
      case 'emphasis':
        return html`<em>${nested(part.text)}</em>`
    }
    const address = isHarmless(part.target) ? resolve(part.target) : undefined
    if (part.kind === 'image')
      return address ? html`<img src="${address}" alt="${plainText(part.text)}">` : plainText(part.text)
    return address ? html`<a href="${address}">${nested(part.text)}</a>` : nested(part.text)
  })
  return html`${parts}`
}

/** A scheme other than these could run a script. */
const isHarmless = (target: string) => !/^[a-z][a-z0-9+.-]*:/i.test(target) || /^(https?|mailto):/i.test(target)

/** What a reader sees of inline Markdown. */
export const plainText = (text: string, depth = 0): string =>
  [...scanInline(text)]
    .map((part) =>
      part.kind === 'text' || part.kind === 'code' || depth > MAX_DEPTH ? part.text : plainText(part.text, depth + 1),
    )
    .join('')

/** The same id as on code hosts, so that links between guides work in both places. */
const slug = (heading: string) =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-')

/** `a`, `a-1`, `a-2`, … */
function uniqueId(id: string, counts: Map<string, number>): string {
  const count = counts.get(id) ?? 0
  counts.set(id, count + 1)
  return count === 0 ? id : uniqueId(`${id}-${count}`, counts)
}
