import { followingDates } from './calendar.ts'
import { MONTH_NAMES, WEEKDAY_NAMES } from './day-names.ts'
import { doubt, type Finding, failed, notApplicable, passed } from './finding.ts'
import { readNumbers, standsFor } from './numbers.ts'
import { requestedLengths } from './requested-length.ts'
import { requestedCounts } from './requested-size.ts'
import type { ReadTask } from './task.ts'
import { type ReadText, wordsOf } from './text.ts'

/** What a writer or a support agent was told is in the text: figures, codes, days, names. */
export function checkFactsUsed(task: ReadTask, output: ReadText): Finding {
  if (
    !/^(?:writer|support)/.test(task.agentId) ||
    task.is.summary ||
    task.is.extraction ||
    task.is.proofreading ||
    task.is.translation ||
    task.is.creative ||
    task.is.template ||
    task.isVague ||
    followingDates(task)
  )
    return notApplicable
  if (
    task.full.words.length > 160 ||
    /\b(?:classif\w{1,5}|label|triage|outline|headline|title|subject line|categor\w{1,4}|review|feedback|edit|improve|rewrite|shorten|paraphrase|ideas?)\b/i.test(
      task.request,
    )
  )
    return notApplicable
  const { facts, used } = countFacts(task, output)
  if (facts < 3) return notApplicable
  const numbers = readNumbers(output.raw, { words: true })
  const isMissed = used === 0 || (facts >= 4 && used * 4 <= facts)
  if (!isMissed) return passed
  const fault = failed(`${used} of the ${facts} facts that the task gives are in it.`)
  // Who applies a rule of the task to a case may write its figures and none of the case's own.
  const taskNumbers = readNumbers(task.full.raw)
    .slice(0, 12)
    .map(({ values: [value] }) => value!)
  const isShown = (value: number) => numbers.some((number) => standsFor(number, value))
  // "Free until 4 hours before" a session at 7: until three.
  const isCounted =
    SPAN_BEFORE.test(task.full.raw) &&
    taskNumbers.some((a) => taskNumbers.some((b) => a > b && (isShown(a - b) || isShown(a + b))))
  const usesRule = isCounted || taskNumbers.some(isShown)
  return used === 0 && !usesRule ? fault : doubt(fault)
}

/** How many facts a task gives, and how many of them are in the output. */
export function countFacts(task: ReadTask, output: ReadText): { facts: number; used: number } {
  const facts = hardFacts(task)
  const text = output.raw.toLowerCase()
  const numbers = readNumbers(output.raw, { words: true })
  const isUsed = (fact: string) => {
    if (/\d/.test(fact) ? text.includes(fact) : output.words.some((word) => word.startsWith(fact))) return true
    const [value] = readNumbers(fact, { words: true })
    return value !== undefined && /^\d/.test(fact) && numbers.some((number) => standsFor(number, value.values[0]!))
  }
  return { facts: facts.length, used: facts.filter(isUsed).length }
}

const SPAN_BEFORE = /\d (?:h|hours?|days?|weeks?|minutes?|min|months?) (?:before|after|ahead|in advance|prior|from)\b/i

/** Of the rules that a task gives, an answer needs those that fit its case only. */
const withoutRules = (text: string) =>
  text
    .split(/\n|(?<=[.!?])\s/)
    .filter(
      (line) =>
        !/^\W{0,4}(?:our )?(?:\w{1,16} )?(?:polic(?:y|ies)|rules?|terms|guidelines|faq|regeln?|règles?|reglas?|regol[ae]|regras?|zasad[ay]|conditions)\b[^:\n]{0,30}:/i.test(
          line,
        ),
    )
    .join('\n')

const RANGE_OF_LENGTH =
  /\b\d{1,4} ?(?:-|–|to|or) ?\d{1,4} (?:sentences?|lines?|words?|paragraphs?|bullets?|points?|items?|sätze|phrases|frases|frasi)\b/gi

/** Figures, codes, days, months and names of the task; not how long or how many it wants. */
function hardFacts(task: ReadTask): string[] {
  const text = withoutRules(task.full.raw).replaceAll(RANGE_OF_LENGTH, ' ')
  const facts = new Set<string>()
  const lengths = requestedLengths(text).flatMap(({ text: spec }) => spec.match(/\d+/g) ?? [])
  const counts = new Set([...requestedCounts(task).map(({ count }) => String(count)), ...lengths])
  for (const match of text.matchAll(/\b\d+(?:[.,:]\d+)*\b/g))
    if (!counts.has(match[0]) && facts.size < 20) facts.add(match[0].toLowerCase())
  for (const match of text.matchAll(/\b(?=[\w-]*\d)(?=[\w-]*[A-Z])[A-Z][A-Z0-9-]{3,20}\b/g))
    if (facts.size < 20) facts.add(match[0].toLowerCase())
  for (const word of new Set(wordsOf(text)))
    if (WEEKDAY_NAMES.includes(word) || MONTH_NAMES.includes(word)) facts.add(word)
  // Names in the middle of a sentence. German writes every noun with a capital.
  if (task.language?.language === 'en')
    for (const match of text.matchAll(
      /(?<=[\p{Ll},] |: (?=\p{Lu}\p{Ll}{1,20} \p{Lu}\p{Ll}))(?:Mr |Mrs |Ms |Dr )?(\p{Lu}\p{Ll}{2,20})\b/gu,
    ))
      if (
        facts.size < 20 &&
        !/^(?:English|German|French|Spanish|Italian|Linkedin|Twitter|Instagram|Policy|Customer|User)$/i.test(match[1]!)
      )
        facts.add(match[1]!.toLowerCase())
  return [...facts]
}
