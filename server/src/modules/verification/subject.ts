import { answerFeatures } from './answer-features.ts'
import { scoreRegister, wantsNoEssay } from './answer-model.ts'
import { type Finding, failed, notApplicable, passed } from './finding.ts'
import { detectLanguage, sameLanguage } from './languages.ts'
import type { ReadTask } from './task.ts'
import type { ReadText } from './text.ts'

/** Forms that may leave their subject unnamed. */
const OPEN_FORM =
  /\b(?:titles?|slogans?|taglines?|names?|stor(?:y|ies)|outline|headlines?|captions?|bio|haikus?|poems?|verses?|lines?|exaggerate|riddles?|metaphors?)\b/i

const MIN_WORDS = 8
/** The score over which an output counts as an essay, and the similarities under which it counts as unrelated. */
const ESSAY = 1.1
const FAR_MEANS = 0.46
const FAR_WORDS = 0.44
const FAR_JOKE_WORDS = 0.4

/**
 * Whether the answer is about what the task is about, and of the kind that it wants. Nothing of the task in it, neither a
 * word nor a figure nor a name, and no word near in meaning, is another subject; an essay where a message or a joke was wanted
 * is one too when it uses none of the facts given.
 */
export function checkSubject(task: ReadTask, output: ReadText): Finding {
  if (task.is.translation || task.targetLanguage || task.isVague || task.lacksMaterial || task.is.template)
    return notApplicable
  if (
    output.words.length < MIN_WORDS ||
    /\bare you\b|\byourself\b|\bwithout (?:using|saying|naming|mentioning)\b/i.test(task.request)
  )
    return notApplicable
  const features = answerFeatures(task, output)
  if (features.code_missing === 1 && output.words.length >= 15 && !output.raw.includes('`'))
    return failed('Code was asked for and there is none.')
  const usesNoFact = features.numbers_used === 0 && features.names_used === 0
  const computes = /\d/.test(task.full.raw) && /\d/.test(output.raw)
  if (
    features.english === 1 &&
    usesNoFact &&
    !computes &&
    features.has_code === 0 &&
    features.lists === 0 &&
    (features.impersonal === 1 || !task.agentId.startsWith('comedian')) &&
    wantsNoEssay(task, output) &&
    scoreRegister(task, output) > ESSAY
  )
    return failed('It is a text about a subject where something else was wanted.')
  const isUnrelated = features.shared_count === 0 && usesNoFact && features.lists === 0
  if (!isUnrelated || task.code || output.raw.includes('`')) return features.shared_count! > 0 ? passed : notApplicable
  const isOpen = task.is.creative || OPEN_FORM.test(task.request) || task.agentId.startsWith('comedian')
  if (features.english === 1) {
    const isFar = isOpen
      ? features.impersonal === 1 &&
        features.near_output! < FAR_JOKE_WORDS &&
        output.words.length >= 14 &&
        output.lines.length < 3
      : features.near_means! < FAR_MEANS &&
        features.near_output! < FAR_WORDS &&
        features.subject_words! >= 5 &&
        output.words.length >= 10 &&
        !(features.computing === 1 && features.figures === 1)
    return isFar ? failed('It is about another subject.') : notApplicable
  }
  // Without vectors of the language only figures and names tell that nothing of the task was used.
  const language = detectLanguage(output.words)
  const isFar =
    !isOpen &&
    language !== undefined &&
    task.language !== undefined &&
    sameLanguage(language.language, task.language.language) &&
    language.language !== 'en' &&
    (features.numbers_unused === 1 || features.names_unused === 1) &&
    features.subject_words! >= 5
  return isFar ? failed('It is about another subject.') : notApplicable
}
