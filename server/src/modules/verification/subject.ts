import { type AnswerFeatures, answerFeatures } from './answer-features.ts'
import { hasSubject, scoreOtherSubject } from './answer-model.ts'
import { countFacts } from './facts-used.ts'
import { doubt, type Finding, failed, notApplicable, passed } from './finding.ts'
import { detectLanguage, sameLanguage } from './languages.ts'
import { requestedCounts } from './requested-size.ts'
import type { ReadTask } from './task.ts'
import { type ReadText, sentencesOf, splitFences, wordsOf } from './text.ts'
import { PRONOUN } from './topic-features.ts'

/** Forms that may leave their subject unnamed. */
const OPEN_FORM =
  /\b(?:titles?|slogans?|taglines?|names?|stor(?:y|ies)|outline|headlines?|captions?|cliffhangers?|bio|haikus?|poems?|verses?|lines?|exaggerate|riddles?|metaphors?)\b/i

const REWORDED =
  /\b(?:rewrite|rephrase|reword|paraphrase|simplify|in (?:other|plain|simple|easy) (?:words|language|english)|year[- ]?olds?|understands|umformulieren|umschreiben|einfacher sprache|reformule[rz]?|reescrib\w{1,4}|riscriv\w{1,3}|herschrijf)\b/i

const REWRITES = /\b(?:rewrite|rephrase|reword|paraphrase|simplify|year[- ]?olds?)\b/i

/** An indented key: settings are code too. */
const YAML_LINE = /^ {1,20}(?:- )?[\w.-]{1,40}:(?:\s|$)|^[A-Z][A-Z\d_]{2,40}=/m

/** Ends as a sentence, and has no option of a command. */
const SENTENCE = /^(?!.*\s--?\p{L}).*\p{L}[.!]$/su

const ASKS = /\?|\b(?:explain|what|how|why)\b/i

/** The score of the model over which an output may be about something else, and the one over which it is. */
const MAYBE_OTHER = 1.2
const OTHER = 1.4
/** Task and output share nothing, and their words are as far apart as those of any two texts. */
const OTHER_IF_FAR = 1.1
const FAR = 0.1
/** They share nothing, and there is much of it, or very much. */
const OTHER_IF_LONG = 1.3
const OTHER_IF_LENGTHY = 1
/** What is near in meaning says the same in other words; where a language has no vectors, that cannot be told. */
const OTHER_THOUGH_NEAR = 1.8
const OTHER_IF_UNKNOWN = 1.5
/** A word in common, or code, whose names are its own. */
const OTHER_THOUGH_SHARED = 2.5
const OTHER_THOUGH_SHARED_IF_LENGTHY = 1.8
const NEAR = 0.35
const OTHER_THOUGH_SPOKEN = 1.8
/** "They …" and "Yes, …" go on from a question without its words. */
const OTHER_THOUGH_IT_GOES_ON = 2.5
/** The output keeps the form that was asked for, as lines or as a list. */
const OTHER_IN_FORM = 2.4
const OTHER_IN_LIST = 3.1
/** A shorter answer may share nothing with its question. */
const LEAST_WORDS = 15
const LONG_WORDS = 28
const LENGTHY_WORDS = 40

/**
 * Whether the answer is about what the task is about, and of the kind that it wants. A model weighs what the two share, words,
 * figures, names and meaning, against the manner of the answer: an essay where a message, a joke, code or advice was wanted.
 */
