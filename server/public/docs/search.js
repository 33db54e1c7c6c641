// Searches the prepared index in the page. The index is loaded when the field is first used.

import { el } from '/docs/assets/element.js'
import { go } from '/docs/assets/navigation.js'

const MAX_RESULTS = 30
const MAX_WORDS = 8
const SNIPPET_LENGTH = 140
const LABELS = { call: 'Call', field: 'Field', guide: 'Guide' }

let rows
const loadRows = () => {
  rows ??= fetch('/docs/search.json').then(async (response) => {
    if (!response.ok) throw new Error(`The service answered ${response.status}.`)
    const list = await response.json()
    return list.map(([kind, title, context, url, text]) => ({
      kind,
      title,
      context,
      url,
      text,
      lowerTitle: title.toLowerCase(),
      lowerContext: context.toLowerCase(),
      lowerText: text.toLowerCase(),
    }))
  })
  rows.catch(() => {
    rows = undefined
  })
  return rows
}

const escapeExpression = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

/** How well a row fits all the words; 0 when a word is missing. */
export function score(row, words, query) {
  let total = 0
  for (const word of words) {
    const start = new RegExp(`(^|[^a-z0-9])${escapeExpression(word)}`)
    if (row.lowerTitle === word) total += 60
    else if (start.test(row.lowerTitle)) total += 30
    else if (row.lowerTitle.includes(word)) total += 15
    else if (start.test(row.lowerContext)) total += 12
    else if (start.test(row.lowerText)) total += 5
    else if (row.lowerContext.includes(word) || row.lowerText.includes(word)) total += 2
    else return 0
  }
  if (row.lowerTitle === query || row.lowerTitle.endsWith(` ${query}`)) total += 60
  // Of rows that fit alike, a call goes before a guide, a guide before a field, and the shorter name first.
  return total + { call: 3, guide: 2, field: 1 }[row.kind] - row.title.length / 200
}

export function findRows(list, text) {
  const query = text.trim().toLowerCase().replaceAll(/\s+/g, ' ')
  const words = query.split(' ').filter(Boolean).slice(0, MAX_WORDS)
  if (words.length === 0) return { total: 0, results: [], words }
  const scored = list
    .map((row) => ({ row, points: score(row, words, query) }))
    .filter(({ points }) => points > 0)
    .sort((a, b) => b.points - a.points)
  // A field that many calls have is shown once.
  const groups = new Map()
  for (const { row } of scored) {
    const key = row.kind === 'field' ? `${row.lowerTitle}\n${row.text}` : row.url
    const group = groups.get(key)
    if (group) group.others += 1
    else groups.set(key, { ...row, others: 0 })
  }
  return { total: groups.size, results: [...groups.values()].slice(0, MAX_RESULTS), words }
}

/** The part of the text around the first word. */
function snippet({ text, lowerText }, words) {
  const positions = words.map((word) => lowerText.indexOf(word)).filter((index) => index >= 0)
  const first = Math.min(...(positions.length > 0 ? positions : [0]))
  const start = first < 40 ? 0 : text.lastIndexOf(' ', first - 20) + 1
  const part = text.slice(start, start + SNIPPET_LENGTH)
  return `${start > 0 ? '…' : ''}${part}${start + SNIPPET_LENGTH < text.length ? '…' : ''}`
}

const describeContext = ({ context, others }) =>
  others > 0 ? `${context} and ${others} other ${others === 1 ? 'place' : 'places'}` : context

const renderRow = (row, words) =>
  el(
    'li',
    {},
    el(
      'a',
      { href: row.url },
      el('span', { className: 'kind', textContent: LABELS[row.kind] }),
      el('strong', { textContent: row.title }),
      row.context && el('span', { className: 'context', textContent: describeContext(row) }),
      row.text && row.kind !== 'call' && el('span', { className: 'snippet', textContent: snippet(row, words) }),
    ),
  )

export function startSearch() {
  const form = document.getElementById('docs-search')
  const input = document.getElementById('docs-query')
  const panel = document.getElementById('docs-results')
  const announcement = document.getElementById('docs-announcement')
  let turn = 0

  const close = () => {
    panel.hidden = true
    panel.replaceChildren()
  }
  const links = () => [...panel.querySelectorAll('a')]

  const update = async () => {
    turn += 1
    const own = turn
    if (input.value.trim() === '') return close()
    try {
      const { total, results, words } = findRows(await loadRows(), input.value)
      if (own !== turn) return
      const count =
        total === 0 ? 'Nothing found' : `${total} found${total > results.length ? `, the first ${results.length}` : ''}`
      announcement.textContent = count
      panel.replaceChildren(
        el('p', { className: 'muted', textContent: count }),
        ...(total > 0 ? [el('ul', {}, ...results.map((row) => renderRow(row, words)))] : []),
      )
    } catch (error) {
      panel.replaceChildren(
        el('p', { className: 'error', textContent: `The search index cannot be loaded. ${error.message}` }),
      )
    }
    panel.hidden = false
  }

  const leave = () => {
    input.value = ''
    close()
  }

  form.hidden = false
  input.addEventListener('focus', () => loadRows().catch(() => {}))
  input.addEventListener('input', update)
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    await update()
    const [first] = links()
    if (!first) return
    leave()
    void go(first.href)
  })
  panel.addEventListener('click', (event) => {
    if (event.target.closest('a')) leave()
  })
  form.addEventListener('keydown', (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (event.key === 'Escape') {
      leave()
      input.focus()
    }
    if (!step || panel.hidden) return
    event.preventDefault()
    const all = [input, ...links()]
    all[(all.indexOf(document.activeElement) + step + all.length) % all.length].focus()
  })
  form.addEventListener('focusout', (event) => {
    if (event.relatedTarget && !form.contains(event.relatedTarget)) close()
  })
  document.addEventListener('click', (event) => {
    if (!form.contains(event.target)) close()
  })
  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return
    event.preventDefault()
    input.focus()
    input.select()
  })
}

const isTyping = (element) => element.matches?.('input, textarea, select, [contenteditable]') ?? false
