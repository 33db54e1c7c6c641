import { answerFeatures } from './answer-features.ts'
import { hasSubject, scoreOtherSubject } from './answer-model.ts'
import { doubt, type Finding, failed, notApplicable, passed } from './finding.ts'
import { detectLanguage, sameLanguage } from './languages.ts'
import type { ReadTask } from './task.ts'
import type { ReadText } from './text.ts'
import { PRONOUN } from './topic-features.ts'

/** Forms that may leave their subject unnamed. */
const OPEN_FORM =
  /\b(?:titles?|slogans?|taglines?|names?|stor(?:y|ies)|outline|headlines?|captions?|bio|haikus?|poems?|verses?|lines?|exaggerate|riddles?|metaphors?)\b/i

/** The scores of the model over which an output counts as being about something else; less where nothing at all is shared. */
const OTHER_SUBJECT = 1.6
const OTHER_SUBJECT_FAR = 1.4
/** "They …" and "Yes, …" go on from a question without its words. */
const OTHER_SUBJECT_GOES_ON = 3
const FAR = 0.46
/** How far over its threshold a score decides. */
const MARGIN = 0.5
/** A shorter answer may share nothing with its question. */
const LEAST_WORDS = 15

/**
 * Whether the answer is about what the task is about, and of the kind that it wants. A model weighs what the two share, words,
 * figures, names and meaning, against the manner of the answer: an essay where a message, a joke, code or advice was wanted.
 */
export function checkSubject(task: ReadTask, output: ReadText): Finding {
  if (task.isVague) return checkGreeting(task, output)
  if (!hasSubject(task, output)) return notApplicable
  const features = answerFeatures(task, output)
  if (features.code_missing === 1 && output.words.length >= 15 && !output.raw.includes('`'))
    return failed('Code was asked for and there is none.')
  const isOpen = task.is.creative || OPEN_FORM.test(task.request) || task.agentId.startsWith('comedian')
  const isUnrelated = features.shared_count === 0 && features.numbers_used === 0 && features.names_used === 0
  const isFarInMeaning =
    isUnrelated && features.english === 1 && !task.code && features.near_means! < FAR && features.near_output! < FAR
  const goesOn = task.request.includes('?') && PRONOUN.test(output.raw.trimStart())
  const threshold = goesOn ? OTHER_SUBJECT_GOES_ON : isFarInMeaning && !isOpen ? OTHER_SUBJECT_FAR : OTHER_SUBJECT
  // A joke, a title or a poem may be about anything as long as somebody speaks in it, or it has the lines of its form.
  const mayBeAnything = isOpen && (features.impersonal === 0 || features.lists === 1 || output.lines.length >= 3)
  const score = scoreOtherSubject(task, output)
  if (!mayBeAnything && score > threshold) {
    const fault = failed('It is about something else, or of another kind than was asked for.')
    const isSure = score > threshold + MARGIN && output.words.length >= LEAST_WORDS
    return isOpen || task.targetLanguage || task.is.translation || !isSure ? doubt(fault) : fault
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
  return isFar ? failed('It is about another subject.') : notApplicable
}

/** "good morning" is answered with something said to somebody. */
function checkGreeting(task: ReadTask, output: ReadText): Finding {
  const { english, impersonal } = answerFeatures(task, output)
  const isText = english === 1 && impersonal === 1 && !/[?!]/.test(output.raw) && output.words.length >= 12
  return isText && task.full.words.length <= 4 && /^(?:good|hi|hello|hey|thanks?|thank)\b/i.test(task.full.raw.trim())
    ? failed('It is about something that nobody spoke of.')
    : notApplicable
}
