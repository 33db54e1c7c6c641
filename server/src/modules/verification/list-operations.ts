import { type Finding, failed, notApplicable, passed } from './finding.ts'
import { hasName } from './records.ts'
import type { ReadTask } from './task.ts'
import type { ReadText } from './text.ts'

const MAX_ITEMS = 60

/** What is done to a list that the task gives, item by item: sorted, in capitals, initials, without repeats, counted. */
export function checkListOperations(task: ReadTask, output: ReadText): Finding {
  if (task.full.raw.length > 1_500 || task.code || task.agentId.startsWith('coder')) return notApplicable
  const list = readList(task.full.raw)
  const { request } = list
  const isUnique = /\bduplicat\w{1,5}\b|\bunique\b|\brepeats\b/i.test(request)
  const items = isUnique && SORTS.test(request) ? [...new Set(list.items)] : list.items
  if (items.length < 3 || items.length > MAX_ITEMS) return notApplicable
  if (/\binitials\b/i.test(request)) return checkInitials(items, output)
  if (/\b(?:alphabeti\w{1,8}|a-z|a to z|z-a|z to a|alphabetisch)\b/i.test(request) && SORTS.test(request))
    return checkAlphabet(request, items, output)
  if (/\b(?:upper ?case|capital letters|capitals|all caps|gro(?:ß|ss)buchstaben)\b/i.test(request))
    return items.every((item) => output.raw.includes(item.toUpperCase()))
      ? passed
      : failed('An item of the list is not there in capitals.')
  if (
    /\b(?:remove|drop|without|delete)\b.{0,20}\b(?:duplicates?|repeats)\b|\bdedup\w{0,10}\b|\bunique\b/i.test(request)
  )
    return checkUnique(items, output)
  if (/\breverse (?:the )?(?:order|list)\b|\bin reverse(?: order)?\b|\blast to first\b/i.test(request))
    return isInOrder(output, [...items].reverse()) ? passed : failed('It is not in the order asked for.')
  return notApplicable
}

const SORTS = /\b(?:sort\w{0,3}|order\w{0,3}|arrange|put|list|alphabeti\w{1,8}|sortiere\w?|ordne)\b/i

/** The request and the items after its colon, or in the lines that follow it. */
function readList(text: string): { request: string; items: string[] } {
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)
  const [first = '', ...rest] = lines
  const colon = first.indexOf(':')
  const inLine = colon > 0 ? first.slice(colon + 1).trim() : ''
  const clean = (item: string) => item.trim().replace(/^[-*•]\s|^["“]|["”.?!]{1,5}$/g, '')
  if (rest.length >= 3 && !inLine) return { request: first, items: rest.map(clean).filter(Boolean) }
  if (rest.length > 0 || !inLine) return { request: text, items: [] }
  const items = inLine.split(/[,;]/).map(clean).filter(Boolean)
  return { request: first.slice(0, colon), items: items.every((item) => item.length <= 40) ? items : [] }
}

function checkInitials(items: readonly string[], output: ReadText): Finding {
  const expected = items.map((item) =>
    item
      .split(/\s+/)
      .map((word) => word[0]!.toUpperCase())
      .join(''),
  )
  if (expected.some((initials) => initials.length < 2)) return notApplicable
  const letters = output.raw.toUpperCase().replace(/[^\p{L}\s,;|-]/gu, '')
  return isInOrderIn(letters, expected) ? passed : failed('The initials are not those of the names in their order.')
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

/** "Count the records with level ERROR: [...]": how often a value stands in a list. */
export function checkOccurrences(task: ReadTask, output: ReadText): Finding {
  const text = task.full.raw.slice(0, 3_000)
  const target =
    /\b(?:[Cc]ount|[Hh]ow many|[Hh]ow often)\b[^:\n[]{0,60}?["“'`]?\b([A-Z][A-Z_]{2,20}|[a-z_]{3,20}(?=["”'`]))\b/.exec(
      text,
    )?.[1]
  const list = text.indexOf('[') >= 0 ? text.slice(text.indexOf('[')) : ''
  if (!target || !list) return notApplicable
  const items = list.split(/[,[\]]/).map((item) => item.replace(/["'`\s]/g, ''))
  const count = items.filter((item) => item === target).length
  if (count === 0 || items.length > 400) return notApplicable
  const numbers: readonly string[] = output.raw.match(/\b\d{1,4}\b/g) ?? []
  return numbers.length === 0 || numbers.includes(String(count)) ? passed : failed('The count is not right.')
}
