import { numberOfWord, parseNumber, readNumbers } from './numbers.ts'
import type { ReadTask } from './task.ts'
import { type ReadText, sentencesOf, splitFences, wordsOf } from './text.ts'
import { nearestSimilarities, rankOf, similarityOfMeans, weightOfRank } from './word-meaning.ts'

/** What the models of `answer-model.ts` read of a task and an output: each a number with a name, so that a verdict can be explained. */
export type AnswerFeatures = Readonly<Record<string, number>>

const MAX_TASK_WORDS = 60
const MAX_OUTPUT_WORDS = 240

const PERSON =
  /^(?:i|i'm|i've|i'll|i'd|me|my|you|you're|you'll|you've|your|yours|we|we're|we've|we'll|us|our|ours|let's|ich|mir|mich|wir|uns|unser\w{0,2}|sie|ihnen|ihre?\w?|du|dir|dich|dein\w{0,2}|je|j'\w+|nous|notre|vous|votre|tu|te|ton|ta|yo|nosotros|nuestro|usted|su|tu|ti|le|io|noi|nostro|lei|ti|tuo|eu|nós|você|seu|ik|wij|we|ons|jij|je|u|uw|jag|vi|du|dig|din|ni|er|vår|ja|my|ty|pan|pani|я|мы|вы|вам|вас|ты|мне|нам|siz|size|biz|ben)$/u
const WANTS_MESSAGE =
  /\b(?:reply|answer (?:the|him|her|them|customer|client|user)|respond|e-?mail|letter|mail|note|message|card|invitation|speech|toast|wish|cover letter|apolog\w{1,4}|tell (?:the|them|him|her)|customer|write to|dm|thank[- ]you|farewell|welcome|congratul\w{1,6}|antwort\w{0,3}|schreib\w{0,2}|brief|kunde\w?|réponds|répondre|écris|client|responde|escribe|correo|carta|cliente|rispondi|scrivi)\b/i
