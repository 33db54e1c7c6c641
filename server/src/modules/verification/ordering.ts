import { doubt, type Finding, failed, notApplicable, passed } from './finding.ts'
import { readNumbers, withoutGroups } from './numbers.ts'
import { answerRows, hasName, headedRowsOf, jsonRowsOf, nameOfRow, recordsOf } from './records.ts'
import type { ReadTask } from './task.ts'
import type { ReadText } from './text.ts'

type LabelledValue = { label: string; value: number }

/** "Alva 12.4k, Brio 9.9k", "C (1932)", "Pen: 2.00", and rows of "Axo,4.10,100": a label and the figure that belongs to it. */
export function labelledValues(given: string): LabelledValue[] {
  const text = withoutGroups(given).replaceAll(/^[ \t]{0,8}[-*•] /gm, '')
  // Days and weeks cannot be compared by their figures.
  const units = new Set(
    (text.match(/\d\s?(?:days?|weeks?|months?|years?|hours?|minutes?|h|min)\b/gi) ?? []).map((unit) =>
      unit.replace(/[\d\s]|s$/g, ''),
    ),
  )
  if (units.size > 1) return []
  const rows = text
    .split('\n')
    .map((line) => /^([\p{L}][\p{L}\d .-]{0,30})[,;\t|]\s?[$€£]?(-?\d[\d.]{0,12})(?:[,;\t|]|$)/u.exec(line.trim()))
    .filter((match) => match !== null)
  const matches =
    rows.length >= 3
      ? rows
      : [
          ...text.matchAll(
            /(?:^|[,;:?.\n(]|\band)\s{0,3}([\p{L}][\p{L}\d'’ .-]{0,30}?)\s?[:=(–-]?\s?[$€£]?(-?\d[\d.,]{0,12}\d|\d)\s?(?:[km]\b)?(?=\s?[),;.\n]|\s?$|\s?(?:%|[€$£]|\p{L}{1,12})\s?(?:[,;.\n)]|$))/giu,
          ),
        ]
  const pairs = matches.slice(0, 40).flatMap((match) => {
    const label = match[1]!.trim().split(/\s/).at(-1)!.toLowerCase()
    const value = readNumbers(match[2]!)[0]?.values[0]
    return value === undefined || label.length < 1 ? [] : [{ label, value: match[2]!.startsWith('-') ? -value : value }]
  })
  return new Set(pairs.map(({ label }) => label)).size === pairs.length ? pairs : []
}

export const DESCENDING =
  /\b(?:descending|(?:highest|largest|biggest|greatest|priciest|best|newest|latest|longest|heaviest|tallest|dearest|most \w{2,12})(?: (?!of|the|in|on|for)\w{2,15})? first|desc|most first|high(?:est)? to low(?:est)?|top first|from (?:high|large|big)\w{0,3}|(?:large|big|great|long|heavi|new|late|old)(?:e?st)? to (?:small|short|light|old|earl|young)\w{0,5}|absteigend\w{0,2}|von hoch nach niedrig|von groß nach klein|(?:größte|höchste|teuerste|längste|neueste|schwerste|meiste)\w{0,2} zuerst|décroissante?|descendente|de mayor a menor|decrescente|dal più alto|aflopend)\b/i
export const ASCENDING =
  /\b(?:ascending|(?:lowest|smallest|cheapest|fastest|oldest|earliest|shortest|lightest|soonest)(?: (?!of|the|in|on|for)\w{2,15})? first|(?<!name )asc|low(?:est)? to high(?:est)?|chronological(?:ly)?(?: order)?|aufsteigend\w{0,2}|von niedrig nach hoch|von klein nach groß|(?:kleinste|niedrigste|billigste|günstigste|kürzeste|älteste|leichteste)\w{0,2} zuerst|(?<!dé)croissante?|ascendente|de menor a mayor|(?<!de)crescente|oplopend|oldest to newest|earliest to latest|(?:small|short|light)(?:est)? to (?:large|big|long|heav|tall)\w{0,5}|cheapest to|from (?:low|small|cheap)\w{0,4})\b/i

/** Lines of JSON look like code. */
const isCode = (task: ReadTask) =>
  task.code !== '' && (task.agentId.startsWith('coder') || jsonRowsOf(task.full.raw).length === 0)

/** Rows of JSON or under a header, with the one column of figures that the request names, or that there is. */
function keyedRows(task: ReadTask): LabelledValue[] | undefined {
  const json = jsonRowsOf(task.full.raw)
  const rows = json.length > 0 ? json : headedRowsOf(task.full.raw)
  if (rows.length === 0) return undefined
  const keys = Object.keys(rows[0]!).filter((key) => rows.every((row) => typeof row[key] === 'number'))
  const asked = task.full.raw
    .replaceAll(/"[^"\n]{1,60}" ?:/g, ' ')
    .split('\n', 1)[0]!
    .toLowerCase()
  const named = keys.filter(
    (key) => hasName(asked, key.toLowerCase()) || hasName(asked, key.toLowerCase().replaceAll('_', ' ')),
  )
  const [key, ...others] = keys.length === 1 ? keys : named
  return key && others.length === 0 ? rows.map((row) => ({ label: nameOfRow(row), value: Number(row[key]) })) : []
}

/** "Add a column with the margin and sort by it": the figures of the task are not what it is sorted by. */
const SORTED_BY_RESULT = /\badd (?:an? |the )?(?:\w{1,20} )?columns?\b|\bby (?:it|that|this|the result)\b/i

/** "List the five Great Lakes, alphabetical order": lines of a name each. */
function isOutOfAlphabet(request: string, output: ReadText): boolean {
  if (!/\b(?:in )?alphabetical(?:ly)?(?: order)?\b|\balphabetisch\b/i.test(request)) return false
  if (
    /\b(?:reverse|z-a|z to a|surnames?|last names?|nachname\w?|family names?|each|per|groups?|by|sort under)\b/i.test(
      request,
    )
  )
    return false
  const items = output.lines.map((line) => /^(?:[-*•]|\d{1,2}[.)])\s+(\p{L}[\p{L} '’-]{1,30})$/u.exec(line.trim())?.[1])
  if (items.length < 3 || items.some((item) => item === undefined)) return false
  return items.some((item, i) => i > 0 && item!.localeCompare(items[i - 1]!, 'en', { sensitivity: 'base' }) < 0)
}

/** "Sort these titles: "Rust", "Bees", "Bread"": three names and more in quotation marks, and not one of them in the answer. */
function hasNoneOfList(request: string, output: ReadText): boolean {
  if (
    !/\b(?:sort|rank|order|arrange|sortier\w{1,3}|ordne|ordena|ordina) (?:these|the|them|this|my|our|diese|die|estos|estas|questi)\b/i.test(
      request,
    )
  )
    return false
  const names = [...request.matchAll(/["“„«]([^"“”„«»\n]{2,40})["”“»]/gu)].map(([, name]) => name!.toLowerCase())
  const text = output.raw.toLowerCase()
  return names.length >= 3 && names.every((name) => !text.includes(name))
}

/** "Sort by revenue, highest first": the labels stand in the order of their figures. */
export function checkOrder(task: ReadTask, output: ReadText): Finding {
  const request = task.full.raw.slice(0, 800)
  if (
    !/\b(?:sort|rank|order|arrange|put|list|reihenfolge|rangliste|ordre|orden|chronological\w{0,2}|sortier\w{1,3}|ordnen?|tri\w{1,3}|class\w{1,3}|ordena\w?|ordina\w?|sorteer)\b/i.test(
      request,
    ) ||
    isCode(task)
  )
    return notApplicable
  if (isOutOfAlphabet(request, output)) return failed('It is not in the order asked for.')
  if (hasNoneOfList(request, output)) return failed('It has nothing of what was to be put in order.')
  const isDescending = DESCENDING.test(request)
  if (isDescending === ASCENDING.test(request)) return notApplicable
  if (SORTED_BY_RESULT.test(request)) return notApplicable
  if (/\b(?:ratio|per|divided|urgen\w{1,3}|priority|relevan\w{1,3})\b|\/(?=effort|cost|value)/i.test(request))
    return notApplicable
  const pairs = keyedRows(task) ?? labelledValues(request)
  if (pairs.length < 3) return notApplicable
  const text = output.raw.toLowerCase()
  const placed = pairs
    .map((pair) => ({ ...pair, at: placeOf(text, pair.label) }))
    .filter(({ at }) => at >= 0)
    .sort((a, b) => a.at - b.at)
  if (placed.length < pairs.length) return notApplicable
  const isSorted = placed.every(
    ({ value }, i) => i === 0 || (isDescending ? value <= placed[i - 1]!.value : value >= placed[i - 1]!.value),
  )
  return isSorted ? passed : failed('It is not in the order asked for.')
}

/** "By payback time, shortest first": the figure that the answer itself puts beside each name rises or falls through its rows. */
export function checkShownOrder(task: ReadTask, output: ReadText): Finding {
  const request = task.full.raw.slice(0, 800)
  const isDescending = DESCENDING.test(request)
  if (
    !/\b(?:sort\w{0,5}|rank\w{0,3}|order\w{0,3}|ordnen?|tri\w{1,3}|ordena\w?|ordina\w?)\b/i.test(request) ||
    isDescending === ASCENDING.test(request) ||
    // Days are in order although the figures beside them are not.
    /\bchronolog/i.test(request) ||
    isCode(task)
  )
    return notApplicable
  // A column of the task is compared by its own figures.
  if (keyedRows(task)?.length) return notApplicable
  const records = recordsOf(task.full.raw)
  const names = new Set<string>()
  const rows = answerRows(output.raw, [...new Set(records.map(({ name }) => name))]).filter(
    ({ name }) => !names.has(name) && names.add(name),
  )
  const width = rows[0]?.numbers.length ?? 0
  if (rows.length < 3 || rows.length !== new Set(records.map(({ name }) => name)).size) return notApplicable
  if (rows.some(({ numbers }) => numbers.length !== width) || width > 4) return notApplicable
  const columns = Array.from({ length: width }, (_, column) => rows.map(({ numbers }) => numbers[column]!.values[0]!))
  const isSorted = (values: readonly number[]) =>
    values.every((value, i) => i === 0 || (isDescending ? value <= values[i - 1]! : value >= values[i - 1]!))
  const sorted = columns.find(isSorted)
  if (!sorted) return failed('It is not in the order asked for.')
  const isByNameNext = /\bthen (?:by )?(?:the )?names?\b(?! desc)|\bties? (?:by|alphabetical\w{0,2})/i.test(request)
  const isTieWrong = rows.some(
    ({ name }, i) => i > 0 && sorted[i] === sorted[i - 1] && name.localeCompare(rows[i - 1]!.name, 'en') < 0,
  )
  return isByNameNext && isTieWrong ? failed('Equal figures are not in the order asked for.') : passed
}

/** The first place of a label as a word of its own. */
function placeOf(text: string, label: string): number {
  for (let at = text.indexOf(label); at >= 0; at = text.indexOf(label, at + 1))
    if (!/[\p{L}\d]/u.test(text[at - 1] ?? ' ') && !/[\p{L}\d]/u.test(text[at + label.length] ?? ' ')) return at
  return -1
}

/** "Which vendor is cheapest?": the label of the smallest figure has to be named, and first among the labels of a short answer. */
export function checkExtremes(task: ReadTask, output: ReadText): Finding {
  const request = task.full.raw.slice(0, 1_500)
  const wantsMax =
    /\b(?:which|who|what)\b.{0,60}\b(?:highest|largest|biggest|most|greatest|best-selling|maximum|fastest growing|tallest|oldest|heaviest|hottest|warmest)\b/i.test(
      request,
    )
  const wantsMin =
    /\b(?:which|who|what)\b.{0,60}\b(?:lowest|smallest|least|fewest|cheapest|minimum|coldest|shortest|lightest)\b/i.test(
      request,
    )
  if (wantsMax === wantsMin || task.full.words.length > 120 || task.code) return notApplicable
  const pairs = labelledValues(request)
  if (pairs.length < 3) return notApplicable
  const target = pairs.reduce((best, pair) =>
    (wantsMax ? pair.value > best.value : pair.value < best.value) ? pair : best,
  )
  return placeOf(output.raw.toLowerCase(), target.label) >= 0
    ? passed
    : doubt(failed('It does not name the figure that is asked for.'))
}
