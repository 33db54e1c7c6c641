import { readFileSync } from 'node:fs'
import { type AnswerFeatures, answerFeatures, registerFeatures } from './answer-features.ts'
import { type BoostedTrees, scoreOfTrees } from './boosted-trees.ts'
import type { ReadTask } from './task.ts'
import { quotedPassages, type ReadText, sentencesOf, splitFences, wordsOf } from './text.ts'
import { topicFeatures } from './topic-features.ts'
import { meanOf, rankOf } from './word-meaning.ts'

/**
 * Two models, fitted by `server/scripts/train-answer-model.ts`: whether an output declines or talks around the task instead of
 * doing it, and whether it is about another subject or of another kind than the task wants. Each is a sum of small trees over
 * features with names; some of these are scores of linear models, over words and over the manner of a text.
 */
export type LinearModel = { bias: number; weights: Record<string, number> }
/** The weights of hashed words, one byte each. */
export type TextModel = { bias: number; scale: number; words: string }
export type Kinds = Readonly<Record<string, LinearModel>>

export type AnswerModels = {
  refusal_text: TextModel
  refusal_sentence: TextModel
  declines: BoostedTrees
  kinds: Kinds
  topic: BoostedTrees
}

export const WORD_BUCKETS = 8_192
const MAX_WORDS = 60
const MAX_SENTENCES = 10
const HEAD = 600

const isUnspaced = (text: string) =>
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Hangul}]/u.test(text)

/** The buckets of words, of two and three words in a row and of stems; pairs of characters where words are not set apart. */
export function wordBuckets(text: string): Map<number, number> {
  const words = wordsOf(text.slice(0, HEAD))
    .slice(0, MAX_WORDS)
    .map((word) => (/^\d/.test(word) ? '#' : word))
  const grams = new Set<string>([`^ ${words[0]}`])
  words.forEach((word, index) => {
    if (isUnspaced(word)) {
      for (let i = 0; i + 1 < Math.min(word.length, 60); i++) grams.add(word.slice(i, i + 2))
      return
    }
    grams.add(word)
    if (index > 0) grams.add(`${words[index - 1]} ${word}`)
    if (index > 1) grams.add(`${words[index - 2]} ${words[index - 1]} ${word}`)
    if (word.length > 6) grams.add(`${word.slice(0, 5)}*`)
  })
  if (/\?\s{0,3}$/.test(text)) grams.add('?')
  if (/\d/.test(text)) grams.add('#any')
  const share = 1.5 / Math.sqrt(Math.max(5, grams.size))
  return new Map([...grams].map((gram) => [hashOf(gram) % WORD_BUCKETS, share]))
}

/** FNV-1a. */
function hashOf(text: string): number {
  let hash = 2_166_136_261
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16_777_619)
  return hash >>> 0
}

const weightsOf = new WeakMap<TextModel, Int8Array>()

export function scoreOfText(model: TextModel, text: string): number {
  const weights = weightsOf.get(model) ?? new Int8Array(Buffer.from(model.words, 'base64'))
  weightsOf.set(model, weights)
  let score = model.bias
  for (const [bucket, count] of wordBuckets(text)) score += weights[bucket]! * model.scale * count
  return score
}

const entriesOf = new WeakMap<LinearModel, readonly (readonly [name: string, weight: number])[]>()

const scoreOfLinear = (model: LinearModel, features: AnswerFeatures) => {
  const entries = entriesOf.get(model) ?? Object.entries(model.weights)
  entriesOf.set(model, entries)
  let score = model.bias
  for (const [name, weight] of entries) score += weight * (features[name] ?? 0)
  return score
}

/** The sentences of an output that the model of refusals reads one by one. */
export const sentencesToScore = (output: ReadText): string[] =>
  sentencesOf(splitFences(output.raw).prose)
    .filter((sentence) => wordsOf(sentence).length > 0)
    .slice(0, MAX_SENTENCES)

const EDITS = /\b(?:rewrite|rephrase|plain|polite|shorten|reply|respond|decline)\b/i

