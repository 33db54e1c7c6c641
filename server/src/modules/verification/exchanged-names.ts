import { MONTH_NAMES, WEEKDAY_NAMES } from './day-names.ts'
import { doubt, type Finding, failed, notApplicable } from './finding.ts'
import { hasTwoFigures, hasTwoNumbers, readNumbers } from './numbers.ts'
import type { ReadTask } from './task.ts'
import { type ReadText, sentencesOf, wordsOf } from './text.ts'
import { rankOf } from './word-meaning.ts'

const isDay = (word: string) => WEEKDAY_NAMES.includes(word.replace(/s$/, '')) || MONTH_NAMES.includes(word)

type Binding = { name: string; noun: string; value: number }

const BINDING_STOP = new Set(
  'your our my their we you these those there here if when what why how please yes thanks thank dear hi hello kind best both all each every one two three the and for with has have had was were are is its his her of to in on at by from will would can only just about over than more less who which that this a an as it they he she not no costs cost since until between desde hasta las los del para por con hacia der die das den dem und mit bis von vom zum zur seit ab uhr les des depuis jusqu pour avec entre'.split(
    ' ',
  ),
)

/** Which figure belongs to which name and noun: "Porto rent 700", "Braga has 2 rivals". The name is the last one before the figure in its part of the sentence. */
function bindingsOf(text: string, separators: RegExp): Binding[] {
  const bindings: Binding[] = []
  let name: string | undefined
  for (const part of text.slice(0, 4_000).split(separators)) {
    const names = [...part.matchAll(/(?<![\p{L}\d])\p{Lu}[\p{L}'’-]{1,20}/gu)].filter(
      ({ 0: word }) => !BINDING_STOP.has(word.toLowerCase()) && !isDay(word.toLowerCase()),
    )
    for (const number of readNumbers(part)) {
      // A year is a time or a citation.
      if (/^(?:19|20)\d\d$/.test(number.text)) continue
      const before = names.filter(({ index }) => index < number.start).at(-1)
      if (before) name = before[0].toLowerCase()
      if (!name || bindings.length >= 100) continue
      const left = wordsOf(part.slice(Math.max(0, number.start - 24), number.start)).filter(
        (word) => !BINDING_STOP.has(word) && word !== name && !/^\d/.test(word),
      )
      const right = wordsOf(part.slice(number.end, number.end + 20)).filter((word) => !BINDING_STOP.has(word))
      for (const noun of [left.at(-1), right[0]])
        if (noun && noun.length > 2) bindings.push({ name, noun: noun.slice(0, 5), value: number.values[0]! })
    }
    if (names.length > 0) name = names.at(-1)![0].toLowerCase()
  }
  return bindings
}

/** A figure that the source gives to one name stands with another; and what one does in the source the other does in the answer. */
export function checkExchangedNames(task: ReadTask, output: ReadText, source: string): Finding {
  if (task.is.creative || task.code) return notApplicable
  const sourceValues = hasTwoNumbers(source) ? bindingsOf(source, /[.;\n,"“”]/) : []
  const canBeExchanged = new Set(sourceValues.map(({ name }) => name)).size > 1
  const written = canBeExchanged ? bindingsOf(output.raw, /[.;\n]/) : []
  const conflicts = written.filter(({ name, noun, value }) => {
    const own = sourceValues.filter((binding) => binding.name === name && binding.noun === noun)
    const others = sourceValues.filter((binding) => binding.name !== name && binding.noun === noun)
    return (
      own.length > 0 &&
      own.every((binding) => binding.value !== value) &&
      others.some((binding) => binding.value === value)
    )
  })
  const fault = failed('A figure stands with another name than in the text given.')
  if (new Set(conflicts.map(({ name }) => name)).size > 1 || hasExchangedFigures(task, source, output.raw)) return fault
  if (conflicts.length > 0) return doubt(fault)
  if (task.language?.language !== 'en') return notApplicable
  const actions = actionsOf(source)
  return actions.length >= 2 && findSwap(actions, actionsOf(output.raw))
    ? failed('What one does in the text given, another does in the answer.')
    : notApplicable
}

const TITLE = /^(?:Mr|Mrs|Ms|Miss|Dr|Prof|Herr|Herrn|Frau|Monsieur|Madame|Mme|Señora?|Sra?|Signora?|Item|Team|The)$/

type Action = { name: string; verb: string }

/** Common words with a capital at the start of a sentence are no names. */
const RARE = 4_000

/** A name and the first word of meaning after it. */
function actionsOf(text: string): Action[] {
  const actions: Action[] = []
  for (const part of text.slice(0, 4_000).split(/[.;:,\n"“”«»()]|\bwhile\b|\bwhereas\b|\bbut\b|\band\b/)) {
    const names = [...part.matchAll(/(?<![\p{L}\d])\p{Lu}\p{Ll}{2,20}(?: \p{Lu}\p{Ll}{2,20})?/gu)].filter(
      ({ 0: name }) => (rankOf(name.toLowerCase().split(' ').at(-1)!) ?? RARE) >= RARE,
    )
    for (const [index, match] of names.entries()) {
      const end = match.index + match[0].length
      const verb = wordsOf(part.slice(end, Math.min(end + 40, names[index + 1]?.index ?? part.length))).find(
        (word) => !BINDING_STOP.has(word) && word.length > 3 && !/^\d/.test(word),
      )
      if (verb && actions.length < 60)
        actions.push({ name: match[0].toLowerCase().split(' ').at(-1)!, verb: verb.slice(0, 5) })
      // "presented by Dr Amara"
      const passive = /(\p{Ll}{4,20}ed) by (?:\p{Lu}\p{Ll}{1,4}\.? )?$/u.exec(
        part.slice(Math.max(0, match.index - 40), match.index),
      )
      if (passive && actions.length < 60)
        actions.push({ name: match[0].toLowerCase().split(' ').at(-1)!, verb: passive[1]!.slice(0, 5) })
    }
  }
  return actions
}

/** Two names have changed their places: each does in the answer what only the other does in the source. */
function findSwap(sourceValues: readonly Action[], written: readonly Action[]): boolean {
  const doers = (verb: string) => new Set(sourceValues.filter((action) => action.verb === verb).map(({ name }) => name))
  const isKnown = (name: string) => sourceValues.some((action) => action.name === name)
  return written.some(({ name, verb }) => {
    const names = doers(verb)
    return names.size === 1 && !names.has(name) && isKnown(name)
  })
}

const BELONGS_TO_NEXT =
  /^(?:[^.;\n\d]|\b(?:19|20)\d\d\b){0,30}\b(?:with|for|at|in|by|from|of|to|than|against|versus|vs|bei|für|mit|von|pour|chez|con|de|per) (?:the )?$/i

/** "09:31" is a time, which stands beside whoever is next to it. */
const isTime = (text: string, start: number, end: number) =>
  /^:[0-5]\d/.test(text.slice(end, end + 3)) || /\d:$/.test(text.slice(Math.max(0, start - 2), start))

/** The part of a text from each name to the next one, and the figures in it. */
function figuresByName(text: string, names: readonly string[]): Map<string, Set<number>> {
  const places = names
    .flatMap((name) => placesOf(text, name).map((at) => ({ name, at })))
    .sort((a, b) => a.at - b.at)
    .slice(0, 60)
  const figures = new Map<string, Set<number>>()
  for (const [index, { name, at }] of places.entries()) {
    const part = text.slice(at + name.length, places[index + 1]?.at ?? at + 300)
    const known = figures.get(name) ?? new Set()
    // "5 years with Bergmann": the figure belongs to the name that follows.
    for (const { values, start, end } of readNumbers(part).slice(0, 12))
      if (!isTime(part, start, end) && !BELONGS_TO_NEXT.test(part.slice(end))) known.add(values[0]!)
    figures.set(name, known)
  }
  return figures
}

/** The figures of each sentence or clause that has one name, whichever of them stands first. */
function figuresBySentence(text: string, names: readonly string[]): Map<string, Set<number>> {
  const figures = new Map<string, Set<number>>()
  for (const sentence of sentencesOf(text)
    .flatMap((part) => part.split(/;\s/))
    .slice(0, 60)) {
    const [name, ...others] = names.filter((other) => placesOf(sentence, other).length > 0)
    if (!name || others.length > 0) continue
    const known = figures.get(name) ?? new Set()
    for (const { values, start, end } of readNumbers(sentence).slice(0, 12))
      if (!isTime(sentence, start, end)) known.add(values[0]!)
    figures.set(name, known)
  }
  return figures
}

function placesOf(text: string, name: string): number[] {
  const places: number[] = []
  for (let at = text.indexOf(name); at >= 0 && places.length < 12; at = text.indexOf(name, at + name.length))
    if (!/[\p{L}\d]/u.test(text[at - 1] ?? ' ') && !/[\p{L}\d]/u.test(text[at + name.length] ?? ' ')) places.push(at)
  return places
}

/** Each of two names has, after it, a figure that in the source only the other one has. */
function hasExchangedFigures(task: ReadTask, source: string, answer: string): boolean {
  // German writes every noun with a capital.
  if (!hasTwoFigures(source) || task.language?.language === 'de' || task.targetLanguage) return false
  const names = [...new Set(source.slice(0, 4_000).match(/(?<![\p{L}\d])\p{Lu}[\p{L}\d-]{1,20}/gu) ?? [])]
    .filter(
      (name) =>
        !isDay(name.toLowerCase()) &&
        !BINDING_STOP.has(name.toLowerCase()) &&
        !TITLE.test(name) &&
        !/^[A-Z]{2,4}$/.test(name),
    )
    .filter((name) => placesOf(answer, name).length > 0)
    .slice(0, 12)
  if (names.length < 2 || /\brespectively\b/i.test(`${source}${answer}`)) return false
  return [figuresByName, figuresBySentence].some((read) => isExchanged(names, read(source, names), read(answer, names)))
}

type FiguresOf = ReadonlyMap<string, ReadonlySet<number>>

function isExchanged(names: readonly string[], given: FiguresOf, written: FiguresOf): boolean {
  const hasOf = (name: string, other: string) =>
    [...(written.get(name) ?? [])].some(
      (value) => given.get(other)?.has(value) && !given.get(name)?.has(value) && !written.get(other)?.has(value),
    )
  return names.some((name, i) => names.slice(i + 1).some((other) => hasOf(name, other) && hasOf(other, name)))
}