export function checkSubject(task: ReadTask, output: ReadText): Finding {
  if (task.isVague) return checkGreeting(task, output)
  if (isOtherOccasion(task, output)) return failed('It is of another kind than was asked for.')
  const features = answerFeatures(task, output)
  if (!hasSubject(task, output)) return isOfNothing(task, output, features) ? OTHER_SUBJECT : notApplicable
  if (
    features.code_missing === 1 &&
    (output.words.length >= 15 || (output.words.length >= 10 && SENTENCE.test(output.raw.trimEnd()))) &&
    !output.raw.includes('`') &&
    !YAML_LINE.test(output.raw)
  )
    return failed('Code was asked for and there is none.')
  const isOpen = task.is.creative || OPEN_FORM.test(task.request) || task.agentId.startsWith('comedian')
  const isUnrelated = features.shared_count === 0 && features.numbers_used === 0 && features.names_used === 0
  const score = scoreOtherSubject(task, output)
  const fault = OTHER_SUBJECT
  // Who writes about the matter in general names it; who says the same in other words may not.
  if (score > 0 && !isOpen && features.shared_count! > 0 && usesNoFact(task, output)) return fault
  if (isAdviceOnForm(task, output)) return failed('It says how such a text is written instead of being one.')
  const least = leastScore(task, output, features, { isUnrelated, isOpen })
  if (score > Math.min(MAYBE_OTHER, least)) {
    // A work that the task names and does not give is retold in other words, as is a text to be reworded.
    const isReworded = !isOpen && REWORDED.test(task.request) && (task.material !== '' || REWRITES.test(task.request))
    const isRetold = (task.is.summary && task.material === '' && task.full.lines.length === 1) || isReworded
    const isSure = score > least && output.words.length >= LEAST_WORDS
    return isSure && !isRetold && !sharesAcronym(task, output) && !hasOwnLabels(task, output) ? fault : doubt(fault)
  }
  if (!isUnrelated || features.lists === 1 || task.code || output.raw.includes('`'))
    return features.shared_count! > 0 ? passed : notApplicable
  // Without vectors of the language only figures and names tell that nothing of the task was used.
  const language = detectLanguage(output.words)
  const isFar =
    features.english === 0 &&
    !isOpen &&
    language !== undefined &&
    task.language !== undefined &&
    sameLanguage(language.language, task.language.language) &&
    language.language !== 'en' &&
    (features.numbers_unused === 1 || features.names_unused === 1) &&
    features.subject_words! >= 5
  return isFar ? doubt(failed('It is about another subject.')) : notApplicable
}

const OTHER_SUBJECT = failed('It is about something else, or of another kind than was asked for.')

/** Material may be missing, but what came speaks of nothing that the task does. */
const isOfNothing = (task: ReadTask, output: ReadText, features: AnswerFeatures) =>
  task.lacksMaterial &&
  !task.targetLanguage &&
  !task.is.translation &&
  output.words.length >= LEAST_WORDS &&
  features.english === 1 &&
  features.shared_count === 0 &&
  features.near_means! < 0.2 &&
  scoreOtherSubject(task, output) > 2

/** The score from which on an output is about something else: an answer may leave out words that its question or its form give. */
function leastScore(
  task: ReadTask,
  output: ReadText,
  features: AnswerFeatures,
  { isUnrelated, isOpen }: { isUnrelated: boolean; isOpen: boolean },
): number {
  const goesOn = ASKS.test(task.request) && (PRONOUN.test(output.raw.trimStart()) || isShortReply(output))
  if (goesOn) return OTHER_THOUGH_IT_GOES_ON
  const isListed = output.lines.every((line) => /^(?:[-*•]|\d{1,2}[.)])\s/.test(line))
  const isInForm = (features.shared_count === 0 || isListed) && keepsForm(task, output)
  const isFar = isUnrelated && features.near_means! < FAR
  const ifShared =
    output.words.length >= LENGTHY_WORDS && !isOpen ? OTHER_THOUGH_SHARED_IF_LENGTHY : OTHER_THOUGH_SHARED
  const ifNear = features.shared_count === 0 ? OTHER_THOUGH_NEAR : ifShared
  // Who says something at length uses a word of the task.
  const isLong = isUnrelated && !isOpen && output.words.length >= LONG_WORDS
  const isLengthy = features.shared_count === 0 && !isOpen && output.words.length >= LENGTHY_WORDS
  const ifUnlikely = isLengthy ? OTHER_IF_LENGTHY : isFar ? OTHER_IF_FAR : isLong ? OTHER_IF_LONG : undefined
  const ifKnown = ifUnlikely ?? (features.near_means! >= NEAR ? ifNear : OTHER)
  // A joke may be about anything as long as somebody speaks in it.
  const isSpoken = isOpen && features.impersonal === 0
  // An answer about code, where nothing was said of any, is another caller's.
  if (hasStrayCode(task, output)) return OTHER_IF_FAR
  if (isUnrelated && isAnotherLetter(task, output)) return OTHER_IF_FAR
  // The names of code are its own.
  const isCode = task.agentId.startsWith('coder') && output.raw.includes('```')
  const least =
    features.english === 0
      ? isCode
        ? OTHER_THOUGH_SHARED
        : OTHER_IF_UNKNOWN
      : isSpoken
        ? OTHER_THOUGH_SPOKEN
        : ifKnown
  return !isInForm ? least : Math.max(least, isListed ? OTHER_IN_LIST : OTHER_IN_FORM)
}

