import { type Finding, failed, notApplicable, passed } from './finding.ts'
import { hasName } from './records.ts'
import type { ReadTask } from './task.ts'
import { type ReadText, wordsOf } from './text.ts'

const MAX_ITEMS = 60

/** What is done to a list that the task gives, item by item: sorted, in capitals, initials, without repeats, counted. */
export function checkListOperations(task: ReadTask, output: ReadText): Finding {
  if (task.full.raw.length > 1_500 || task.code || task.agentId.startsWith('coder')) return notApplicable
  const list = readList(task.full.raw)
  const { request } = list
  const isUnique = /\bduplicat\w{1,5}\b|\bunique\b|\brepeats\b|\bdoubles\b/i.test(request)
  const items = isUnique && SORTS.test(request) ? uniqueOf(list.items) : list.items
  if (items.length < 3 || items.length > MAX_ITEMS) return notApplicable
  if (
    /\b(?:alphab[eé]ti\w{1,8}|a-z|a to z|z-a|z to a|alphabetisch)\b/i.test(request) &&
    (SORTS.test(request) || wordsOf(request).length <= 6)
  )
    return checkAlphabet(request, items, output)
  if (
    /\b(?:remove|drop|without|delete)\b.{0,20}\b(?:duplicates?|repeats)\b|\bdedup\w{0,10}\b|\bunique\b/i.test(request)
  )
    return checkUnique(items, output)
  if (/\breverse (?:the )?(?:order|list)\b|\bin reverse(?: order)?\b|\blast to first\b/i.test(request))
    return isInOrder(output, [...items].reverse()) ? passed : failed('It is not in the order asked for.')
  return notApplicable
}

const uniqueOf = (items: readonly string[]) => [...new Map(items.map((item) => [item.toLowerCase(), item])).values()]

const SORTS =
  /\b(?:sort\w{0,3}|order\w{0,3}|arrange|put|list|alphab[eé]ti\w{1,8}|sortiere\w?|ordne|trie[rz]?|class\w{1,3}|ordena\w?|ordina\w?|sorteer)\b/i

/** The request and the items after its colon, or in the lines that follow it. */
function readList(text: string): { request: string; items: string[] } {
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)
  const [first = '', ...rest] = lines
  const colon = first.indexOf(':')
  const inLine = colon > 0 ? first.slice(colon + 1).trim() : ''
  // "Tom de Wit (sort under W)" has a place of its own.
  const clean = (item: string) =>
    / \([^()]{1,60}\)[.?!]{0,5}$/.test(item.trim()) ? '' : item.trim().replace(/^[-*•]\s|^["“]|["”.?!]{1,5}$/g, '')
  if (rest.length >= 3 && !inLine) return { request: first, items: rest.map(clean).filter(Boolean) }
  const listLine = rest.length === 1 && !inLine && first.endsWith(':') ? rest[0]! : inLine
  if ((rest.length > 0 && listLine === inLine) || !listLine) return { request: text, items: [] }
  const items = listLine.split(/[,;]/).map(clean).filter(Boolean)
  return { request: first.slice(0, colon), items: items.every((item) => item.length <= 40) ? items : [] }
}

function checkAlphabet(request: string, items: readonly string[], output: ReadText): Finding {
  const isByLast = /\b(?:surname|last name|family name|nachname\w?)\b/i.test(request)
  const keyOf = (item: string) => (isByLast ? item.split(/\s+/).at(-1)! : item).toLowerCase()
  const sorted = [...items].sort((a, b) => keyOf(a).localeCompare(keyOf(b), 'en'))
  if (/\b(?:z-a|z to a|reverse|descending)\b/i.test(request)) sorted.reverse()
  const text = output.raw.toLowerCase()
  // Where items are written in another way, nothing can be said of their order.
  if (items.filter((item) => hasName(text, item.toLowerCase())).length < items.length - 1) return notApplicable
  return isInOrder(output, sorted) ? passed : failed('It is not in the order asked for.')
}

function checkUnique(items: readonly string[], output: ReadText): Finding {
  const unique = [...new Set(items.map((item) => item.toLowerCase()))]
  if (unique.length === items.length) return notApplicable
  const text = output.raw.toLowerCase()
  if (!unique.every((item) => hasName(text, item))) return failed('An item of the list is missing.')
  const written = text.split(/[,;\n]/).map((item) => item.replace(/^[\s\-*•\d.)]+/, '').replace(/[\s.]{1,5}$/, ''))
  return unique.some((item) => written.filter((other) => other === item).length > 1)
    ? failed('An item of the list stands twice.')
    : passed
}

const isInOrder = (output: ReadText, items: readonly string[]) =>
  isInOrderIn(
    output.raw.toLowerCase(),
    items.map((item) => item.toLowerCase()),
  )

function isInOrderIn(text: string, items: readonly string[]): boolean {
  let at = 0
  for (const item of items) {
    const next = text.indexOf(item, at)
    if (next < 0) return false
    at = next + item.length
  }
  return true
}
