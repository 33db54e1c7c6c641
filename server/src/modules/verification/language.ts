import { opensWithCode } from './code-faults.ts'
import { type Finding, failed, notApplicable, passed } from './finding.ts'
import {
  type DetectedLanguage,
  detectLanguage,
  functionWordsIn,
  isApart,
  isFunctionWord,
  languageNamed,
  languagesByStem,
  sameLanguage,
} from './languages.ts'
import { numberOfWord } from './numbers.ts'
import { isCsv } from './requested-form.ts'
import { OWN_LANGUAGE, type ReadTask } from './task.ts'
import { quotedPassages, type ReadText, splitFences, wordsOf } from './text.ts'
import { rankOf } from './word-meaning.ts'

/** Languages with enough words in the table to miss them in a short text. */
const WELL_KNOWN = new Set([
  'en',
  'de',
  'fr',
  'es',
  'it',
  'pt',
  'nl',
  'zh',
  'ja',
  'ko',
  'ru',
  'el',
  'ar',
  'he',
  'hi',
  'th',
])

/** "Mon" and "mar" are words of other languages. */
const DATE_WORDS = new Set('mon tue wed thu fri sat sun jan feb mar apr jun jul aug sep sept oct nov dec'.split(' '))

/** How many words of English are common. */
const COMMON = 5_000

/** "A reminder to an English client": whichever language is meant, it is neither that of the task nor the one named. */
function isOfNoneNamed(task: ReadTask, output: ReadText, { language, isSure }: DetectedLanguage): boolean {
  if (!task.mentionsLanguage || task.is.translation || !isSure || !task.language?.isSure) return false
  if (output.words.length < 10 || /\blanguages\b/i.test(task.full.raw)) return false
  // Of languages in other letters some are not told apart.
  if (/\p{L}/u.test(task.full.raw.replaceAll(/\p{Script=Latin}/gu, ''))) return false
  const named = [...task.full.words.map(languageNamed), ...languagesByStem(task.full.raw)].filter(
    (name) => name !== undefined,
  )
  if (language === 'en' && isMostlyEnglish(task.request)) return false
  const others = [task.language.language, detectLanguage(wordsOf(task.material))?.language ?? '', ...named]
  return named.length > 0 && !others.some((other) => sameLanguage(language, other))
}

