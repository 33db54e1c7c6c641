import { answerFeatures } from './answer-features.ts'
import { numberOfWord } from './numbers.ts'
import type { ReadTask } from './task.ts'
import { type ReadText, sentencesOf, splitFences, wordsOf } from './text.ts'
import { meanOf, nearestSimilarities, rankOf, weightOfRank } from './word-meaning.ts'

/** What the model of `topic-model.ts` reads of a task and an output, each a number with a name. */
export type TopicFeatures = Readonly<Record<string, number>>

const MAX_TASK_WORDS = 80
const MAX_OUTPUT_WORDS = 160
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Hangul}]/u
/** Words of the order, not of its subject. */
const ORDER_WORDS = new Set(
  'write make give tell explain list name draft reply answer short brief sentence sentences word words line lines paragraph joke jokes pun poem story email mail letter note message customer customers text summary summarise summarize please under about with from using use need want best three two one five four max code function python javascript sql rank sort compare plan should which what why how when where who does bullet bullets points point table funny friendly polite tone format simple explain describe create our your my their his her'.split(
    ' ',
  ),
)

/** An answer that goes on from the question: "They …", "Because …". */
export const PRONOUN =
  /^(?:they|it|its|he|she|because|this|that|these|those|there|yes|no|not|both|neither|nothing|none|only|nobody|all|sie|er|es|weil|ja|nein|ils|elles|il|elle|parce|oui|porque|perché|sí|sim|não|to(?= (?:jest|są|był\p{L}{0,2}|nie|się|już)\b)|bo|tak|nie)(?!\p{L})/iu
const EXPLAINS =
  /\b(?:explain|what (?:does|is|are|was|were|do)|what's|why|how (?:does|do|did|is|are)|describe|who|history|overview|facts?|difference|known|compare|erkläre|warum|was ist|wie|pourquoi|comment|qu'est-ce|por qué|cómo|qué es|perché|come|por que|o que)\b/i
const WANTS_LIST =
  /\b(?:list|bullets?|steps?|options|ideas|reasons|tips|points|checklist|risks|items|ranked?|top \d|\d (?:\p{L}{1,20} )?(?:ideas|reasons|options|tips|names|risks|points|steps)|pros and cons|liste|lista|schritte|étapes|pasos)\b/iu
const WANTS_CODE =
  /\b(?:code|function|script|regex|query|sql|unit tests?|class|method|endpoint|component|dockerfile|snippet|one-?liner|program|cron|curl|typescript|javascript|python|bash)\b/i
const WANTS_TEXT =
  /\b(?:e-?mail|letter|post|reply|respond|message|note|card|speech|toast|invitation|announcement|ad|slogan|headline|tagline|product text|description|paragraph|newsletter|tweet|caption|subject line|answer (?:the|this|to)|antworte|schreib\w{0,2}|réponds|écris|responde|escribe|rispondi|scrivi|escreva)\b/iu
const WANTS_FIGURE =
  /\b(?:sum|total|average|mean|median|how (?:much|many)|percent\w{0,3}|calculate|compute|convert|rate|ratio|share|growth|margin|break-?even|roi|payback|cost|mode|std|variance|summe|durchschnitt|berechne|wie viele?|moyenne|combien|promedio|cuánt\w{1,3}|media|quant\w{1,2})\b/i

type Side = { ranks: number[]; stems: Map<string, number>; grams: Set<string> }

