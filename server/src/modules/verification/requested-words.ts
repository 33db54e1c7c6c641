import { combine, type Finding, failed, notApplicable, passed } from './finding.ts'
import { numberOfWord } from './numbers.ts'
import type { ReadTask } from './task.ts'
import { clip, plainText, quotedPassages, type ReadText } from './text.ts'

const WANTS =
  /\b(?:must (?:mention|contain|include|have|say|use|give|name|state|quote)|(?:has|needs|have|need) to (?:mention|contain|include|say)|should (?:mention|contain|include|say)|be sure to (?:mention|include)|make sure (?:to |it )?(?:mention|include|contain)\w?|don't forget (?:to mention |the )?|include (?:the )?(?:phrase|code|sentence|hashtag)|mention(?: that)?|use(?= the words?)|contain(?:s|ing)?(?= the word)|contain(?:s|ing)? the phrase|with(?= the word)|using(?= the word)|include(?= the word)|with the phrase|using the phrase|(?:muss|soll|müssen)\b[^.:\n]{0,40}\b(?:enthalten|erwähnen|nennen|vorkommen)|do(?:it|ivent) (?:contenir|mentionner|inclure)|debe (?:incluir|mencionar|contener)|deve (?:contenere|menzionare|includere|conter|mencionar|incluir)|erwähne|mentionne[rz]?|menciona|include)[: ](.{1,300})/i

/** What follows the first order to mention something that is not one to leave it out. */
function wantedClause(text: string): string | undefined {
  let rest = text
  for (let tries = 0; tries < 4; tries++) {
    const match = WANTS.exec(rest)
    if (!match) return undefined
    const ahead = rest.slice(Math.max(0, match.index - 20), match.index)
    if (!/\b(?:without|avoid|not|never|no|don['’]t|must ?n['’]t)\b[^.,;]{0,12}$/i.test(ahead)) return match[1]
    rest = rest.slice(match.index + match[0].length - match[1]!.length)
  }
  return undefined
}

/** Codes, figures and quoted words after "must mention", "include", "contain". */
export function checkWanted(task: ReadTask, output: ReadText): Finding {
  const clause = wantedClause(task.full.raw.slice(0, 6_000))
  const before = WANTED_BEFORE.exec(task.full.raw.slice(0, 6_000))?.[1]
  if (before && !` ${plainText(output.raw)} `.includes(` ${plainText(before)} `))
    return failed(`It leaves out ${clip(before, 30)}, which the task wants in it.`)
  const code =
    /\b(?:give|tell|send|include|mention|state|quote|with|add|name)\b[^.\n]{0,40}?\b(?:number|code|reference|ticket|voucher|id|no\.?|nr\.?)[: ]{1,2}((?=[\w-]{0,20}\d)[A-Z][\w-]{3,20})/i.exec(
      task.full.raw.slice(0, 2_000),
    )?.[1]
  if (code && /^(?:writer|support)/.test(task.agentId) && !output.raw.toLowerCase().includes(code.toLowerCase()))
    return failed(`It leaves out ${clip(code, 30)}, which the task wants in it.`)
  if (!clause) return before || code ? passed : notApplicable
  const part = clause
    .split(/[!?\n]|\.(?=\s|$)|\b(?:do not|don['’]t|without|avoid|never|but not|must not)\b/, 1)[0]!
    // "…, max 40 words" is a limit, not something to mention.
    .replaceAll(
      /(?:\b(?:max\.?|maximum|at most|under|up to|exactly|about|in|within|no more than) )?\d{1,5}(?:\s?[-–]\s?\d{1,5})?[ -](?:words?|characters?|chars|sentences?|lines?|paragraphs?)\b/gi,
      ' ',
    )
  // "The word comma": one word without quotation marks.
  const bare = /^(?:the )?word ([\p{L}-]{3,30})(?=\s|[.,;!?]|$)/iu.exec(part.trim())?.[1]
  const several =
    /^(?:the )?(?:\p{L}{3,6} )?words ((?:[\p{L}-]{3,30}, ){0,6}[\p{L}-]{3,30},? and [\p{L}-]{3,30})(?=[.,;]|$| in | at )/iu
      .exec(part.trim())?.[1]
      ?.split(/, and |, | and /)
  const requirements = [
    ...(bare ? [bare] : []),
    ...(several ?? []),
    ...quotedPassages(part, 80).map((quote) => quote.text),
    ...(part.includes('word') ? singleQuoted(part) : []),
    ...(part.match(/\b(?=[A-Z0-9-]*\d)(?=[A-Z0-9-]*[A-Z])[A-Z0-9-]{4,20}\b/g) ?? []),
    ...(part.match(/#[\p{L}\d_]{2,40}/gu) ?? []),
    ...(part.match(/\d+(?:[.,:]\d+)*/g) ?? []),
  ].slice(0, 20)
  if (requirements.length === 0) return notApplicable
  const text = output.raw.toLowerCase()
  const missing = requirements.filter((item) => !text.includes(item.toLowerCase().trim()) && !isWritten(item, output))
  return missing.length > 0 ? failed(`It leaves out ${clip(missing[0]!, 30)}, which the task wants in it.`) : passed
}

const isWritten = (item: string, output: ReadText) => {
  const value = Number(item.replace(/,/g, ''))
  return (
    Number.isFinite(value) &&
    (output.words.some((word) => numberOfWord(word) === value) ||
      output.raw.replace(/[,.'\s]/g, '').includes(item.replace(/[,.'\s]/g, '')))
  )
}

export function checkForbidden(task: ReadTask, output: ReadText): Finding {
  // What a memory says of tone and words holds for every task.
  const request = [task.full.raw.slice(0, 6_000), ...task.context.map((memory) => memory.slice(0, 1_000))].join('\n')
  const findings: Finding[] = []
  if (/\b(?:no|without|avoid|don't use|do not use|ohne|sans|sin|senza|sem) (?:any )?emojis?\b/i.test(request))
    findings.push(
      /\p{Extended_Pictographic}/u.test(output.raw) ? failed('It has an emoji, and none was wanted.') : passed,
    )
  if (
    /\b(?:no|without|avoid|don't use|do not use|never use|remove (?:all|every|the)) (?:any )?exclamation (?:marks?|points?)\b/i.test(
      request,
    )
  )
    findings.push(output.raw.includes('!') ? failed('It has an exclamation mark, and none was wanted.') : passed)
  for (const match of request.matchAll(
    /\b(?:without (?:using |saying |the )?(?:the )?(?:words?)?|(?:do not|don't|never|must not|avoid|not) (?:use|using|mention|mentioning|say|saying|include|including|write|contain)?(?: the)?(?: words?)?)\s?["“'‘]([^"”'’\n]{2,40})["”'’]/gi,
  )) {
    const word = plainText(match[1]!)
    if (word)
      findings.push(
        ` ${plainText(output.raw)} `.includes(` ${word} `)
          ? failed(`It uses ${clip(match[1]!, 30)}, which the task forbids.`)
          : passed,
      )
  }
  // "Avoid the words "a" and "b"": every quoted word of the clause.
  const listed =
    /\b(?:avoid|without|(?:don't|do not|never|not) (?:use|mention|say|write)|no) (?:using )?(?:the )?(?:words?|terms?|phrases?)\b(.{1,200})/i.exec(
      request,
    )
  const [clause = ''] = (listed?.[1] ?? '').split(/[.!?\n]/, 1)
  for (const text of [...quotedPassages(clause, 40).map((quote) => quote.text), ...singleQuoted(clause)]) {
    const word = plainText(text)
    if (word && ` ${plainText(output.raw)} `.includes(` ${word} `))
      findings.push(failed(`It uses ${clip(text, 30)}, which the task forbids.`))
  }
  for (const word of forbiddenWords(request))
    if (new RegExp(`(?<![\\p{L}\\d])${singularOf(word)}(?:s|es)?(?![\\p{L}\\d])`, 'iu').test(output.raw))
      findings.push(failed(`It uses ${clip(word, 30)}, which the task forbids.`))
  const letter = /\bwithout (?:using )?the letter ["'“]?(\p{L})\b/iu.exec(request)?.[1]
  if (letter)
    findings.push(
      output.raw.toLowerCase().includes(letter.toLowerCase())
        ? failed('It has a letter that the task forbids.')
        : passed,
    )
  if (
    /\b(?:do not|don't|never|without) (?:promis\w{1,3}|giv\w{1,3}|nam\w{1,3}|commit\w{0,4} to|mention\w{0,3}) (?:an? |any )?(?:\w{1,12} )?(?:dates?|timelines?|deadlines?)\b/i.test(
      request,
    )
  )
    findings.push(
      /\b\d{1,2}(?:st|nd|rd|th)? (?:of )?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\b|\b(?:january|february|march|april|june|july|august|september|october|november|december)\b|\bnext (?:week|month)\b|\bby (?:monday|tuesday|wednesday|thursday|friday)\b|\bwithin \d+ (?:days|weeks)\b/i.test(
        output.raw,
      )
        ? failed('It names a date, and none was wanted.')
        : passed,
    )
  return combine(findings)
}

/** "has to be in it", "must occur": the quoted word stands in front of the verb. */
const WANTED_BEFORE =
  /["“'‘]([^"”'’\n]{2,40})["”'’](?: and [^.]{1,40})? (?:has|have|must|needs?|should) (?:to )?(?:be in|occur|appear|be (?:used|mentioned|included))/i

/** "Acrostic on the word FROG": the lines begin with its letters. */
export function checkAcrostic(task: ReadTask, output: ReadText): Finding {
  const word =
    /\bacrostic\b[^\n]{0,40}?(?:\b(?:word|name|on|of|for|from)\b\s["“'‘]?(?:the (?:word|name) )?["“'‘]?)([A-Z]{2,15}|\p{L}{2,15})\b/iu.exec(
      task.request,
    )?.[1]
  const lines = output.lines.map((line) => line.replace(/^[^\p{L}]+/u, '')).filter(Boolean)
  if (!word || /^(?:the|word|name|a|my|funny)$/i.test(word) || lines.length < 2) return notApplicable
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
  /\b(?:(?:do not|don't|never|must not|mustn't|may not|should not|shouldn't|none (?:of them )?may|nobody may) (?:mention|use the words?|say the words?|contain the words?|contain any|include any)|without (?:mentioning|using the words?|saying the words?|the words?)|avoid (?:mentioning|the words?)|no mention of|(?:banned|forbidden|taboo) words?|ohne (?:das wort|die wörter)|sans (?:utiliser )?les? mots?|sin (?:usar |mencionar )?las? palabras?|senza (?:usare )?(?:la parola|le parole))[: ]{1,2}([^.;:!?\n"“'‘(]{3,60})/gi

/** "Do not mention milk or mice": words without quotation marks, one or two for each thing. */
function forbiddenWords(request: string): string[] {
  return [...request.matchAll(FORBIDS)].slice(0, 4).flatMap(([, clause]) => {
    const items = clause!
      .split(/, (?:but|must|and must|include|use|mention|keep|max|at most|in \d)/, 1)[0]!
      .split(/, (?:or|and|nor) |,| or | and | nor | oder | und | ou | et | y | o |\//)
      .map((item) =>
        item
          .trim()
          .replace(/^(?:any|the|a|an|or|and) /i, '')
          .replace(/ (?:please|pls|at all|anywhere|in it)$/i, ''),
      )
      .filter(Boolean)
    return items.every((item) => /^[\p{L}\d-]{3,24}(?: \p{Lu}[\p{L}\d-]{1,24})?$/u.test(item) && !UNSPECIFIC.test(item))
      ? items
      : []
  })
}

const UNSPECIFIC =
  /^(?:it|this|that|them|these|anything|anyone|names?|prices?|figures?|numbers?|dates?|details?|competitors?|politics|religion|brands?|errors?|mistakes?|typos?|text|code|words?|comments?|links?|images?|emojis?|jargon|markdown)$/i
