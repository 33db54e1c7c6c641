import { spendSteps } from '../../platform/step-budget.ts'
import { type Finding, failed, notApplicable, passed } from './finding.ts'
import { numberOfWord } from './numbers.ts'
import type { ReadTask } from './task.ts'
import { type ReadText, sentencesOf, wordsOf } from './text.ts'
import { rankOf } from './word-meaning.ts'

/** Names with a rank below this are common words at the start of a sentence. */
const COMMON = 1_500
const MAX_NAMES = 12
const COMMON_WORDS = new Set(
  'with from that this they them their there have been were will would could should which while when where what your only also into over than then very much more most some such same other after before because about these those each does done being under between during through both years year'.split(
    ' ',
  ),
)

type Attribution = { name: string; words: ReadonlySet<string> }

/** A name and the words of meaning in the clauses about it alone, numbers as digits. */
function attributionsOf(text: string, names: readonly string[]): Attribution[] {
  spendSteps(text.length * 4)
  const attributions: Attribution[] = []
  for (const sentence of sentencesOf(text.slice(0, 6_000)).slice(0, 80)) {
    let subject: string | undefined
    for (const clause of sentence.split(/[;|]|,? (?:while|whereas|but)\b|\band (?=\p{Lu})|, (?=\p{Lu}\p{Ll})/u)) {
      const words = wordsOf(clause)
      const named = names.filter((name) => words.includes(name))
      if (named.length > 1) subject = undefined
      else subject = named[0] ?? subject
      if (!subject || named.length > 1) continue
      const meaning = words
        .filter((word) => !names.includes(word) && !COMMON_WORDS.has(word))
        .map((word) => String(numberOfWord(word) ?? word))
        .filter((word) => word.length >= 4 || /^\d+$/.test(word))
      if (meaning.length > 0)
        attributions.push({ name: subject, words: new Set(meaning.map((word) => word.slice(0, 5))) })
    }
  }
  return attributions
}

/** People and companies that stand in the text with a capital in the middle of a sentence or in front of a colon. */
function namesOf(text: string): string[] {
  const names = new Set<string>()
  for (const [, name] of [...text.slice(0, 6_000).matchAll(/(?<![\p{L}\d])(\p{Lu}\p{Ll}{1,20})(?![\p{L}\d])/gu)].slice(
    0,
    200,
  )) {
    const word = name!.toLowerCase()
    if ((rankOf(word) ?? COMMON) >= COMMON && names.size < MAX_NAMES) names.add(word)
  }
  return [...names]
}

/** What the text given says of one name only, the answer says of another: in two clauses, or of both names in turn. */
export function checkAttributions(task: ReadTask, output: ReadText): Finding {
  if (task.is.translation || task.is.creative || task.code || task.language?.language !== 'en') return notApplicable
  if (!/^(?:researcher|strategist|default|writer|analyst|support)/.test(task.agentId)) return notApplicable
  const source = [task.full.raw, ...task.context].join('\n')
  const names = namesOf(source)
  if (names.length < 2) return notApplicable
  const given = attributionsOf(source, names)
  const owners = new Map<string, Set<string>>()
  for (const { name, words } of given)
    for (const word of words) owners.set(word, (owners.get(word) ?? new Set()).add(name))
  const known = new Set(given.map(({ name }) => name))
  if (known.size < 2) return notApplicable
  const swapped = new Set<string>()
  for (const { name, words } of attributionsOf(output.raw, names)) {
    if (!known.has(name)) continue
    const owned = [...words].filter((word) => owners.get(word)?.size === 1)
    const own = owned.filter((word) => owners.get(word)!.has(name)).length
    const [other] = owned.flatMap((word) => [...owners.get(word)!]).filter((owner) => owner !== name)
    if (own > 0 || !other || owned.length - own < 1) continue
    swapped.add(`${name} ${other}`)
  }
  const isSwapped = [...swapped].some((pair) => swapped.has(pair.split(' ').reverse().join(' ')))
  return isSwapped ? failed('What the text given says of one name, the answer says of another.') : passed
}
