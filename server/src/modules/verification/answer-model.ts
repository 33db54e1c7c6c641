import { readFileSync } from 'node:fs'
import { answerFeatures, registerFeatures } from './answer-features.ts'
import type { ReadTask } from './task.ts'
import { quotedPassages, type ReadText, wordsOf } from './text.ts'
import { meanOf, rankOf } from './word-meaning.ts'

/**
 * Two linear models, fitted by `server/scripts/train-answer-model.ts`: whether an output declines or talks around the task
 * instead of doing it, and whether it is an encyclopaedic text where a message, a joke, code or advice was wanted.
 */
export type LinearModel = {
  bias: number
  weights: Record<string, number>
  /** The weights of words and pairs of words, by hash. */
  words?: readonly number[]
  /** The weights of the mean vector of the words. */
  meaning?: readonly number[]
}

export type AnswerModels = { declines: LinearModel; register: LinearModel }

const MAX_WORDS = 60
export const WORD_BUCKETS = 4_096

const isUnspaced = (text: string) =>
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Hangul}]/u.test(text)

/** The buckets of the words, of pairs of words and of stems; pairs of characters where words are not set apart. */
export function wordBuckets(text: string): Map<number, number> {
  const words = wordsOf(text.slice(0, 2_000)).slice(0, MAX_WORDS)
  const grams = new Set<string>()
  words.forEach((word, index) => {
    if (isUnspaced(word)) for (let i = 0; i + 1 < Math.min(word.length, 100); i++) grams.add(word.slice(i, i + 2))
    else {
      grams.add(/^\d/.test(word) ? '#' : word)
      if (index > 0) grams.add(`${words[index - 1]} ${word}`)
      if (word.length > 6) grams.add(`${word.slice(0, 5)}*`)
    }
  })
  const buckets = new Map<number, number>()
  const share = 2 / Math.sqrt(Math.max(6, grams.size))
  for (const gram of grams) {
    const bucket = hashOf(gram) % WORD_BUCKETS
    buckets.set(bucket, (buckets.get(bucket) ?? 0) + share)
  }
  return buckets
}

/** FNV-1a. */
function hashOf(text: string): number {
  let hash = 2_166_136_261
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16_777_619)
  return hash >>> 0
}

export const meaningOf = (output: ReadText): Float64Array => {
  const ranks = output.words.slice(0, MAX_WORDS).flatMap((word) => rankOf(word) ?? [])
  return meanOf(ranks).map((value) => value * 4)
}

export function scoreOf(model: LinearModel, task: ReadTask, output: ReadText, kind: keyof AnswerModels): number {
  const features: Readonly<Record<string, number>> =
    kind === 'declines' ? answerFeatures(task, output) : registerFeatures(output)
  let score = model.bias
  for (const [name, weight] of Object.entries(model.weights)) score += weight * (features[name] ?? 0)
  if (model.words) for (const [bucket, count] of wordBuckets(output.raw)) score += (model.words[bucket] ?? 0) * count
  if (model.meaning && features.english) {
    const meaning = meaningOf(output)
    model.meaning.forEach((weight, i) => {
      score += weight * meaning[i]!
    })
  }
  return score
}

let loaded: AnswerModels | undefined

const models = (): AnswerModels => {
  loaded ??= JSON.parse(
    readFileSync(new URL('../../../data/verification/answer-model.json', import.meta.url), 'utf8'),
  ) as AnswerModels
  return loaded
}

export const scoreDeclining = (task: ReadTask, output: ReadText) => scoreOf(models().declines, task, output, 'declines')
export const scoreRegister = (task: ReadTask, output: ReadText) => scoreOf(models().register, task, output, 'register')

/** Who translates, fills a template or asks for what is missing may use the words of a refusal. */
export const canDecline = (task: ReadTask, output: ReadText): boolean =>
  !(
    task.is.translation ||
    task.targetLanguage ||
    task.isVague ||
    task.lacksMaterial ||
    task.is.template ||
    output.words.length > 70 ||
    (output.words.length < 5 && !isUnspaced(output.raw)) ||
    /\b(?:repeat|echo|word for word|verbatim)\b/i.test(task.request) ||
    // Speech that is quoted is somebody else's.
    quotedPassages(output.raw, 600).some((quote) => wordsOf(quote.text).length >= 6)
  )

const EXPLAINS =
  /\b(?:explain|what (?:does|is|are|was|were|do)|what's|why|how (?:does|do|did)|describe|who|history|overview|about[- ]us|summar\w{1,6}|compare|definition|facts?|rewrite|abstract|bio)\b/i

/** A task that plainly wants something else than a text about a subject. */
export const wantsNoEssay = (task: ReadTask, output: ReadText): boolean =>
  !task.agentId.startsWith('researcher') &&
  !(/^(?:coder|default|support|analyst)/.test(task.agentId) && /\?/.test(task.request)) &&
  !(
    task.is.translation ||
    task.isVague ||
    task.lacksMaterial ||
    task.is.template ||
    task.targetLanguage ||
    output.words.length < 14 ||
    // Verses.
    (task.is.creative && output.lines.length >= 3)
  ) &&
  (!EXPLAINS.test(task.request) || /\b(?:customer|client|jokes?)\b/i.test(task.request))