/** The answer is in the language of the task, or in the one that the task names. */
export function checkLanguage(task: ReadTask, output: ReadText): Finding {
  // Code without a word around it has the names of its language.
  if (task.agentId.startsWith('coder') && !output.raw.includes('```') && isAllCode(output.raw)) return notApplicable
  if (isCsv(output) && /\bcsv\b/i.test(task.full.raw)) return notApplicable
  const prose = withoutCode(splitFences(output.raw).prose.replace(/`[^`\n]{0,200}`/g, ' ` '))
  const target = task.targetLanguage
  const text = withoutQuotations(prose.replace(/`[^`\n]{0,200}`/g, ' '))
  // Where a language is named and there is only code, its comments are what can be in a language.
  // Names that the task has say nothing of the language.
  const taskWords = new Set(task.full.words)
  // Names that are put in order stay as they are.
  const isOfTask = output.words.every((word) => taskWords.has(word) || /^\d+$/.test(word))
  const isLatin = !/\p{L}/u.test(output.raw.replaceAll(/\p{Script=Latin}/gu, ''))
  if (!target && isOfTask && isLatin) return notApplicable
  const words = wordsOf(target && !/\p{L}/u.test(text) ? commentsOf(output.raw) : text)
  const language = detectLanguage(
    words.filter((word) => !DATE_WORDS.has(word) && (!taskWords.has(word) || isFunctionWord(word))),
  )
  const isOwnLanguage = language && task.language && sameLanguage(language.language, task.language.language)
  const expectedLanguage = target ?? (task.mentionsLanguage ? undefined : task.language?.language)
  if (expectedLanguage && isOtherHan(expectedLanguage, task.full.raw, text))
    return failed(`It is not in the language asked for (${expectedLanguage}).`)
  if (!task.mentionsLanguage && isEnglishInOtherScript(task, output))
    return failed('It is in another script than the task.')
  const isForeign = !isOwnLanguage && findForeignWords(task, prose)
  if (isForeign) return failed('Its words are not those of the language of the task.')
  if (target) {
    if (!language || target === 'la' || target === 'uk') return notApplicable
    if (hasLettersOfNeighbour(target, task.full.raw, prose))
      return failed(`It is not in the language asked for (${target}).`)
    if (sameLanguage(language.language, target)) return passed
    // "Comment dit-on … en italien ?" may be answered in French, with the words quoted.
    const isAsking = /\b(?:dit-on|heißt|sagt man|se dice|si dice|how do you say|hoe zeg je)\b/i.test(task.request)
    const isOwn = task.language !== undefined && sameLanguage(language.language, task.language.language)
    const isQuoted = quotedPassages(output.raw, 200).length > 0 && !OWN_LANGUAGE.test(task.request)
    if (isAsking || (isOwn && isQuoted)) return notApplicable
    // In a translation every word counts; other texts may quote words of another language.
    const isTranslation =
      task.is.translation ||
      quotedPassages(task.request, 600).length > 0 ||
      quotedPassages(task.full.raw, 600).length > 0
    const isOther = isTranslation
      ? isApart(words, language.language, target) ||
        (language.isSure && (WELL_KNOWN.has(target) || language.score >= 4 || language.scoreOf(target) === 0)) ||
        (WELL_KNOWN.has(target) && language.score >= 1 && language.score > 2 * language.scoreOf(target))
      : (language.isSure ||
          isApart(words, language.language, target) ||
          (language.score >= 1.5 && language.scoreOf(target) === 0)) &&
        (output.words.length >= 8 ||
          /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}]{6}/u.test(prose))
    return isOther
      ? failed(`It is in another language (${language.language}) than the one asked for (${target}).`)
      : notApplicable
  }
  if (language && isOfNoneNamed(task, output, language))
    return failed(`It is in another language (${language.language}) than any that the task names or is in.`)
  if (!language || !task.language || task.mentionsLanguage || isListOfTitles(prose)) return notApplicable
  // "Five Italian dishes" have Italian names.
  const isNamed = task.requestWords.some((word) => languageNamed(word) === language.language)
  if (isNamed && text.split(/[,;\n]/).every((part) => wordsOf(part).length <= 5)) return notApplicable
  const own = task.language
  if (hasOtherFunctionWords(task, wordsOf(text), language))
    return failed(`It is in another language (${language.language}) than the task (${own.language}).`)
  // "Is 17 a prime number?" has too few words for the table, and every one is English.
  if (
    !own.isSure &&
    own.scoreOf(language.language) === 0 &&
    language.isSure &&
    language.language !== 'en' &&
    isMostlyEnglish(task.full.raw)
  )
    return isMostlyEnglish(prose)
      ? notApplicable
      : failed(`It is in another language (${language.language}) than the task.`)
  if (!own.isSure && own.language === 'en' && language.isSure && isForeignToShortTask(task, language, prose))
    return failed(`It is in another language (${language.language}) than the task.`)
  if (hasLettersOfNeighbour(own.language, task.full.raw, prose))
    return failed(`It is in another language than the task (${own.language}).`)
  if (sameLanguage(language.language, own.language)) return language.isSure ? passed : notApplicable
  // One of the two must be sure, and the other must have nothing of the first.
  const isClear =
    language.isSure ||
    isClearBeside(language, own, output) ||
    (own.isSure && isApart(words, language.language, own.language))
  const isOther = isClear
    ? own.isSure ||
      (own.score >= 1 &&
        (task.full.words.filter((word) => !/^\d/.test(word)).length >= 6 || isPlainEnglish(task)) &&
        own.scoreOf(language.language) <= 0.3 * own.score)
    : own.isSure && output.words.length >= 4 && language.score >= 1.2 && language.scoreOf(own.language) === 0
  if (!isOther) return notApplicable
  // Figures with a few words around them may look like another language; its letters do not.
  if (OWN_LETTERS[own.language]?.test(prose) && !OWN_LETTERS[own.language]!.test(task.material)) return notApplicable
  // "Yield per hectare, 150 ha": words of English may look like another language in the table.
  const isMistaken =
    (language.language === 'en' && isMostlyEnglish(task.full.raw)) ||
    (own.language === 'en' && isMostlyEnglish(prose) && !isInOtherLetters(prose))
  if (isMistaken) return notApplicable
  // The request may be short and the text that it is about in another language: both are allowed.
  const materialLanguage = task.material ? detectLanguage(wordsOf(task.material)) : undefined
  if (materialLanguage && sameLanguage(language.language, materialLanguage.language)) return passed
  const fault = failed(`It is in another language (${language.language}) than the task (${own.language}).`)
  // "Fasse zusammen:" and an English text say little of the language of the answer.
  const isSilent =
    task.material !== '' &&
    !(materialLanguage && sameLanguage(materialLanguage.language, own.language)) &&
    task.requestWords.length <= 4 &&
    functionWordsIn(task.requestWords, own.language) === 0
  if (isSilent) return notApplicable
  const isEnglish =
    language.language === 'en' &&
    isMostlyEnglish(prose) &&
    (own.isSure || own.score >= 2) &&
    englishShare(task.full.raw).share < 0.6
  return isEnglish || isPlainlyOther(task, output, isClear && (own.isSure || isPlainEnglish(task)))
    ? fault
    : notApplicable
}

/** "权益证明(Proof of Stake)是…": a few English terms in a text of other letters. */
const isInOtherLetters = (text: string) => {
  const count = (pattern: RegExp) => text.match(pattern)?.length ?? 0
  return count(/\p{L}/gu) > 2 * count(/\p{Script=Latin}/gu)
}

/** Every line that is not indented opens or ends a piece of code, or assigns something. */
const isAllCode = (text: string) =>
  opensWithCode(text) && text.split('\n').every((line) => /^\s|^$|[:{}();,[\]]\s{0,8}$|^[#/@]|^\S{1,60} = /.test(line))

const CODE_LINE =
  /^\s{0,40}(?:SELECT|FROM|WHERE|AND|ORDER BY|GROUP BY|HAVING|LIMIT|(?:LEFT |INNER |RIGHT )?JOIN|INSERT|UPDATE|DELETE|CREATE|ALTER|WITH|VALUES|SET)\b|[{};]\s{0,8}$|=>|^\s{0,40}(?:def|const|let|var|import|function|class|return|public|if|for)\b.{0,200}[:({;]|^\s{0,8}[a-z][\w.+-]{0,20}\s.{0,200}\s-{1,2}[A-Za-z].{0,200}\s-{1,2}[A-Za-z]/

/** Flags, paths, globs and variables of a command. */
const CODE_TOKEN = /^(?:--?[a-z]|\+\d|\$|\.{0,2}\/|~\/|[|>&]{1,2}$)|[{}\\*=_$]|\w\/\w.{0,80}\/|^['"][^'"]{0,80}[/.*]/i

/** A third of the words of a command line are none. */
function isCommand(line: string): boolean {
  const tokens = line.trim().split(/\s+/)
  const codes = tokens.filter((token) => token.length < 200 && CODE_TOKEN.test(token)).length
  return codes >= 2 && codes * 3 >= tokens.length
}

/** Code without fences has no language of its own. */
const withoutCode = (text: string) =>
  text
    .split('\n')
    .filter((line) => line.length > 400 || !(CODE_LINE.test(line) || isCommand(line)))
    .join('\n')

/** Characters that Chinese writes in nearly every sentence and Japanese never. */
const CHINESE =
  /[这們们嗎吗呢吧麼么沒还给让說说话请谢为对关开见车长门问间钱试复团队习从练过样东两爱听买卖读热书這你她很]/gu
const KANA = /[\p{Script=Hiragana}\p{Script=Katakana}]/gu

/** Chinese where Japanese was wanted, or the other way round; their characters are partly the same. */
function isOtherHan(expectedLanguage: string, task: string, text: string): boolean {
  const count = (part: string, pattern: RegExp) => part.match(pattern)?.length ?? 0
  if (expectedLanguage === 'ja')
    return count(text, /\p{Script=Han}/gu) >= 6 && count(text, KANA) === 0 && count(text, CHINESE) >= 2
  if (expectedLanguage !== 'zh') return false
  return count(text, KANA) >= 8 && count(text, CHINESE) === 0 && count(task, KANA) === 0
}

/** "Seven days" and "Yes, it is" to a task without a Latin letter; a name may be in either script. */
function isEnglishInOtherScript({ full }: ReadTask, { raw, words }: ReadText): boolean {
  if (words.length > 6 || /\p{Script=Latin}/u.test(full.raw) || (full.raw.match(/\p{L}/gu)?.length ?? 0) < 6)
    return false
  const isPlain = (word: string) => numberOfWord(word) !== undefined || functionWordsIn([word], 'en') > 0
  return (
    words.some((word) => /^[a-z]{2}/.test(word) && isPlain(word)) &&
    words.every((word) => isPlain(word) || (raw.includes(word) && (rankOf(word) ?? COMMON) < COMMON))
  )
}

/** "La Vie en rose", "Milord": a row of short quotations and next to nothing else. */
function isListOfTitles(text: string): boolean {
  const quotes = quotedPassages(text, 200)
  if (quotes.length < 2 || quotes.some((quote) => wordsOf(quote.text).length > 8)) return false
  const quoted = quotes.reduce((sum, quote) => sum + wordsOf(quote.text).length, 0)
  return wordsOf(text).length - quoted <= quotes.length
}

/** What is quoted may be in any language; where little else is said, it counts. */
function withoutQuotations(text: string): string {
  let rest = ''
  let at = 0
  for (const { start, end } of quotedPassages(text, 200)) {
    rest += `${text.slice(at, start)} `
    at = end
  }
  if (at === 0) return text
  rest += text.slice(at)
  // Words with a capital may be names: "Take On Me" (Name Name), "Maniac" (Name).
  return (rest.match(/(?<!\p{L})[\p{Ll}\p{Lo}]/gu)?.length ?? 0) >= 8 ? rest : text
}

/** The small words of another language stand in the answer, and those of the task's own do not; in the task it is the other way round. */
function hasOtherFunctionWords(task: ReadTask, words: readonly string[], { language }: DetectedLanguage): boolean {
  const { language: own, isSure } = task.language!
  if (!isSure && language === 'en' && isMostlyEnglish(task.full.raw)) return false
  // "Di" and "Do" are words of Polish, and days of a German week.
  if (!isSure && !WELL_KNOWN.has(own)) return false
  const materialLanguages = [task.material, ...task.context].map((text) => detectLanguage(wordsOf(text))?.language)
  if (sameLanguage(language, own) || materialLanguages.some((other) => other && sameLanguage(other, language)))
    return false
  const ofOther = functionWordsIn(words, language)
  // "A", "E" and "I" may be labels.
  const ofTask = functionWordsIn(
    task.requestWords.filter((word) => word.length > 1),
    own,
  )
  return (
    words.filter((word) => /\p{L}/u.test(word)).length >= 6 &&
    ofOther >= 3 &&
    3 * functionWordsIn(words, own) <= ofOther &&
    ofTask >= 2 &&
    2 * functionWordsIn(task.full.words, language) <= ofTask
  )
}

/** "dad joke about wifi": a few words, all of them English, and a text of ten words and more that is not. */
const isForeignToShortTask = (task: ReadTask, { language }: DetectedLanguage, prose: string) =>
  language !== 'en' &&
  task.material === '' &&
  task.full.words.length <= 8 &&
  englishShare(task.full.raw).share >= 0.7 &&
  wordsOf(prose).length >= LEAST_WORDS &&
  englishShare(prose, 12_000).share < 0.6

/** Many words of one language and next to none of the task's, where close languages share the rest. */
const isClearBeside = (language: DetectedLanguage, own: DetectedLanguage, output: ReadText) =>
  own.isSure &&
  output.words.length >= LEAST_WORDS &&
  language.score >= 3 &&
  language.score > 4 * language.scoreOf(own.language)

/** How many words tell a language for sure. */
const LEAST_WORDS = 10
const LEAST_WORDS_BESIDE_ENGLISH = 6

/** Letters of a script that the task has none of, or enough words on both sides. */
function isPlainlyOther(task: ReadTask, output: ReadText, isSure: boolean): boolean {
  const count = (text: string, pattern: RegExp) => text.match(pattern)?.length ?? 0
  const foreign = /(?!\p{Script=Latin})\p{L}/gu
  const isForeign = count(output.raw, foreign) > count(output.raw, /\p{Script=Latin}/gu)
  const hasForeign = count(task.full.raw, foreign) >= 3
  if (isForeign) return !hasForeign
  if (hasForeign) return true
  const countWords = (words: readonly string[]) => words.filter((word) => /\p{L}/u.test(word)).length
  const wordCount = countWords(output.words)
  const isEnglishTask = isPlainEnglish(task)
  return (
    isSure &&
    (wordCount >= LEAST_WORDS
      ? isEnglishTask || countWords(task.full.words) >= 6
      : wordCount >= LEAST_WORDS_BESIDE_ENGLISH && isEnglishTask && englishShare(output.raw, 12_000).share < 0.6)
  )
}

const isMostlyEnglish = (text: string) => {
  const { share, count } = englishShare(text, 12_000)
  return (count >= 3 && share >= 0.85) || (count === 2 && share === 1)
}

/** Letters that hardly another language has. */
const OWN_LETTERS: Readonly<Record<string, RegExp>> = { pt: /[ãõ]|ância/, es: /[ñ¿¡]/, de: /ß/, pl: /[łśźż]/ }

/** Marks that one of two close languages has and the other lacks. */
const NEIGHBOUR_LETTERS: Readonly<Record<string, readonly [own: RegExp, other: RegExp]>> = {
  pt: [/[ãõç]|lh|nh/, /[ñ¿¡]/],
  es: [/[ñ¿¡]/, /[ãõ]/],
  it: [/[ìò]|zz|gli\b/, /[êçœëîôûãõñ¿¡]|ée/],
}

function hasLettersOfNeighbour(language: string, task: string, prose: string): boolean {
  const letters = NEIGHBOUR_LETTERS[language]
  return letters?.[1].test(prose) === true && !letters[0].test(prose) && !letters[1].test(task)
}

const commentsOf = (code: string) =>
  code
    .split('\n')
    .flatMap((line) => /(?:^|\s)(?:#|\/\/|--)\s{1,4}(\S.{0,300})$/.exec(line)?.[1] ?? [])
    .join('\n')

/** A short question of which every word is English, such as "What causes tides?". */
function isPlainEnglish({ language, full }: ReadTask): boolean {
  const { share, count } = englishShare(full.raw)
  return language?.language === 'en' && count >= 2 && share === 1
}

/** The share of words that are among the commonest of English; those with a capital may be names. */
function englishShare(text: string, ranks = Number.POSITIVE_INFINITY): { share: number; count: number } {
  const words = (text.match(/(?<![\p{L}\p{N}.@/_-])\p{Ll}[\p{L}'’]{1,30}/gu) ?? []).slice(0, 200)
  const englishWords = words.filter(
    (word) => (rankOf(word.replaceAll('’', "'").replace(/'.*$/, '')) ?? ranks) < ranks,
  ).length
  return { share: englishWords / Math.max(1, words.length), count: words.length }
}

/** A task in English and an answer of which few words are English, or the other way round. */
function findForeignWords(task: ReadTask, prose: string): boolean {
  if (task.mentionsLanguage || task.targetLanguage || task.is.translation || task.isVague || task.code) return false
  if (/[{};][ \t]{0,8}$|=>|\bSELECT\b|^[ \t]{0,20}(?:def|const|import)\b/m.test(prose)) return false
  const requestShare = englishShare(task.request)
  const materialShare = englishShare(`${task.material} ${task.context.join(' ')}`)
  const answer = englishShare(prose.replace(/`[^`\n]{0,200}`/g, ' '))
  if (answer.count < 6) return false
  const isEnglishTask =
    requestShare.count >= 4 && requestShare.share >= 0.75 && (materialShare.count < 4 || materialShare.share >= 0.75)
  if (isEnglishTask && answer.share < 0.4 && countEnglish(prose) === 0) return true
  const commonShare = englishShare(task.request, 10_000).share
  const isForeignTask =
    requestShare.count >= 3 &&
    commonShare < 0.45 &&
    (materialShare.count < 4 || materialShare.share < 0.5) &&
    countEnglish(task.request) === 0 &&
    task.language !== undefined &&
    task.language.score >= (commonShare === 0 && requestShare.count >= 4 ? 1 : 1.4) &&
    task.language.language !== 'en'
  return isForeignTask && answer.share > 0.92 && countEnglish(prose) >= 2
}

const countEnglish = (text: string) =>
  text.match(/\b(?:the|is|of|and|to|that|it|you|for|are|with|any|through|in|on|from|your|my|what|how|pls|please)\b/gi)
    ?.length ?? 0
