import { combine, type Finding, failed, notApplicable, passed } from './finding.ts'
import { numberOfWord, readNumbers } from './numbers.ts'
import { isItemNoun } from './requested-size.ts'
import { isOrder, LENGTH_LIMIT } from './required-points.ts'
import type { ReadTask } from './task.ts'
import { clip, plainText, quotedPassages, type ReadText } from './text.ts'

const WANTS =
  /\b(?:must (?:mention|contain|include|have|say|use|give|name|state|quote)|(?:has|needs|have|need) to (?:mention|contain|include|say)|should (?:mention|contain|include|say)|be sure to (?:mention|include)|make sure (?:to |it )?(?:mention|include|contain)\w?|don't forget (?:to mention |the )?|include (?:the )?(?:phrase|code|sentence|hashtag)s?|mention(?:s|ing)?(?: that)?|use(?= the words?)|contain(?:s|ing)?(?= the (?:words?|figure|number))|contain(?:s|ing)? the phrase|with(?= the word)|using(?= the word)|includ(?:e|es|ing)(?= the word)|with the phrase|using the phrase|(?:muss|soll|müssen)\b[^.:\n]{0,40}\b(?:enthalten|erwähnen|nennen|vorkommen)|do(?:it|ivent) (?:contenir|mentionner|inclure)|debe (?:incluir|mencionar|contener)|deve (?:contenere|menzionare|includere|conter|mencionar|incluir)|erwähne|mentionne[rz]?|menciona|include)[: ](.{1,300})/gi

/** What follows each order to mention something that is not one to leave it out. */
function wantedClauses(text: string): string[] {
  const clauses: string[] = []
  WANTS.lastIndex = 0
  for (let match = WANTS.exec(text); match && clauses.length < 6; match = WANTS.exec(text)) {
    const ahead = text.slice(Math.max(0, match.index - 24), match.index)
    const isForbidden = /(?:\b(?:without|avoid|not|never|no|none|dont)|n['’]t)\b[^.,;]{0,12}$/i.test(ahead)
    if (!isForbidden && isOrder(match[0], ahead)) clauses.push(match[1]!)
    // The next order may stand in the same sentence.
    WANTS.lastIndex = match.index + match[0].length - match[1]!.length
  }
  return clauses
}

/** An order in pasted text is none of the task. */
const FOREIGN_ORDER =
  /\b(?:ignore|disregard) (?:all |any |the )?(?:previous|prior|above|earlier) (?:instructions|text)\b[^.!?\n]{0,200}/gi

/** "Must mention date, time and place": the one time that the task gives. */
function timeWanted(request: string): string[] {
  if (!/\b(?:mention|include|state|name|contain)s?\b[^.;\n]{0,40}\btime\b(?! (?:to|for|of|off|limit))/i.test(request))
    return []
  const times = new Set(request.match(/(?<![\d:])(?:[01]?\d|2[0-3]):[0-5]\d(?![\d:])/g))
  return times.size === 1 ? [...times] : []
}

/** "A tweet with the hashtag #coop" */
const HASHTAG =
  /\b(?:with|use|using|add|include|end with|mit|avec|con|com)(?: the| a| our| dem| le| el| il)? hashtags? (#[\p{L}\d_]{2,40})/giu

/** Codes, figures and quoted words after "must mention", "include", "contain". */
export function checkWanted(task: ReadTask, output: ReadText): Finding {
  const request = task.full.raw.slice(0, 6_000).replaceAll(FOREIGN_ORDER, ' ')
  const code =
    /\b(?:give|tell|send|include|mention|state|quote|with|add|name)\b[^.\n]{0,40}?\b(?:number|code|reference|ticket|voucher|id|no\.?|nr\.?)[: ]{1,2}((?=[\w-]{0,20}\d)[A-Z][\w-]{3,20})/i.exec(
      request.slice(0, 2_000),
    )?.[1]
  const requirements = [
    ...(code && /^(?:writer|support)/.test(task.agentId) ? [code] : []),
    ...wordsWantedBefore(request),
    ...[...request.matchAll(HASHTAG)].map(([, tag]) => tag!),
    ...timeWanted(request),
    ...wantedClauses(request).flatMap(requirementsOf),
  ].slice(0, 30)
  if (requirements.length === 0) return notApplicable
  const text = output.raw.toLowerCase()
  const missing = requirements.find((item) => !text.includes(item.toLowerCase().trim()) && !isWritten(item, output))
  return missing === undefined ? passed : failed(`It leaves out ${clip(missing, 30)}, which the task wants in it.`)
}

const MONTH =
  '(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)'
const DAY_OF_MONTH = new RegExp(`\\b\\d{1,2} ${MONTH}\\b`, 'g')

/** Whether a text has the day of a date with another month, and nowhere with its own. */
function hasOtherMonth(date: string, text: string): boolean {
  const [day, month] = date.split(' ') as [string, string]
  const dates = [
    ...text.matchAll(
      new RegExp(
        `(?<!\\d)${day}(?:st|nd|rd|th)? (?:of )?(${MONTH})\\b|\\b(${MONTH}) ${day}(?:st|nd|rd|th)?(?!\\d)`,
        'g',
      ),
    ),
  ].map(([, after, before]) => (after ?? before)!.slice(0, 3))
  return dates.length > 0 && !dates.includes(month.slice(0, 3))
}

const ADDRESS =
  /(?<![\w.+-])[\w.+-]{1,60}@[\w-]{1,60}(?:\.[\w-]{1,30}){1,3}|\bhttps?:\/\/[^\s,)]{3,100}|\bwww\.[^\s,)]{3,80}/g

function requirementsOf(clause: string): string[] {
  // "It was never easy" in quotation marks forbids nothing.
  const masked = quotedPassages(clause, 120).reduce(
    (text, { start, end }) => `${text.slice(0, start)}${'_'.repeat(end - start)}${text.slice(end)}`,
    clause,
  )
  const [order = ''] = masked.split(/[!?\n]|\.(?=\s|$)|\b(?:do not|don['’]t|without|avoid|never|but not|must not)\b/, 1)
  const part = clause.slice(0, order.length).replaceAll(LENGTH_LIMIT, ' ')
  // "The word comma": one word without quotation marks.
  const bare = /^(?:the )?word (?!(?:only|alone|itself)\b)([\p{L}-]{3,30})(?=\s|[.,;!?]|$)/iu.exec(part.trim())?.[1]
  const several =
    /^(?:the )?(?:\p{L}{3,6} )?words ((?:[\p{L}-]{3,30}, ){0,6}[\p{L}-]{3,30},? and [\p{L}-]{3,30})(?=[.,;]|$| in | at )/iu
      .exec(part.trim())?.[1]
      ?.split(/, and |, | and /)
  return [
    ...(bare ? [bare] : []),
    ...(several ?? []),
    ...quotedPassages(part, 120).map((quote) => quote.text),
    ...(part.includes('word') ? singleQuoted(part) : []),
    ...(part.match(/\b(?=[A-Z0-9-]*\d)(?=[A-Z0-9-]*[A-Z])[A-Z0-9-]{4,20}\b/g) ?? []),
    ...(part.match(/#[\p{L}\d_]{2,40}/gu) ?? []),
    ...(part.match(ADDRESS) ?? []),
    ...(part.match(DAY_OF_MONTH) ?? []),
    ...[...part.matchAll(/\d+(?:[.,:]\d+)*/g)]
      .filter(({ 0: figure, index }) => !isCountOfParts(figure, part.slice(index + figure.length)))
      .map(([figure]) => figure),
  ]
}

/** "Include 3 examples" wants three of them and not the figure. */
const isCountOfParts = (figure: string, rest: string) =>
  figure.length <= 2 &&
  (/^ ([\p{L}-]{2,20})(?: ([\p{L}-]{2,20}))?(?: ([\p{L}-]{2,20}))?/u.exec(rest) ?? [])
    .slice(1)
    .some((word) => word !== undefined && isItemNoun(word.toLowerCase()))

function isWritten(item: string, output: ReadText): boolean {
  if (new RegExp(`^\\d{1,2} ${MONTH}$`).test(item)) return !hasOtherMonth(item, output.raw)
  const time = /^(\d{1,2}):(\d{2})$/.exec(item)
  // 18:30 is half past six as well.
  if (time)
    return [...output.raw.matchAll(/(?<!\d)(\d{1,2})(?:[:.h](\d{2}))?(?!\d)/g)].some(
      ([, hour, minute = '00']) => Number(hour) % 12 === Number(time[1]) % 12 && minute === time[2],
    )
  const value = Number(item.replace(/,/g, ''))
  // 22 is 10 pm as well.
  if (value > 12 && value <= 24 && new RegExp(`(?<!\\d)${value - 12}(?:[:.]00)? ?p\\.?m`, 'i').test(output.raw))
    return true
  return (
    Number.isFinite(value) &&
    (readNumbers(output.raw, { words: true }).some(({ values }) => values.includes(value)) ||
      output.words.some((word) => numberOfWord(word) === value) ||
      output.raw.replace(/[,.'\s]/g, '').includes(item.replace(/[,.'\s]/g, '')))
  )
}

const QUOTED_LIST =
  /(?:["“„«'‘][^"”“»'’\n]{2,40}["”“»'’](?:,? (?:and|or|nor|as well as|und|oder|et|ou|y|o|e) |, ?)?){1,8}/.source

/** "The words "a" and "b" must both appear": the quoted words stand in front of the verb. */
const WANTED_BEFORE = new RegExp(
  `(${QUOTED_LIST}) ?(?:,? ?(?:all|both|each) )?(?:has|have|must|needs?|should) (?:all |both )?(?:to )?(?:be in|occur|appear|be (?:used|mentioned|included))`,
  'gi',
)
/** "Muss die Wörter "Regen" und "Suppe" enthalten". */
const WANTED_INSIDE = new RegExp(
  `(${QUOTED_LIST}) ?(?:enthalten|vorkommen|erwähnen|nennen|verwenden|benutzen)\\b`,
  'gi',
)
/** "Name it "Gisela" in the poem". */
const CALLED = new RegExp(`\\b(?:name|call) (?:it|him|her|them) (${QUOTED_LIST})`, 'gi')
const FORBIDDEN_BEFORE = new RegExp(
  `(${QUOTED_LIST}) ?(?:(?:is|are) (?:all |both )?(?:forbidden|banned|taboo|not allowed|off[- ]limits|out)|(?:must|may|should|shall|can) (?:not|never) (?:occur|appear|be (?:used|mentioned|included|in)|show up))`,
  'gi',
)

const quotedWords = (text: string) =>
  [...text.matchAll(/["“„«'‘]([^"”“»'’\n]{2,40})["”“»'’]/g)].map(([, word]) => word!)

const wordsWantedBefore = (request: string) =>
  [
    ...request.matchAll(WANTED_BEFORE),
    ...request.matchAll(WANTED_INSIDE),
    ...[...request.matchAll(CALLED)].filter(({ 0: order, index }) =>
      isOrder(order, request.slice(Math.max(0, index - 24), index)),
    ),
  ]
    .slice(0, 4)
    .filter(
      ({ index }) =>
        !/\b(?:weder|nicht|keine?[snr]?|neither|none)\b/i.test(request.slice(Math.max(0, index - 30), index)),
    )
    .flatMap(([, list]) => quotedWords(list!))

const LEAVE_OUT = new RegExp(
  `\\b(?:(?:do not|don['’]?t|never|must not|mustn['’]t|may not|should not|shouldn['’]t|cannot|can['’]t|not|without|avoid|(?:none|nothing|no [a-z]{3,12})(?: of (?:them|these|it))? (?:may|must|should|can|is to|are to))(?: (?:ever|please))?(?: (?:us(?:e|ing)|mention(?:ing)?|say(?:ing)?|includ(?:e|ing)|writ(?:e|ing)|contain(?:ing)?))?|avoid(?:ing)?|leav(?:e|ing) out|omit|free (?:of|from)|no (?:use|mention) of|no|ohne|vermeide|sans(?: utiliser)?|évite|sin(?: usar)?|evita|senza(?: usare)?)(?: (?:any|all|either|both) of)?(?: (?:the|these|any|following|das|die|les?|las?|la|le)){0,2}(?<noun> (?:words?|terms?|phrases?|expressions?|names?|wort|wörter|mots?|palabras?|parol[ae]))?(?: (?:like|such as))?:? {0,2}(${QUOTED_LIST})`,
  'gi',
)

/** "Avoid "a", "b" and "c"", "must not contain the words "a" or "b"", ""a" is forbidden": every quoted word of the list. */
const quotedForbidden = (request: string): string[] =>
  [
    ...[...request.matchAll(LEAVE_OUT)]
      // "There is no "express" option" and "str (not "int")" forbid nothing.
      .filter(({ 0: match, groups }) => groups?.noun !== undefined || !/^not? ["“„«'‘]/i.test(match))
      .map((match) => match.at(-1)!),
    ...[...request.matchAll(FORBIDDEN_BEFORE)].map(([, list]) => list!),
  ]
    .slice(0, 8)
    .flatMap(quotedWords)

export function checkForbidden(task: ReadTask, output: ReadText): Finding {
  // What a memory says of tone and words holds for every task.
  const request = [task.full.raw.slice(0, 6_000), ...task.context.map((memory) => memory.slice(0, 1_000))].join('\n')
  const findings: Finding[] = []
  const forbid = (isThere: boolean, fault: string) => findings.push(isThere ? failed(fault) : passed)
  if (/\b(?:no|without|avoid|don['’]t use|do not use|ohne|sans|sin|senza|sem) (?:any )?hashtags?\b/i.test(request))
    forbid(/(?<!\S)#\p{L}/u.test(output.raw), 'It has a hashtag, and none was wanted.')
  if (/\b(?:no|without|avoid|don['’]t use|do not use|ohne|sans|sin|senza|sem) (?:any )?emojis?\b/i.test(request))
    forbid(/\p{Extended_Pictographic}/u.test(output.raw), 'It has an emoji, and none was wanted.')
  if (
    /\b(?:no|without|avoid|don['’]t use|do not use|never use|remove (?:all|every|the)) (?:any )?exclamation (?:marks?|points?)\b|\b(?:sans|pas utiliser de|ohne|kein(?:e|em|en)?|sin|senza|nessun|sem|zonder|geen) (?:points? d['’]exclamation|ausrufezeichen|(?:signos? de )?exclamaci(?:ón|ones)|punt[oi] esclamativ[oi]|pontos? de exclamação|uitroeptekens?)(?!\p{L})/iu.test(
      request,
    )
  )
    forbid(output.raw.includes('!'), 'It has an exclamation mark, and none was wanted.')
  const plain = ` ${plainText(output.raw)} `
  for (const text of quotedForbidden(request)) {
    const word = plainText(text)
    if (word)
      forbid(
        plain.includes(` ${word} `) ||
          (word.length >= 4 && plain.includes(` ${word}s `)) ||
          // "MySQL" has "SQL" in it.
          (/^\p{Lu}{3,12}$/u.test(text) && output.raw.includes(text)),
        `It uses ${clip(text, 30)}, which the task forbids.`,
      )
  }
  // "Don't bring up the rival bid" keeps to it.
  const answerText = output.raw.replaceAll(
    /\b(?:don['’]?t|do not|never|avoid|without) (?:bring\w{0,3} up|mention\w{0,3}|rais\w{1,3}|tell\w{0,3})\b[^.!?\n]{0,60}/gi,
    ' ',
  )
  for (const word of forbiddenWords(request))
    forbid(
      new RegExp(`(?<![\\p{L}\\d])${singularOf(word)}(?:s|es)?(?![\\p{L}\\d])`, 'iu').test(answerText),
      `It uses ${clip(word, 30)}, which the task forbids.`,
    )
  const letter =
    /\b(?:without|not|never|n['’]t|avoid)(?: (?:us(?:e|ing)|contain(?:ing)?))? the letter ["'“‘]?(\p{L})(?!\p{L})/iu.exec(
      request,
    )?.[1]
  if (letter) forbid(output.raw.toLowerCase().includes(letter.toLowerCase()), 'It has a letter that the task forbids.')
  if (
    /\b(?:do not|don't|never|without) (?:promis\w{1,3}|giv\w{1,3}|nam\w{1,3}|commit\w{0,4} to|mention\w{0,3}) (?:an? |any )?(?:\w{1,12} )?(?:dates?|timelines?|deadlines?)\b/i.test(
      request,
    )
  )
    // A day that the task gives is not promised.
    forbid(
      (output.raw.match(PROMISED_TIME) ?? []).some((time) => !task.full.raw.toLowerCase().includes(time.toLowerCase())),
      'It names a date, and none was wanted.',
    )
  return combine(findings)
}

/** "Acrostic on the word FROG": the lines begin with its letters. */
export function checkAcrostic(task: ReadTask, output: ReadText): Finding {
  const word =
    /\bacrostic\b[^\n]{0,40}?(?:\b(?:word|name|on|of|for|from)\b\s["“'‘]?(?:the (?:word|name) )?["“'‘]?)([A-Z]{2,15}|\p{L}{2,15})\b/iu.exec(
      task.request,
    )?.[1]
  const lines = output.lines.map((line) => line.replace(/^[^\p{L}]+/u, '')).filter(Boolean)
  if (!word || /^(?:the|word|name|a|my|funny)$/i.test(word) || lines.length === 0) return notApplicable
  // In one line with slashes or commas it may be an acrostic too.
  if (lines.length < 2 && (output.words.length < 15 || /[/|–—-]\s/.test(output.raw))) return notApplicable
  const initials = lines.map((line) => line[0]!.toLowerCase()).join('')
  return initials.includes(word.toLowerCase()) ? passed : failed('Its lines do not begin with the letters of the word.')
}

/** The words in single quotation marks, which are apostrophes elsewhere. */
const singleQuoted = (text: string) =>
  [...text.matchAll(/(?<![\p{L}\d])['‘]([\p{L}\d][\p{L}\d -]{0,28}[\p{L}\d])['’](?![\p{L}\d])/gu)].map(
    ([, word]) => word!,
  )

/** "Buses" forbids a bus. */
const singularOf = (word: string) =>
  /(?:[sx]|ch|sh)es$/i.test(word) ? word.slice(0, -2) : /[^su]s$/i.test(word) ? word.slice(0, -1) : word

const FORBIDS =
  /\b(?:(?:do not|don['’]?t|never|must not|mustn['’]t|may not|should not|shouldn['’]t|none (?:of them )?may|nobody may) (?:mention|(?:use|say|contain|include|write) the words?|contain any|include any)|without (?:mentioning|(?:using|saying) the words?|the words?)|avoid(?:ing)? (?:mentioning|(?:using )?the words?)|leav(?:e|ing) out the words?|omit the words?|free of the words?|no mention of|(?:banned|forbidden|taboo) words?|ohne (?:das wort|die wörter)|sans (?:utiliser )?les? mots?|sin (?:usar |mencionar )?las? palabras?|senza (?:usare )?(?:la parola|le parole))[: ]{1,2}([^.;:!?\n"“'‘(]{3,80})/gi

/** "Do not mention milk or mice": words without quotation marks, one or two for each thing. */
function forbiddenWords(request: string): string[] {
  return [...request.matchAll(FORBIDS)].slice(0, 6).flatMap(({ 0: match, 1: clause, index }) => {
    // "Dad's operation" forbids no mention of Dad.
    if (/^['’]s\b/.test(request.slice(index + match.length, index + match.length + 3))) return []
    const items = clause!
      .split(/, (?:but|must|and must|include|use|mention|keep|max|at most|in \d)/, 1)[0]!
      .split(/, (?:or|and|nor) |,| or | and | nor | oder | und | ou | et | y | o |\//)
      .map((item) =>
        item
          .trim()
          .replace(/^(?:any|the|a|an|or|and|our|my|his|her|their|your) /i, '')
          .replace(/ (?:please|pls|at all|anywhere|in it)$/i, '')
          // "The competitor CityWalks"
          .replace(
            /^(?:competitor|rival|company|brand|supplier|colleague|customer|client|product|project) (?=\p{Lu})/u,
            '',
          ),
      )
      .filter(Boolean)
    // What is no list of things is a clause of its own ("do not mention that …").
    return items.every((item) => item.split(' ').length <= 3)
      ? items.filter((item) => /^[\p{L}\d-]{3,24}(?: [\p{L}\d-]{2,24})?$/u.test(item) && !UNSPECIFIC.test(item))
      : []
  })
}

const UNSPECIFIC =
  /^(?:(?:it|this|that|them|these|how|why|what|when|other|being|having|anything|anyone)\b.*|names?|prices?|figures?|numbers?|dates?|details?|competitors?|politics|religion|brands?|errors?|mistakes?|typos?|text|code|words?|comments?|links?|images?|emojis?|jargon|markdown)$/i

/** Days and weeks by which something is promised. */
const PROMISED_TIME =
  /\b\d{1,2}(?:st|nd|rd|th)? (?:of )?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\b|\b(?:january|february|march|april|june|july|august|september|october|november|december)\b|\bnext (?:week|month)\b|\bby (?:monday|tuesday|wednesday|thursday|friday)\b|\bwithin \d+ (?:days|weeks)\b/gi