const WANTS_CODE =
  /\b(?:code|function|script|regex|regexp|query|sql|python|javascript|typescript|java|kotlin|rust|golang|swift|bash|css|html|dockerfile|yaml|cron|unit tests?|class|method|endpoint|api|component|hook|makefile|terraform|ruby|php|c\+\+|c#|snippet|one-?liner|program|loop|jq|awk|sed|git)\b/i
/** A question, or an order to explain; "prints the keys where qty is 0" is neither. */
const EXPLAINS =
  /^\W{0,4}(?:(?:please|can you|could you|hi|hey|hello)[,:]? ){0,2}(?:explain|what|what's|which|where|why|how|review|describe|name|when|does|do|is|are|can|should|find|spot|undo)\b|\?|\b(?:explain|difference|big-o|review|why)\b/i
const WANTS_PROSE =
  /\b(?:commit message|changelog|release notes?|readme|documentation|docs|docstring|pull request|pr (?:title|description|text)|e-?mail|message to|error message|ticket|summary|user story|names? for|plan|advice|translate|(?<!type )hints?|plain (?:words|english|language)|in words|(?:no|without(?: any)?|(?:don't|do not|don’t) (?:give|show|write|send|post|want|need)(?: me)?(?: the| any)?) code)\b/i
const WRITES_CODE =
  /\b(?:write|create|implement|build|make|generate|code|script|function|query|regex|tests?|rule|dockerfile|class|component|one-?liner|snippet|program|add|convert|refactor|sql|fonction|requête|funktion|abfrage|skript|función|consulta|funzione|função)\b/iu
const CODE_MARKS = /[{}();=<>[\]`$|\\]|=>|::/g
const SEND_ELSEWHERE =
  /\b(?:consult|professional|specialists?|experts?|advis[eo]rs?|lawyer|doctor|accountant|colleagues?|librar(?:y|ian)|documentation|textbooks?|search|online|internet|yourself|decide|decision|choose|choice|depends?|personal|subjective|opinions?|situation|circumstances|careful|complex|contextual|qualified|recommend|suggest|team|agency|experience|preferences?|instincts?|trust|wise|wisely|best|right)\b/gi

const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Hangul}]/u

/** The beginning of a word; languages with many endings have shorter ones. */
const stem = (word: string) =>
  /^[a-z']+$/.test(word) ? (word.length > 5 ? word.slice(0, 5) : word.replace(/s$/, '')) : word.slice(0, 4)

/** Words that say something about the subject, each once. */
function subjectWords(words: readonly string[], limit: number): { ranks: number[]; stems: Set<string>; known: number } {
  const ranks = new Set<number>()
  const stems = new Set<string>()
  let known = 0
  for (const word of words.slice(0, 4 * limit)) {
    const rank = rankOf(word)
    if (rank !== undefined) known++
    if (stems.size >= limit) continue
    if (UNSPACED.test(word)) {
      for (let i = 0; i + 1 < Math.min(word.length, 60); i++) stems.add(word.slice(i, i + 2))
      continue
    }
    if (/^\d/.test(word) || numberOfWord(word) !== undefined || word.length < 3) continue
    if (rank === undefined) stems.add(stem(word))
    else if (weightOfRank(rank) > 0.05) {
      ranks.add(rank)
      stems.add(stem(word))
    }
  }
  return { ranks: [...ranks], stems, known: known / Math.max(1, Math.min(words.length, 4 * limit)) }
}

const weightedMean = (values: readonly number[], ranks: readonly number[]) => {
  let [sum, weight] = [0, 0]
  values.forEach((value, i) => {
    sum += value * weightOfRank(ranks[i]!)
    weight += weightOfRank(ranks[i]!)
  })
  return weight > 0 ? sum / weight : 0
}

const shareOf = (part: number, whole: number) => (whole > 0 ? part / whole : 0)

const featuresOfTask = new WeakMap<ReadTask, { output: ReadText; features: AnswerFeatures }>()

/** Several checks ask for them, so they are computed once for a task and its output. */
export function answerFeatures(task: ReadTask, output: ReadText): AnswerFeatures {
  const earlier = featuresOfTask.get(task)
  if (earlier?.output === output) return earlier.features
  const features = computeFeatures(task, output)
  featuresOfTask.set(task, { output, features })
  return features
}

function computeFeatures(task: ReadTask, output: ReadText): AnswerFeatures {
  const { prose, blocks } = splitFences(output.raw)
  const taskSide = subjectWords(
    [...task.full.words, ...task.context.flatMap((memory) => wordsOf(memory))],
    MAX_TASK_WORDS,
  )
  const requestSide = subjectWords(task.requestWords, MAX_TASK_WORDS)
  const outputSide = subjectWords(output.words, MAX_OUTPUT_WORDS)
  const isEnglish = outputSide.known >= 0.7 && taskSide.known >= 0.55
  const nearest = (words: readonly number[], others: readonly number[]) =>
    isEnglish ? nearestSimilarities(words, others) : []
  const nearTask = nearest(taskSide.ranks, outputSide.ranks)
  const nearRequest = nearest(requestSide.ranks, outputSide.ranks)
  const nearOutput = nearest(outputSide.ranks, taskSide.ranks)
  const shared = [...taskSide.stems].filter((word) => outputSide.stems.has(word)).length
  const taskNumbers = new Set([task.full.raw, ...task.context].join('\n').match(/\d+(?:[.,]\d+)*/g) ?? [])
  const outputNumbers = readNumbers(output.raw, { words: true })
  const outputValues = new Set(outputNumbers.flatMap(({ isWord, values }) => (isWord ? [] : values.map(Math.abs))))
  const isShared = (number: string) => {
    const values = parseNumber(number)
    // "2.4.1" is no number.
    return values.length > 0 ? values.some((value) => outputValues.has(value)) : output.raw.includes(number)
  }
  const sharedNumbers = [...taskNumbers].filter(isShared).length
  const names = namesOf(task.full.raw)
  const sharedNames = names.filter((name) => output.raw.includes(name)).length
  const persons = output.words.filter((word) => PERSON.test(word)).length
  const marks = output.raw.match(CODE_MARKS)?.length ?? 0
  const hasCode =
    blocks.length > 0 ||
    marks / Math.max(20, output.raw.length) > 0.035 ||
    /`[^`\n]{2,300}`/.test(output.raw) ||
    /^[ \t]{0,8}(?:select|insert into|create|update|delete from|with|def|function|class|const|let|import|from|#!|fn|func)\b/im.test(
      output.raw,
    )
  const wantsCode =
    task.agentId.startsWith('coder') &&
    !EXPLAINS.test(task.request) &&
    !WANTS_PROSE.test(task.request) &&
    WRITES_CODE.test(task.request)
  const wantsMessage =
    /^support/.test(task.agentId) || (/^writer/.test(task.agentId) && WANTS_MESSAGE.test(task.request))
  const isJoke = task.agentId.startsWith('comedian')
  const isComputing =
    /^(?:analyst|default)/.test(task.agentId) &&
    (taskNumbers.size >= 2 ||
      (/\b(?:convert|how (?:many|much)|average|what's)\b/i.test(task.request) && taskNumbers.size > 0))
  const sentences = sentencesOf(prose)
  const questions = sentences.filter((sentence) => /[?？؟]["”’)]{0,3}$/.test(sentence)).length
  const elsewhere = new Set((output.raw.match(SEND_ELSEWHERE) ?? []).map((word) => word.toLowerCase())).size
  const size = Math.log(1 + output.words.length)
  return {
    english: isEnglish ? 1 : 0,
    near_task: isEnglish ? weightedMean(nearTask, taskSide.ranks) : 0,
    near_request: isEnglish ? weightedMean(nearRequest, requestSide.ranks) : 0,
    near_output: isEnglish ? weightedMean(nearOutput, outputSide.ranks) : 0,
    near_means: isEnglish ? similarityOfMeans(taskSide.ranks, outputSide.ranks) : 0,
    shared_of_task: shareOf(shared, taskSide.stems.size),
    shared_of_output: shareOf(shared, outputSide.stems.size),
    shares_none: shared === 0 ? 1 : 0,
    numbers_used: shareOf(sharedNumbers, taskNumbers.size),
    numbers_unused: taskNumbers.size > 1 && sharedNumbers === 0 ? 1 : 0,
    names_used: shareOf(sharedNames, names.length),
    names_unused: names.length > 0 && sharedNames === 0 ? 1 : 0,
    figures: outputNumbers.length > 0 ? 1 : 0,
    code_missing: wantsCode && !hasCode ? 1 : 0,
    code_unwanted: hasCode && !task.agentId.startsWith('coder') && !WANTS_CODE.test(task.full.raw) ? 1 : 0,
    has_code: hasCode ? 1 : 0,
    message_impersonal: wantsMessage && persons === 0 ? 1 : 0,
    joke_impersonal: isJoke && persons === 0 && !/[?!"“„«]/.test(output.raw) ? 1 : 0,
    joke_plain: isJoke && !/[?!"“„«—–:]/.test(output.raw) ? 1 : 0,
    joke_long_sentences: isJoke && output.words.length / Math.max(1, sentences.length) > 14 ? 1 : 0,
    impersonal: persons === 0 && output.words.length > 12 ? 1 : 0,
    strategy_impersonal: task.agentId.startsWith('strategist') && persons === 0 ? 1 : 0,
    speaks_of_us: /\b(?:we|our|us|my|i)\b/i.test(task.request) ? 1 : 0,
    computing: isComputing ? 1 : 0,
    result_missing: isComputing && sharedNumbers === 0 && output.words.length > 8 ? 1 : 0,
    comedian: isJoke ? 1 : 0,
    creative: task.is.creative || isJoke ? 1 : 0,
    coder: task.agentId.startsWith('coder') ? 1 : 0,
    analyst: task.agentId.startsWith('analyst') ? 1 : 0,
    support: task.agentId.startsWith('support') ? 1 : 0,
    writer: task.agentId.startsWith('writer') ? 1 : 0,
    message: wantsMessage ? 1 : 0,
    shared_count: Math.min(shared, 8),
    subject_words: Math.min(60, outputSide.stems.size),
    task_words: Math.min(30, taskSide.stems.size),
    far_output: isEnglish ? shareOf(nearOutput.filter((value) => value < 0.45).length, nearOutput.length) : 0,
    farthest_task: isEnglish ? Math.min(1, ...nearTask) : 0,
    persons: persons / Math.max(5, output.words.length),
    elsewhere: Math.min(4, elsewhere) * 0.25,
    questions: shareOf(questions, sentences.length),
    size,
    short: output.words.length < 12 ? 1 : 0,
    lists: output.lines.filter((line) => /^(?:[-*•|]|\d{1,2}[.)])/.test(line)).length >= 2 ? 1 : 0,
  }
}

/** Words with a capital inside a sentence. */
const namesOf = (text: string): string[] =>
  [...new Set([...text.matchAll(/(?<=[\p{Ll},:;] )\p{Lu}\p{Ll}{2,20}/gu)].map((match) => match[0]))].slice(0, 20)

const FUNCTION_WORDS =
  'the a an of to in and for that on is was with as it by at from be has are have but were not this they had which will their or its one been also we would more if when there all out some you can do than who into your our my i so no what how why he she his her him me us let just only each after before because while most many any other such may should them then too over under about between'.split(
    ' ',
  )

const WORD_FEATURES = FUNCTION_WORDS.map((word) => [word, `word_${word}`] as const)

/** The manner of a text, whatever its subject: its function words, how its sentences begin, and its marks. English only. */
export function registerFeatures(output: ReadText): AnswerFeatures {
  const { prose, blocks } = splitFences(output.raw)
  const words = wordsOf(prose)
  const size = Math.max(8, words.length)
  const counts = new Map<string, number>()
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1)
  const sentences = sentencesOf(prose)
    .map((sentence) => wordsOf(sentence))
    .filter(({ length }) => length > 2)
  const startShare = (pattern: RegExp) =>
    shareOf(sentences.filter(([first = '']) => pattern.test(first)).length, sentences.length)
  const has = (pattern: RegExp) => (pattern.test(prose) ? 1 : 0)
  return {
    ...Object.fromEntries(
      WORD_FEATURES.map(([word, name]) => [name, Math.min(3, ((counts.get(word) ?? 0) / size) * 20)]),
    ),
    starts_the: startShare(/^(?:the|its?)$/),
    starts_a: startShare(/^an?$/),
    starts_in: startShare(/^(?:in|at|on|by|before|after)$/),
    starts_plural: startShare(/s$/),
    starts_to: startShare(/^to$/),
    exclaims: has(/!/),
    asks: has(/\?/),
    quotes: has(/["“]/),
    colons: has(/:/),
    code: blocks.length > 0 ? 1 : 0,
    list: has(/^(?:[-*•|]|\d{1,2}[.)])/m),
    paragraphs: has(/\n[ \t]{0,20}\n/),
    greeting: has(/^(?:dear|hi|hello|thanks?|hey|sorry)/i),
    length: Math.log(1 + words.length) - 3,
    sentence_length: sentences.length > 0 ? words.length / sentences.length / 12 - 1 : 0,
    contractions: has(/['’](?:s|re|ve|ll|d|t|m)\b/),
    years: has(/\b(?:1[5-9]|20)\d\d\b|century/),
    verbs: (words.filter((word) => /(?:ed|ing)$/.test(word)).length / size) * 5,
  }
}