/** What the trees for refusals read: a text that declines does so in each of its sentences and uses little of the task. */
export function declineFeatures(
  models: Pick<AnswerModels, 'refusal_text' | 'refusal_sentence'>,
  task: ReadTask,
  output: ReadText,
): AnswerFeatures {
  const scores = sentencesToScore(output).map((sentence) => scoreOfText(models.refusal_sentence, sentence))
  const sorted = [...scores].sort((a, b) => a - b)
  const figures = output.raw.match(/\d+(?:[.,]\d+)*/g) ?? []
  const count = Math.max(1, scores.length)
  return {
    ...answerFeatures(task, output),
    text: scoreOfText(models.refusal_text, output.raw),
    sentence_mean: scores.reduce((sum, score) => sum + score, 0) / count,
    sentence_least: sorted[0] ?? 0,
    sentence_second: sorted[1] ?? sorted[0] ?? 0,
    sentence_most: sorted.at(-1) ?? 0,
    sentence_first: scores[0] ?? 0,
    sentence_last: scores.at(-1) ?? 0,
    sentence_share: scores.filter((score) => score > 0).length / count,
    sentence_count: scores.length,
    new_figures: Math.min(5, figures.filter((figure) => !task.full.raw.includes(figure)).length),
    code_blocks: splitFences(output.raw).blocks.length,
    line_count: Math.min(10, output.lines.length),
    yes_or_no: /^(?:yes|no|ja|nein|oui|non|sí|si)\b/i.test(output.raw) ? 1 : 0,
    wants_questions: task.is.questions ? 1 : 0,
    wants_edit: EDITS.test(task.request) ? 1 : 0,
    has_quote: /["“„«]/.test(output.raw) ? 1 : 0,
    task_asks: task.request.includes('?') ? 1 : 0,
  }
}

/** The manner of a text and the mean meaning of its words. */
export function kindFeatures(output: ReadText): AnswerFeatures {
  const ranks = output.words.slice(0, MAX_WORDS).flatMap((word) => rankOf(word) ?? [])
  const meaning = meanOf(ranks)
  return {
    ...registerFeatures(output),
    ...Object.fromEntries([...meaning].map((value, i) => [`meaning_${i}`, 4 * value])),
  }
}

export const LANE_KINDS = ['analyst', 'coder', 'comedian', 'support', 'writer', 'strategist', 'researcher'] as const

/** What the trees for the subject read: what task and output share, and how like the work of each lane the output is. */
export function subjectFeatures(kinds: Kinds, task: ReadTask, output: ReadText): AnswerFeatures {
  const manner = kindFeatures(output)
  const scores = LANE_KINDS.map((kind) => scoreOfLinear(kinds[kind]!, manner))
  const lane = LANE_KINDS.findIndex((kind) => task.agentId.startsWith(kind))
  const own = lane < 0 ? 0 : scores[lane]!
  const other = Math.max(...scores.filter((_, i) => i !== lane))
  return {
    ...topicFeatures(task, output),
    kind_own: own,
    kind_other: other,
    kind_margin: own - other,
    kind_essay: scoreOfLinear(kinds.essay!, manner),
    ...Object.fromEntries(LANE_KINDS.map((kind, i) => [`kind_${kind}`, scores[i]!])),
  }
}

let loaded: AnswerModels | undefined

const models = (): AnswerModels => {
  loaded ??= JSON.parse(
    readFileSync(new URL('../../../data/verification/answer-model.json', import.meta.url), 'utf8'),
  ) as AnswerModels
  return loaded
}

export const scoreDeclining = (task: ReadTask, output: ReadText) =>
  scoreOfTrees(models().declines, declineFeatures(models(), task, output))

export const scoreOtherSubject = (task: ReadTask, output: ReadText) =>
  scoreOfTrees(models().topic, subjectFeatures(models().kinds, task, output))

/** Who translates, fills a template or asks for what is missing may use the words of a refusal. */
export const canDecline = (task: ReadTask, output: ReadText): boolean =>
  !(
    task.is.translation ||
    task.targetLanguage ||
    task.isVague ||
    task.lacksMaterial ||
    task.is.template ||
    output.words.length > 130 ||
    (output.words.length < 4 && !isUnspaced(output.raw)) ||
    /\b(?:repeat|echo|word for word|verbatim)\b/i.test(task.request) ||
    // Speech that is quoted is somebody else's.
    quotedPassages(output.raw, 600).some((quote) => wordsOf(quote.text).length >= 6)
  )

/** A task with a subject of its own, and an output long enough to have one. */
export const hasSubject = (task: ReadTask, output: ReadText): boolean =>
  !(
    task.is.translation ||
    task.targetLanguage ||
    task.isVague ||
    task.lacksMaterial ||
    task.is.template ||
    (output.words.length < 8 && !isUnspaced(output.raw)) ||
    /\bare you\b|\byourself\b|\bwithout (?:using|saying|naming|mentioning)\b/i.test(task.request)
  )