/** A text for somebody that has neither a word nor any of the facts that the task gives for it. */
function isAnotherLetter(task: ReadTask, output: ReadText): boolean {
  if (!/^(?:writer|support)/.test(task.agentId) || task.is.creative || task.is.template || task.is.translation)
    return false
  const { facts, used } = countFacts(task, output)
  return facts >= 3 && used === 0 && output.words.length >= 20
}

const hasStrayCode = (task: ReadTask, output: ReadText) =>
  !task.agentId.startsWith('coder') &&
  /`[^`\n]{0,60}[_.()=[\]{}][^`\n]{0,60}`/.test(output.raw) &&
  !/`|[_{}]|\(\)|\b(?:code|function|script|sql|regex|query|commands?|terminal|shell|html|css|json|yaml|api|python|javascript|typescript|java|bash|git|docker|config\w{0,9}|servers?|deploy\w{0,5}|bugs?|error|variable|formula|excel|sheets?|software|developer\w?)\b/i.test(
    task.full.raw,
  )

/** "What does HS code mean?" */
const sharesAcronym = (task: ReadTask, output: ReadText) =>
  (task.request.match(/\b[A-Z][A-Z\d]{1,5}\b/g) ?? []).slice(0, 10).some((name) => output.raw.includes(name))

/** "A little. Trials show …" */
const isShortReply = (output: ReadText) => {
  const [first = '', second] = sentencesOf(output.raw)
  const isGreeting = /^(?:hi|hey|hello|dear|thanks?|good|hallo|guten|bonjour|hola|ciao|olá|sure|of course)\b/i.test(
    first,
  )
  return second !== undefined && wordsOf(first).length <= 3 && !isGreeting
}

/** As many lines or sentences as were asked for, or a list where one was. */
function keepsForm(task: ReadTask, output: ReadText): boolean {
  const sizes = [output.lines.length, sentencesOf(output.raw).length]
  return (
    requestedCounts(task).some(({ count }) => count >= 2 && sizes.includes(count)) ||
    (/\b(?:list|ideas|which|arguments|pros|tips|options)\b/i.test(task.request) &&
      (output.lines.length >= 2 || output.raw.split(', ').length >= 5))
  )
}

/** The task gives names, days and figures, and the output has none of them and does no calculation either. */
function usesNoFact(task: ReadTask, output: ReadText): boolean {
  if (task.agentId.startsWith('comedian') || output.words.length < LEAST_WORDS) return false
  // "Why is 0.1 + 0.2 not 0.3?" is explained without them.
  if (/\b(?:why|explain|warum|erklär\w{0,3}|pourquoi|perché)\b|\bpor qué\b/i.test(task.request)) return false
  if ((output.raw.match(/\d+/g)?.length ?? 0) > 1 || splitFences(output.raw).blocks.length > 0) return false
  const { facts, used } = countFacts(task, output)
  return facts >= 3 && used === 0
}

/** Two lines and more have labels of the task: "For: …", "Against: …". */
const hasOwnLabels = (task: ReadTask, output: ReadText) =>
  output.lines.filter((line) =>
    task.full.words.includes(/^\W{0,4}(\p{L}{2,20})\W{0,3}:/u.exec(line)?.[1]?.toLowerCase() ?? ''),
  ).length >= 2

/** What somebody writes for an occasion, and words of which one has to be in it. */
const OCCASIONS: readonly (readonly [asked: RegExp, said: RegExp])[] = [
  [
    /\b(?:write|draft|need|compose)\b.{0,30}\b(?:condolence|sympathy) (?:\p{L}{1,10} )?(?:message|card|note|letter|text|mail|email)\b/iu,
    /\b(?:sorry|condol\w{1,6}|loss|lost|sympath\w{1,4}|grie\w{1,5}|sorrow|mourn\w{0,3}|memor\w{1,5}|miss\w{0,3}|remember\w{0,3}|pass(?:ed|ing)|hearts?|comfort|thoughts?|thinking|sad\w{0,5}|death|died|farewell|peace|support|strength|here for you|kindness)\b/i,
  ],
  [
    /\b(?:write|draft|need|compose)\b.{0,30}\bbirthday (?:wish(?:es)?|card|message|greeting|note|text)\b/i,
    /\b(?:birthday|happy|years?|age|aged|old|older|celebrat\w{1,5}|wish\w{0,3}|candles?|cake|turn(?:s|ing)?|party|gifts?|joy|health|\d{2})\b/i,
  ],
]

/** "A good conference bio has …", "Thank-you cards should …": what holds for every text of a kind. */
const GENERAL_RULE =
  /^\W{0,4}(?:(?:an?|every|the|any) (?:really |truly )?(?:good|great|strong|effective|successful|perfect|ideal|best|memorable|well-written|proper|heartfelt|professional|convincing) (?:[\p{L}-]{1,16} ){0,2}(card|bio|biography|e-?mail|letter|note|message|invitation|speech|toast|post|tweet|caption|headline|slogan|tagline|poem|description|review|reply|obituary|eulogy|advert|ad|newsletter|announcement|notice|statement|profile|testimonial|blurb|press release|apology)s?|(?:[\p{L}-]{1,16} ){0,3}(card|bio|biography|e-?mail|letter|note|message|invitation|speech|toast|post|tweet|caption|headline|slogan|tagline|poem|description|review|reply|obituary|eulogy|advert|ad|newsletter|announcement|notice|statement|profile|testimonial|blurb|press release|apology)s (?:should|must|need|work|have to|are (?:best|usually|often|most|short|meant|supposed)))\b/iu
const ASKS_HOW = /\?|\b(?:how|tips?|advice|guide\w{0,5}|rules?|explain|checklist|should|what makes)\b/i

/** Such a rule where a text with the names and figures of the task was wanted. */
function isAdviceOnForm(task: ReadTask, output: ReadText): boolean {
  if (output.words.length < LEAST_WORDS) return false
  const rule = GENERAL_RULE.exec(output.raw.slice(0, 200))
  const form = (rule?.[1] ?? rule?.[2])?.toLowerCase()
  if (!form || ASKS_HOW.test(task.request) || !task.request.toLowerCase().includes(form)) return false
  const { facts, used } = countFacts(task, output)
  return facts > 0 && used === 0
}

/** The first lines of a recipe. */
const RECIPE = /^[ \t*#]{0,6}(?:ingredients|zutaten|ingrédients|ingredientes|ingredienti)\b[*:]/im

/** A card without a word of its occasion, or a recipe where a mail was wanted. */
function isOtherOccasion(task: ReadTask, output: ReadText): boolean {
  const isMail = /\b(?:e-?mail|letter|message|reply|card|post|note)\b/i.test(task.request)
  if (
    isMail &&
    RECIPE.test(output.raw) &&
    !/\b(?:recipes?|ingredients?|cook\w{0,3}|bak\w{1,4}|dish\w{0,2}|menu)\b/i.test(task.full.raw)
  )
    return true
  if (task.language?.language !== 'en' || task.targetLanguage || output.words.length < LEAST_WORDS) return false
  return (
    OCCASIONS.some(([asked, said]) => asked.test(task.request) && !said.test(output.raw)) &&
    detectLanguage(output.words)?.language === 'en'
  )
}

/** "good morning" is answered with something said to somebody. */
function checkGreeting(task: ReadTask, output: ReadText): Finding {
  const { english, impersonal } = answerFeatures(task, output)
  const isText = english === 1 && impersonal === 1 && !/[?!]/.test(output.raw) && output.words.length >= 12
  return isText && task.full.words.length <= 4 && /^(?:good|hi|hello|hey|thanks?|thank)\b/i.test(task.full.raw.trim())
    ? failed('It is about something that nobody spoke of.')
    : notApplicable
}