const stemOf = (word: string) =>
  /^[a-z']+$/.test(word)
    ? word.length > 5
      ? word.slice(0, Math.max(4, Math.min(6, word.length - 2)))
      : word.replace(/s$/, '')
    : word.slice(0, Math.max(3, Math.min(5, word.length - 2)))

/** The weight of a word by how rare it is; words that are not in the table are rare. */
function sideOf(words: readonly string[], limit: number): Side {
  const ranks = new Set<number>()
  const stems = new Map<string, number>()
  const grams = new Set<string>()
  for (const word of words.slice(0, 4 * limit)) {
    if (stems.size >= limit) break
    if (UNSPACED.test(word)) {
      for (let i = 0; i + 1 < Math.min(word.length, 60); i++) {
        stems.set(word.slice(i, i + 2), 0.6)
        grams.add(word.slice(i, i + 2))
      }
      continue
    }
    if (/^\d/.test(word) || numberOfWord(word) !== undefined || word.length < 3) continue
    const rank = rankOf(word)
    const weight = rank === undefined ? 1 : weightOfRank(rank)
    if (weight <= 0.05 || ORDER_WORDS.has(word)) continue
    if (rank !== undefined) ranks.add(rank)
    stems.set(stemOf(word), weight)
    for (let i = 0; i + 4 <= Math.min(word.length, 24); i++) grams.add(word.slice(i, i + 4))
  }
  return { ranks: [...ranks], stems, grams }
}

const cosine = (a: Float64Array, b: Float64Array) => {
  let [sum, x, y] = [0, 0, 0]
  for (let i = 0; i < a.length; i++) {
    sum += a[i]! * b[i]!
    x += a[i]! ** 2
    y += b[i]! ** 2
  }
  return x > 0 && y > 0 ? sum / Math.sqrt(x * y) : 0
}

const overlap = (a: Side, b: Side) => {
  let [count, weight] = [0, 0]
  for (const [stem, rarity] of a.stems)
    if (b.stems.has(stem)) {
      count++
      weight += rarity
    }
  let grams = 0
  for (const gram of a.grams) if (b.grams.has(gram)) grams++
  return { count, weight, grams }
}

const largest = (values: readonly number[], place: number) => [...values].sort((x, y) => y - x)[place] ?? 0

export function topicFeatures(task: ReadTask, output: ReadText): TopicFeatures {
  const base = answerFeatures(task, output)
  const { prose } = splitFences(output.raw)
  const taskSide = sideOf([...task.full.words, ...task.context.flatMap((memory) => wordsOf(memory))], MAX_TASK_WORDS)
  const requestSide = sideOf(task.requestWords, MAX_TASK_WORDS)
  const outputSide = sideOf(output.words, MAX_OUTPUT_WORDS)
  const shared = overlap(taskSide, outputSide)
  const sharedRequest = overlap(requestSide, outputSide)
  const near = nearestSimilarities(outputSide.ranks, taskSide.ranks)
  const isEnglish = base.english === 1
  const nearTask = isEnglish ? nearestSimilarities(taskSide.ranks, outputSide.ranks) : []
  const nearRequest = isEnglish ? nearestSimilarities(requestSide.ranks, outputSide.ranks) : []
  const weigh = (values: readonly number[], ranks: readonly number[]) => {
    let [sum, total] = [0, 0]
    values.forEach((value, i) => {
      const weight = weightOfRank(ranks[i]!)
      sum += Math.max(0, value) * weight
      total += weight
    })
    return total > 0 ? sum / total : 0
  }
  const share = (values: readonly number[], least: number) =>
    values.length > 0 ? values.filter((value) => value >= least).length / values.length : 0
  const english = (value: number) => (isEnglish ? value : -1)
  const lane = task.agentId.split('-')[0]!
  const ofLane = (name: string) => (lane === name ? 1 : 0)
  const has = (pattern: RegExp, text = prose) => (pattern.test(text) ? 1 : 0)
  const figures = (output.raw.match(/\d+(?:[.,]\d+)*/g) ?? []).length
  const sentences = sentencesOf(prose).slice(0, 12)
  const nearWords = new Set(outputSide.ranks.filter((_, i) => near[i]! >= 0.6))
  const isRelated = (sentence: string) =>
    wordsOf(sentence).some((word) => taskSide.stems.has(stemOf(word)) || nearWords.has(rankOf(word) ?? -1)) ||
    (sentence.match(/\d+(?:[.,]\d+)*/g) ?? []).some((number) => task.full.raw.includes(number))
  const unrelated = sentences.filter((sentence) => !isRelated(sentence)).length
  return {
    ...base,
    stems_shared: shared.count,
    stems_weight: shared.weight,
    stems_of_output: shared.weight / Math.max(3, outputSide.stems.size),
    stems_of_task: shared.count / Math.max(2, taskSide.stems.size),
    request_shared: sharedRequest.count,
    request_weight: sharedRequest.weight,
    request_of: sharedRequest.count / Math.max(2, requestSide.stems.size),
    grams_shared: shared.grams,
    grams_of_output: shared.grams / Math.max(10, outputSide.grams.size),
    grams_of_task: shared.grams / Math.max(10, taskSide.grams.size),
    out_near: english(weigh(near, outputSide.ranks)),
    out_near_best: english(largest(near, 0)),
    out_near_second: english(largest(near, 1)),
    out_near_third: english(largest(near, 2)),
    out_near_half: english(share(near, 0.5)),
    out_near_most: english(share(near, 0.65)),
    task_near: english(weigh(nearTask, taskSide.ranks)),
    task_near_best: english(largest(nearTask, 0)),
    task_near_second: english(largest(nearTask, 1)),
    task_near_half: english(share(nearTask, 0.5)),
    task_near_most: english(share(nearTask, 0.65)),
    request_near: english(weigh(nearRequest, requestSide.ranks)),
    request_near_best: english(largest(nearRequest, 0)),
    request_near_worst: english(nearRequest.length > 0 ? Math.min(...nearRequest) : 0),
    means: english(cosine(meanOf(taskSide.ranks), meanOf(outputSide.ranks))),
    request_means: english(cosine(meanOf(requestSide.ranks), meanOf(outputSide.ranks))),
    words_of_task: taskSide.stems.size,
    words_of_request: requestSide.stems.size,
    words_of_output: outputSide.stems.size,
    length: output.words.length,
    lines: output.lines.length,
    figures_count: Math.min(12, figures),
    figures_of_task: Math.min(12, (task.full.raw.match(/\d+/g) ?? []).length),
    has_greeting: has(/^(?:dear|hi|hello|hey|thanks?|sorry|guten|liebe|sehr geehrte|bonjour|hola|estimad)/i),
    starts_with_pronoun: has(PRONOUN, output.raw.trimStart()),
    has_question: has(/[?？]/),
    has_exclamation: has(/[!！]/),
    has_quote: has(/["“„«]/),
    task_question: has(/[?？]/, task.request),
    task_material: task.material.length > 40 ? 1 : 0,
    task_code: task.code ? 1 : 0,
    is_summary: task.is.summary ? 1 : 0,
    is_decision: task.is.decision ? 1 : 0,
    wants_explanation: has(EXPLAINS, task.request),
    wants_list: has(WANTS_LIST, task.request),
    wants_code: has(WANTS_CODE, task.request),
    wants_text: has(WANTS_TEXT, task.request),
    wants_figure: has(WANTS_FIGURE, task.request),
    wants_fun: task.is.creative || lane === 'comedian' ? 1 : 0,
    sentences_unrelated: unrelated / Math.max(1, sentences.length),
    first_related: sentences.length > 0 && isRelated(sentences[0]!) ? 1 : 0,
    last_related: sentences.length > 0 && isRelated(sentences.at(-1)!) ? 1 : 0,
    sentence_count: sentences.length,
    lane_default: ofLane('default'),
    lane_researcher: ofLane('researcher'),
    lane_strategist: ofLane('strategist'),
  }
}
