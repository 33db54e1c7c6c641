import { checkAttributions } from './attributions.ts'
import { timesOf } from './calendar.ts'
import { checkDurations } from './durations.ts'
import { combine, doubt, type Finding, failed, notApplicable, passed } from './finding.ts'
import { isRoughIn, readNumbers, standsFor, type TextNumber } from './numbers.ts'
import { requestedCounts, requestedLengths } from './requested-size.ts'
import { checkSourceFacts } from './source-facts.ts'
import type { ReadTask } from './task.ts'
import {
  clip,
  containsText,
  plainText,
  quotedPassages,
  type ReadText,
  sentencesOf,
  splitFences,
  wordsOf,
} from './text.ts'
import { rankOf } from './word-meaning.ts'

/** Figures, names, days and quotations of the answer against the text that the task gives. */
export const checkGrounded = (task: ReadTask, output: ReadText): Finding => {
  const source = sourceOf(task)
  return combine([
    checkQuotes(task, output, source),
    checkNumbers(task, output, source),
    checkDays(task, output, source),
    checkNames(task, output, source),
    doubt(checkExclusions(task, output)),
    doubt(checkPolicy(task, output)),
    doubt(checkFree(task, output, source)),
    isComputing(task) ? doubt(checkBindings(task, output, source)) : checkBindings(task, output, source),
    doubt(checkSwappedDigits(task, output, source)),
    doubt(checkChineseDays(task, output, source)),
    doubt(checkSourceFacts(task, output, source)),
    doubt(checkAttributions(task, output)),
    doubt(checkDurations(task, output)),
    doubt(checkTimes(task, output, source)),
    doubt(checkPermission(task, output)),
  ])
}

/** What is summed up or taken out of a text derives nothing; elsewhere a figure may be computed, so that its absence is a doubt. */
const unlessCopied = ({ is, full }: ReadTask, fault: Finding) =>
  (is.summary || is.extraction || is.quotation) && !/\d:\d\d|\d\s?%/.test(full.raw) ? fault : doubt(fault)

/** What the task says and the memories that were put in front of it. */
const sourceOf = (task: ReadTask) => [task.full.raw, ...task.context].join('\n')

/** Lanes whose quotations are claims about the input. Writers and comedians may invent speech. */
const QUOTING = /^(?:researcher|analyst|support|default)/

function checkQuotes(task: ReadTask, output: ReadText, source: string): Finding {
  const isStrict = task.is.quotation && task.material !== ''
  if (!isStrict && !QUOTING.test(task.agentId)) return notApplicable
  // Straight marks are syntax in JSON and in code.
  const text = /^\s*[[{]/.test(output.raw) ? '' : splitFences(output.raw).prose
  const quotes = quotedPassages(text, 600)
    .map((quote) => quote.text.trim())
    .filter((quote) => wordsOf(quote).length >= (isStrict ? 3 : 5))
    .slice(0, 50)
  if (task.is.translation || quotes.length === 0) return notApplicable
  // Without a source to quote from, a quotation is a fact of the world.
  if (!isStrict && wordsOf(task.material).length + task.context.length < 12) return notApplicable
  const sourceParts = plainText(source)
  const invented = quotes.filter(
    (quote) =>
      !containsText(sourceParts, plainText(quote.replace(/[.…]{3}|…/g, ' ').slice(0, 400))) &&
      !quote.split(/\.{3}|…|\[[^\]]{0,80}\]/).every((part) => containsText(sourceParts, plainText(part))),
  )
  if (invented.length === 0) return passed
  if (!isStrict && invented.length * 2 <= quotes.length) return passed
  const fault = failed(`${invented.length} of ${quotes.length} quotations are not in the text given.`)
  return isStrict ? fault : doubt(fault)
}

const isComputing = (task: ReadTask) =>
  task.agentId.startsWith('analyst') ||
  task.agentId.startsWith('coder') ||
  /\b(?:sum|total|average|mean|median|calculate|compute|convert|forecast|how many|how much|percent|berechne|calcul\w{0,4}|what date|which date|until when|weeks? (?:after|before|from)|days? (?:after|before|from|window|trial)|pro rata|in words|the amount|what they get|prorated?|roman numerals)\b|-day\b/i.test(
    task.request,
  )

/** A figure with the same unit or the same word in front of it as one of the source, but with another value. */
function checkNumbers(task: ReadTask, output: ReadText, source: string): Finding {
  const isStrict = (task.is.summary || task.is.extraction) && task.material !== ''
  // A question about a quoted text is answered from it, even where it asks how many.
  const isAsked = /^(?:researcher|default)/.test(task.agentId) && /^[^"“„«]{0,200}\?\s*["“„«]/.test(task.full.raw)
  const hasFacts = isAsked || (/^(?:writer|support|researcher|default)/.test(task.agentId) && !isComputing(task))
  if ((!isStrict && !hasFacts) || task.is.translation || task.is.template) return notApplicable
  const text = splitFences(output.raw).prose
  const sourceParts = distinct(readNumbers(source, { words: true }), source)
  const written = distinct(
    readNumbers(text, { words: true }).filter((number) => !isLabel(text, number)),
    text,
  )
  const figures = sourceParts.filter((number) => !number.isWord)
  if (figures.length === 0 || written.length === 0) return notApplicable
  const isGiven = (number: TextNumber) =>
    sourceParts.some((other) => other.values.some((value) => standsFor(number, value, isRoughIn(text, number))))
  const values = sourceParts.flatMap((number) => number.values).slice(0, 24)
  const percents = sourceParts.filter(({ isPercent }) => isPercent).map(({ values: [value] }) => value!)
  // A text that is retold has shares of its own at most; sums and differences would be other figures.
  const isRetold = isStrict && !/\b(?:difference|total|sum|together|how (?:much|many) more)\b/i.test(task.request)
  const isDerived = (number: TextNumber) =>
    (!isRetold ||
      number.isPercent ||
      isRoughIn(text, number) ||
      COMPARED.test(text.slice(Math.max(0, number.start - 24), number.end + 24))) &&
    follows(number, values, percents, text)
  const specified = new Set([
    ...requestedCounts(task).map(({ count }) => count),
    ...requestedLengths(task.request).flatMap(({ min, max }) => [min, max]),
  ])
  for (const number of written) {
    if (number.isWord && number.values[0] === 12 && /month|year|dozen/i.test(`${text} ${source}`)) continue
    if (isGiven(number) || (source.includes(number.text) && number.text.length > 1)) {
      if (hasOtherUnit(number, text, sourceParts, source))
        return failed(`${clip(number.text, 20)} has another unit than in the text given.`)
      continue
    }
    const conflict = findConflict(
      number,
      text,
      sourceParts.filter((other) => !specified.has(other.values[0]!)),
      source,
      (other) => written.some(({ values }) => values.some((value) => other.values.includes(value))),
    )
    // Where the figure of the source is in the answer too, the other one is another figure.
    const isKept = conflict && written.some((other) => other.values.some((value) => conflict.values.includes(value)))
    if (conflict && !isKept && !isDerived(number))
      return unlessCopied(
        task,
        failed(`${clip(number.text, 20)} stands where the text given has ${clip(conflict.text, 20)}.`),
      )
    if (
      isStrict &&
      (!number.isWord || number.isPercent) &&
      (number.values[0]! >= 13 || number.isPercent || number.decimals > 0) &&
      !isDerived(number)
    )
      return unlessCopied(task, failed(`${clip(number.text, 20)} is not in the text given.`))
  }
  return task.is.extraction || task.is.summary || hasFacts ? checkAnchors(written, text, sourceParts, source) : passed
}

/** Each figure once with its unit and the word in front of it, and not more than can be compared with each other. */
function distinct(numbers: readonly TextNumber[], text: string): TextNumber[] {
  const unique = new Map<string, TextNumber>()
  for (const number of numbers) {
    if (unique.size >= MAX_COMPARED) break
    const key = `${number.text} ${unitOf(text, number)} ${anchorOf(text, number) ?? ''}`
    if (!unique.has(key)) unique.set(key, number)
  }
  return [...unique.values()]
}

const MAX_COMPARED = 250

/** Numbers of lists, of steps and of versions in names are no claims. */
const isLabel = (text: string, { start, end }: TextNumber) => {
  const lineStart = text.lastIndexOf('\n', start - 1) + 1
  return (
    (/^[\s*#(]*$/.test(text.slice(lineStart, start)) && /^[.):]/.test(text.slice(end, end + 1))) ||
    /(?:step|option|phase|schritt|étape|paso|tip|no\.|#)\s?$/i.test(text.slice(Math.max(0, start - 9), start)) ||
    /[A-Za-z]$/.test(text.slice(Math.max(0, start - 1), start))
  )
}

/** Differences, sums, shares and changes of two figures of the source. */
function follows(number: TextNumber, values: readonly number[], percents: readonly number[], text: string): boolean {
  const isRough = isRoughIn(text, number)
  const fits = (value: number) =>
    standsFor(number, value, isRough) ||
    (number.isPercent && Math.abs(number.values[0]! - Math.abs(value)) <= 0.5000001 * 10 ** -number.decimals)
  if (fits(values.reduce((sum, value) => sum + value, 0))) return true
  for (const a of values)
    for (const b of values) {
      if (a === b) continue
      if (fits(a + b) || fits(a - b) || fits(a * b)) return true
      if (percents.includes(b) && [(a * b) / 100, a * (1 - b / 100), a * (1 + b / 100)].some(fits)) return true
      if (b && number.isPercent && (fits((100 * a) / b) || fits((100 * (a - b)) / b))) return true
      if (b && Number.isInteger(a / b) && fits(a / b)) return true
    }
  return false
}

/** Words that a difference or a sum stands with. */
const COMPARED =
  /\b(?:fewer|more|less|left|remain\w{0,3}|by(?= [$€£]?\d)|difference|total|together|combined|apart|gap|over|um|weniger|mehr|übrig|insgesamt|de plus|de moins|menos|más|restan?)\b/i

const CURRENCY = /[$€£¥]\s?$/
const UNIT = /^(?:\.(?= [A-Z]))?[\s-]{0,2}(?:(?:working|business|calendar|full|new) )?([$€£%°]|\p{L}{1,20})/u

const unitOf = (text: string, { start, end }: TextNumber): string => {
  if (CURRENCY.test(text.slice(Math.max(0, start - 2), start))) return 'money'
  const unit = UNIT.exec(text.slice(end, end + 24))?.[1]?.toLowerCase() ?? ''
  if (/^[$€£]$|^(?:eur|euros?|usd|dollars?|pounds?|gbp|chf|francs?)$/.test(unit)) return 'money'
  return unit.length > 3 ? unit.replace(/s$|en$/, '') : unit
}

const PLAIN_UNITS = new Set(
  'and or of to in the is for with on at from by und oder von zu im in mit bis et ou de à y o a e di per en een am pm uhr h per was were are that which will has have not but as if when between than more less only after before since until up out one you your we our i they it other different easy simple quick new'.split(
    ' ',
  ),
)

const findConflict = (
  number: TextNumber,
  text: string,
  sourceParts: readonly TextNumber[],
  source: string,
  isWritten: (other: TextNumber) => boolean,
): TextNumber | undefined => {
  const unit = unitOf(text, number)
  if (unit && !PLAIN_UNITS.has(unit)) {
    const same = sourceParts.filter(
      (other) =>
        unitOf(source, other) === unit && (unit === 'money' || unit === '%' || isMeasure(unit) || isCounted(unit)),
    )
    // The figure that is missing in the answer is the one that was replaced.
    const replaced = same.find((other) => !isWritten(other)) ?? same[0]
    if (replaced) return replaced
  }
  // Numbers of orders, tickets, rooms: the same length and nearly the same digits.
  const digits = number.text.replace(/\D/g, '')
  // Years are seldom mistyped; a text may speak of others.
  const isYear = /^(?:1[5-9]|20)\d\d$/.test(digits)
  if (digits.length >= 4 && !number.isWord && !isYear)
    return sourceParts.find((other) => {
      const otherDigits = other.text.replace(/\D/g, '')
      return otherDigits.length === digits.length && otherDigits !== digits && isNear(digits, otherDigits)
    })
  return undefined
}

/** A figure of the source that has one measure there and another here, where the source has that measure with another figure. */
function hasOtherUnit(number: TextNumber, text: string, sourceParts: readonly TextNumber[], source: string): boolean {
  const unit = unitOf(text, number)
  if (number.isWord || !unit || !HARD_UNITS.test(unit)) return false
  const same = sourceParts.filter((other) => other.values.some((value) => number.values.includes(value)))
  const units = same.map((other) => unitOf(source, other))
  return (
    same.length > 0 &&
    units.every((other) => HARD_UNITS.test(other) && other !== unit) &&
    sourceParts.some((other) => !same.includes(other) && unitOf(source, other) === unit)
  )
}

const HARD_UNITS =
  /^(?:km|kg|m|cm|g|l|ml|%|money|million\w{0,2}|billion|mio|days?|weeks?|months?|years?|hours?|minutes?|tag\w{0,2}|woche\w?|monat\w{0,2}|jahr\w{0,2}|kwh|mwh|°|degrees?|metres?|meters?|miles?)$/

const isMeasure = (unit: string) =>
  /^(?:day|week|month|year|hour|minute|mile|km|kg|tag|woche|monat|jahr|stunde|jour|semaine|mois|an|heure|día|semana|mes|año|hora|giorno|settimana|mese|anno|dia|ano|dag|week|maand|jaar|january|february|march|april|may|june|july|august|september|october|november|december|januar|februar|märz|mai|juni|juli|oktober|dezember|janvier|février|mars|avril|juin|juillet|août|septembre|octobre|novembre|décembre|million|billion|percent|prozent|people|member|employee|guest|seat|room|floor|copy|copie|page|point|gram|litre|liter|volt|watt|gb|mb|tb|degree|bedroom|litros|gramos|vote|store|shop|student)$/.test(
    unit,
  )

/** Things that are counted: a noun of some length, not a word that may stand behind any figure. */
const isCounted = (unit: string) => unit.length >= 6 && !/(?:ing|ed|ly|er|est)$/.test(unit) && !PLAIN_UNITS.has(unit)

const isNear = (a: string, b: string) => {
  let different = 0
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) different++
  return different <= 2 || [...a].sort().join('') === [...b].sort().join('')
}

const FUNCTION = new Set(
  'in on at of by to the a an for from is was were are be been with until since am im um von vom zu der die das den dem auf bei en de du le la les à au el los del al il lo di da no na em o os and und et y e about around only just exactly over under than as per no nr n order'.split(
    ' ',
  ),
)

/** The same word in front of another figure: "built in 1911" where the text says "built in 1874". */
function checkAnchors(
  written: readonly TextNumber[],
  text: string,
  sourceParts: readonly TextNumber[],
  source: string,
): Finding {
  const anchors = new Map<string, Set<number>>()
  for (const number of sourceParts) {
    if (number.isWord) continue
    const anchor = anchorOf(source, number)
    if (anchor) anchors.set(anchor, (anchors.get(anchor) ?? new Set()).add(number.values[0]!))
  }
  for (const number of written) {
    if (number.isWord || number.values[0]! < 13) continue
    const anchor = anchorOf(text, number)
    const values = anchor ? anchors.get(anchor) : undefined
    if (!values || number.values.some((value) => values.has(value))) continue
    const digits = String(Math.trunc(Math.abs(number.values[0]!))).length
    if (![...values].some((value) => String(Math.trunc(Math.abs(value))).length === digits)) continue
    // In the source the figure has a word of its own in front of it, and another one.
    const places = sourceParts.filter((other) => !other.isWord && other.values[0] === number.values[0])
    if (places.length > 0 && places.every((place) => anchorOf(source, place) !== undefined))
      return doubt(failed(`${clip(number.text, 20)} belongs to something else in the text given.`))
  }
  return passed
}

/** The verb or noun directly in front of a figure, over at most two function words. */
function anchorOf(text: string, { start }: TextNumber): string | undefined {
  const clause = text
    .slice(Math.max(0, start - 48), start)
    .split(/[.,;:!?\n()"“”]/)
    .at(-1)!
  const words = wordsOf(clause)
  for (let i = words.length - 1; i >= Math.max(0, words.length - 3); i--) {
    const word = words[i]!
    if (FUNCTION.has(word)) continue
    return word.length >= 4 && !/^\d/.test(word) ? word.slice(0, 7) : undefined
  }
  return undefined
}

const WEEKDAYS =
  'monday tuesday wednesday thursday friday saturday sunday montag dienstag mittwoch donnerstag freitag samstag sonntag lundi mardi mercredi jeudi vendredi samedi dimanche lunes martes miércoles jueves viernes sábado domingo lunedì martedì mercoledì giovedì venerdì sabato domenica maandag dinsdag woensdag donderdag vrijdag zaterdag zondag måndag tisdag onsdag torsdag fredag lördag söndag mandag tirsdag lørdag poniedziałek wtorek środa czwartek piątek pondělí úterý středa čtvrtek pátek'.split(
    ' ',
  )
const MONTHS =
  'january february march april june july august september october november december januar februar märz juni juli oktober dezember janvier février avril juin juillet août septembre octobre novembre décembre enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre'.split(
    ' ',
  )

/** A weekday or a month that the source does not name, where it names others. */
function checkDays(task: ReadTask, output: ReadText, source: string): Finding {
  if (
    task.is.translation ||
    task.is.creative ||
    !/^(?:writer|support|researcher|default)/.test(task.agentId) ||
    (task.agentId === 'default' && task.material === '') ||
    isComputing(task)
  )
    return notApplicable
  // "Mon-Fri" names days in its own way.
  if (/\b(?:mon|tue|wed|thu|fri|sat|sun|mo|di|mi|do|fr|sa|so)\.?\s?[-–]/i.test(source)) return notApplicable
  const sourceParts = new Set(wordsOf(source))
  const written = new Set(output.words)
  for (const names of [WEEKDAYS, MONTHS]) {
    const inSource = names.filter((name) => sourceParts.has(name))
    const other = inSource.length > 0 ? names.find((name) => written.has(name) && !sourceParts.has(name)) : undefined
    const keepsOne = inSource.some((name) => written.has(name))
    if (
      other &&
      !keepsOne &&
      !/\b(?:next|following|after|before|comes|tomorrow|plan|schedule|week|calendar)\b/i.test(task.request)
    )
      return unlessCopied(task, failed(`${clip(other, 20)} is not in the text given.`))
  }
  return passed
}

const TITLES =
  /\b(?:Mr|Mrs|Ms|Miss|Dr|Herr|Herrn|Frau|Monsieur|Madame|Mme|Señora?|Sr|Sra|Signora?|Mevrouw|Meneer)\.?\s(\p{Lu}[\p{L}'-]{1,30})/gu

/** Somebody is addressed or named who is not in the task. */
function checkNames(task: ReadTask, output: ReadText, source: string): Finding {
  if (!/^(?:writer|support|comedian)/.test(task.agentId) && !(task.is.summary && task.material)) return notApplicable
  if ((task.is.creative && !FOR_SOMEBODY.test(task.request)) || task.is.translation) return notApplicable
  const sourceParts = source.toLowerCase()
  const addressed = [...output.raw.matchAll(TITLES)].map((match) => match[1]!)
  const greeting =
    /^[\s*]*(?:Hi|Hello|Hey|Dear|Goodbye|Farewell|Bye|Happy birthday|Congratulations|Hallo|Liebe[rs]?|Bonjour|Chère?|Hola|Querid[oa]|Ciao|Gentile|Beste)\s(?:Mr\.?|Mrs\.?|Ms\.?|Dr\.?)?\s?(\p{Lu}[\p{L}'-]{2,30})\s?[,!:\n]/u.exec(
      output.raw,
    )?.[1]
  const isGeneric = (name: string) =>
    /^(?:All|Team|Madame|Monsieur|Mesdames|Messieurs|Señora?|Señor|Signora?|Signore|Frau|Herr|Sirs?|Guest|Reader|Applicant|Client|Buyer|Patient|Student|Parent|Resident|Shopper|Traveller|Volunteers?|Supporters?|Employees?|Staff|Board|Neighbors?|Customers|Customer|Sir|Madam|Everyone|Neighbou?rs?|Friends?|Colleagues?|Readers?|Valued|There|Hiring|Manager|Kund\w{0,5}|Client\w{0,2}|Damen|Nachbar\w{0,3}|Bewohner\w{0,3}|Haus\w{0,12}|Kolleg\w{0,6}|Guests?|Members?|Parents?|Residents?|Support|Tous|Todos|Equipo|Freunde|Gäste|Mieter\w{0,5}|Eltern|Landlord|Santa|Committee|Board|Folks|Students?|Users?|Tenants?|Subscribers?|Diary)$/u.test(
      name,
    )
  const names = [...addressed, ...(greeting ? [greeting] : [])].filter((name) => !isGeneric(name))
  if (names.length === 0) return notApplicable
  const hasNames = /\p{Lu}\p{Ll}{2,}/u.test(source.slice(1))
  const strange = names.find((name) => !sourceParts.includes(name.toLowerCase().replace(/'s$/, '')))
  return strange && hasNames ? failed('It names somebody who is not in the task.') : passed
}

/** "for Bartholomew who's off to Iceland": a joke for a person who is named. */
const FOR_SOMEBODY = /\b(?:for|to) (?:my \w{1,12} |our \w{1,12} |grandpa |grandma |uncle |aunt )?\p{Lu}\p{Ll}{2,20}\b/u

/** "We can't launch in July or August" and then "Launch in August". */
function checkExclusions(task: ReadTask, output: ReadText): Finding {
  if (!/^(?:strategist|default|writer|support)/.test(task.agentId)) return notApplicable
  const excluded = new Set<string>()
  for (const sentence of sentencesOf(task.full.raw.slice(0, 6_000)))
    for (const clause of sentence.split(/,(?! ?(?:or|nor|and)\b)|;| but | aber /i)) {
      if (
        !/\b(?:can(?:no|')?t|can ?not|cannot|not|never|no|avoid|except|excluding|without|unavailable|closed|kein\w{0,2}|nicht|nie|ohne|geschlossen|jamais|sauf|sans|nunca|excepto|sin|mai|tranne|senza)\b/i.test(
          clause,
        )
      )
        continue
      for (const word of wordsOf(clause)) if (MONTHS.includes(word) || WEEKDAYS.includes(word)) excluded.add(word)
    }
  if (excluded.size === 0) return notApplicable
  const opening = sentencesOf(output.raw).slice(0, 2)
  const isDenied = (sentence: string) =>
    /\b(?:not|no|never|avoid|can't|cannot|isn't|out|after|before|rule|except|unavailable|closed|since|because|nicht|kein\w{0,2}|nach|vor|pas|jamais|après|avant|nunca|después|antes|blocked|excluded|past|until|impossible|won't)\b/i.test(
      sentence,
    )
  const chosen = opening.find(
    (sentence) =>
      !isDenied(sentence.split(/[:;,–—]/, 1)[0]!) &&
      wordsOf(sentence.split(/[:;,–—]/, 1)[0]!).some((word) => excluded.has(word)),
  )
  return chosen ? failed('It chooses what the task rules out.') : passed
}

/** The task gives a price that the answer lacks, and the answer says that it is free. */
function checkFree(task: ReadTask, output: ReadText, source: string): Finding {
  if (
    !/^(?:writer|support)/.test(task.agentId) ||
    /\bfree\b|\bkostenlos|\bgratuit|\bgratis/i.test(source) ||
    !/\bfree\b|\bkostenlos|\bgratuit|\bgratis/i.test(output.raw)
  )
    return notApplicable
  const prices = readNumbers(source).filter(
    (number) =>
      unitOf(source, number) === 'money' ||
      /\b(?:costs?|price|fee|charge)\b.{0,20}$/i.test(source.slice(Math.max(0, number.start - 30), number.start)),
  )
  if (prices.length === 0) return notApplicable
  const written = readNumbers(output.raw, { words: true })
  return prices.some(({ values }) => written.some((number) => standsFor(number, values[0]!)))
    ? passed
    : failed('It says free where the task gives a price.')
}

const GRANTS =
  '(?:refund\\w{0,3}|exchange\\w{0,3}|returns?|replacement|discount|voucher|upgrade|compensation|cancel\\w{0,8}|money back)'
const NO_GRANT = new RegExp(
  `\\b(?:no|non-?|without|not? (?:offer|give|grant|accept|allow|possible)|cannot be|can't be|never|are not|is not|final,? no|exclud\\w{1,3}) ?(?:\\w{1,12} ){0,2}${GRANTS}|\\b${GRANTS} (?:\\w{1,12} ){0,2}(?:is|are) (?:not|excluded|impossible)`,
  'i',
)
const PROMISE = new RegExp(
  `\\b(?:we'll|we will|i'll|i will|i've|we've|i have|we have|happy to|glad to|you'll (?:get|receive)|you will (?:get|receive)|your|a full|full) ?(?:\\w{1,12} ){0,5}${GRANTS}`,
  'i',
)

/** The rules that the task gives grant nothing, and the answer promises it. */
function checkPolicy(task: ReadTask, output: ReadText): Finding {
  if (
    !task.agentId.startsWith('support') ||
    !/\b(?:policy|rules?|terms|we (?:do not|don't|cannot|can't|never))\b/i.test(task.full.raw)
  )
    return notApplicable
  const rule = sentencesOf(task.full.raw.slice(0, 6_000)).find(
    (sentence) =>
      NO_GRANT.test(sentence) &&
      !/\b(?:after|unless|except|if|within|before|until|for the|without (?:a )?receipt)\b/i.test(sentence),
  )
  if (!rule) return notApplicable
  const sentences = sentencesOf(output.raw)
  const denies = sentences.some(
    (sentence) =>
      /\b(?:not|no|cannot|can't|unable|unfortunately|sorry|afraid|non-)\b/i.test(sentence) &&
      new RegExp(GRANTS, 'i').test(sentence),
  )
  const promises = sentences.some(
    (sentence) =>
      PROMISE.test(sentence) &&
      !/\b(?:not|no|cannot|can't|unable|unfortunately|instead|request|ask\w{0,3}|wish)\b/i.test(sentence),
  )
  return promises && !denies ? failed('It promises what the rules given exclude.') : passed
}

/** What a writer or a support agent was told is in the text: figures, codes, days, names. */
export function checkFactsUsed(task: ReadTask, output: ReadText): Finding {
  if (
    !/^(?:writer|support)/.test(task.agentId) ||
    task.is.summary ||
    task.is.extraction ||
    task.is.proofreading ||
    task.is.translation ||
    task.is.creative ||
    task.is.template ||
    task.isVague
  )
    return notApplicable
  if (
    task.full.words.length > 160 ||
    /\b(?:classif\w{1,5}|label|triage|outline|headline|title|subject line|categor\w{1,4}|review|feedback|edit|improve|rewrite|shorten|paraphrase|ideas?)\b/i.test(
      task.request,
    )
  )
    return notApplicable
  const facts = hardFacts(task)
  if (facts.length < 3) return notApplicable
  const text = output.raw.toLowerCase()
  const numbers = readNumbers(output.raw, { words: true })
  const isUsed = (fact: string) => {
    if (text.includes(fact)) return true
    const [value] = readNumbers(fact, { words: true })
    return value !== undefined && /^\d/.test(fact) && numbers.some((number) => standsFor(number, value.values[0]!))
  }
  const used = facts.filter(isUsed).length
  const isMissed = used === 0 || (facts.length >= 4 && used * 4 <= facts.length)
  if (!isMissed) return passed
  const fault = failed(`${used} of the ${facts.length} facts that the task gives are in it.`)
  return used === 0 ? fault : doubt(fault)
}

/** Of the rules that a task gives, an answer needs those that fit its case only. */
const withoutRules = (text: string) =>
  text
    .split('\n')
    .filter(
      (line) =>
        !/^\W{0,4}(?:our )?(?:\w{1,16} )?(?:polic(?:y|ies)|rules?|terms|guidelines|faq|regeln?|conditions)\b[^:\n]{0,30}:/i.test(
          line,
        ),
    )
    .join('\n')

/** Figures, codes, days, months and names of the task; not how long or how many it wants. */
function hardFacts(task: ReadTask): string[] {
  const text = withoutRules(task.full.raw)
  const facts = new Set<string>()
  const lengths = requestedLengths(text).flatMap(({ text: spec }) => spec.match(/\d+/g) ?? [])
  const counts = new Set([...requestedCounts(task).map(({ count }) => String(count)), ...lengths])
  for (const match of text.matchAll(/\b\d+(?:[.,:]\d+)*\b/g))
    if (!counts.has(match[0]) && facts.size < 20) facts.add(match[0].toLowerCase())
  for (const match of text.matchAll(/\b(?=[\w-]*\d)(?=[\w-]*[A-Z])[A-Z][A-Z0-9-]{3,20}\b/g))
    if (facts.size < 20) facts.add(match[0].toLowerCase())
  for (const word of new Set(wordsOf(text))) if (WEEKDAYS.includes(word) || MONTHS.includes(word)) facts.add(word)
  // Names in the middle of a sentence. German writes every noun with a capital.
  if (task.language?.language === 'en')
    for (const match of text.matchAll(/(?<=[\p{Ll},] )(?:Mr |Mrs |Ms |Dr )?(\p{Lu}\p{Ll}{2,20})\b/gu))
      if (
        facts.size < 20 &&
        !/^(?:English|German|French|Spanish|Italian|Linkedin|Twitter|Instagram|Policy|Customer|User)$/i.test(match[1]!)
      )
        facts.add(match[1]!.toLowerCase())
  return [...facts]
}

/** Hours of a day have a check of their own. */
const isDay = (word: string) => WEEKDAYS.includes(word.replace(/s$/, '')) || MONTHS.includes(word)

type Binding = { name: string; noun: string; value: number }

const BINDING_STOP = new Set(
  'the and for with has have had was were are is its his her of to in on at by from will would can only just about over than more less who which that this a an as it they he she not no costs cost since until between desde hasta las los del para por con hacia der die das den dem und mit bis von vom zum zur seit ab uhr les des depuis jusqu pour avec entre'.split(
    ' ',
  ),
)

/** Which figure belongs to which name and noun: "Porto rent 700", "Braga has 2 rivals". The name is the last one before the figure in its part of the sentence. */
function bindingsOf(text: string, separators: RegExp): Binding[] {
  const bindings: Binding[] = []
  let name: string | undefined
  for (const part of text.slice(0, 4_000).split(separators)) {
    const names = [...part.matchAll(/(?<![\p{L}\d])\p{Lu}[\p{L}'’-]{1,20}/gu)].filter(
      ({ 0: word }) => !BINDING_STOP.has(word.toLowerCase()) && !isDay(word.toLowerCase()),
    )
    for (const number of readNumbers(part)) {
      const before = names.filter(({ index }) => index < number.start).at(-1)
      if (before) name = before[0].toLowerCase()
      if (!name || bindings.length >= 100) continue
      const left = wordsOf(part.slice(Math.max(0, number.start - 24), number.start)).filter(
        (word) => !BINDING_STOP.has(word) && word !== name && !/^\d/.test(word),
      )
      const right = wordsOf(part.slice(number.end, number.end + 20)).filter((word) => !BINDING_STOP.has(word))
      for (const noun of [left.at(-1), right[0]])
        if (noun && noun.length > 2) bindings.push({ name, noun: noun.slice(0, 5), value: number.values[0]! })
    }
    if (names.length > 0) name = names.at(-1)![0].toLowerCase()
  }
  return bindings
}

/** A figure that the source gives to one name stands with another; and what one does in the source the other does in the answer. */
function checkBindings(task: ReadTask, output: ReadText, source: string): Finding {
  if (task.is.translation || task.is.creative || task.code) return notApplicable
  const sourceValues = bindingsOf(source, /[.;\n,"“”]/)
  const written = sourceValues.length === 0 ? [] : bindingsOf(output.raw, /[.;\n]/)
  const conflict = written.find(({ name, noun, value }) => {
    const own = sourceValues.filter((binding) => binding.name === name && binding.noun === noun)
    const others = sourceValues.filter((binding) => binding.name !== name && binding.noun === noun)
    return (
      own.length > 0 &&
      own.every((binding) => binding.value !== value) &&
      others.some((binding) => binding.value === value)
    )
  })
  if (conflict) return failed('A figure stands with another name than in the text given.')
  if (task.language?.language !== 'en') return notApplicable
  return findSwap(actionsOf(source), actionsOf(output.raw))
    ? failed('What one does in the text given, another does in the answer.')
    : notApplicable
}

type Action = { name: string; verb: string }

/** Common words with a capital at the start of a sentence are no names. */
const RARE = 4_000

/** A name and the first word of meaning after it. */
function actionsOf(text: string): Action[] {
  const actions: Action[] = []
  for (const part of text.slice(0, 4_000).split(/[.;:,\n"“”«»()]|\bwhile\b|\bwhereas\b|\bbut\b|\band\b/)) {
    const names = [...part.matchAll(/(?<![\p{L}\d])\p{Lu}\p{Ll}{2,20}(?: \p{Lu}\p{Ll}{2,20})?/gu)].filter(
      ({ 0: name }) => (rankOf(name.toLowerCase().split(' ').at(-1)!) ?? RARE) >= RARE,
    )
    for (const [index, match] of names.entries()) {
      const end = match.index + match[0].length
      const verb = wordsOf(part.slice(end, Math.min(end + 40, names[index + 1]?.index ?? part.length))).find(
        (word) => !BINDING_STOP.has(word) && word.length > 3 && !/^\d/.test(word),
      )
      if (verb && actions.length < 60)
        actions.push({ name: match[0].toLowerCase().split(' ').at(-1)!, verb: verb.slice(0, 5) })
    }
  }
  return actions
}

/** Two names have changed their places: each does in the answer what only the other does in the source. */
function findSwap(sourceValues: readonly Action[], written: readonly Action[]): boolean {
  const doers = (verb: string) => new Set(sourceValues.filter((action) => action.verb === verb).map(({ name }) => name))
  const isKnown = (name: string) => sourceValues.some((action) => action.name === name)
  return written.some(({ name, verb }) => {
    const names = doers(verb)
    return names.size === 1 && !names.has(name) && isKnown(name)
  })
}

/** "394" where the text given has "349": the same digits in another order, and the right ones nowhere. */
function checkSwappedDigits(task: ReadTask, output: ReadText, source: string): Finding {
  if (!/^(?:writer|support|researcher|comedian)/.test(task.agentId) || task.is.translation || isComputing(task))
    return notApplicable
  const sourceValues = readNumbers(source).filter(({ text }) => /^\d{3,}$/.test(text))
  const swapped = readNumbers(output.raw).find(
    ({ text }) =>
      /^\d{3,}$/.test(text) &&
      !source.includes(text) &&
      sourceValues.some(
        (other) =>
          other.text.length === text.length && sorted(other.text) === sorted(text) && !output.raw.includes(other.text),
      ),
  )
  return swapped
    ? failed(`${clip(swapped.text, 20)} has the digits of the text given in another order.`)
    : notApplicable
}

/** Clock times of the answer, where the source gives one or two and the answer has none of them. */
function checkTimes(task: ReadTask, output: ReadText, source: string): Finding {
  if (!/^(?:writer|support)/.test(task.agentId) || task.is.creative || task.is.translation || isComputing(task))
    return notApplicable
  const given = timesOf(source)
  const written = timesOf(output.raw)
  if (given.length === 0 || given.length > 2 || written.length === 0 || /\bUTC|\bGMT|time ?zone/i.test(source))
    return notApplicable
  const isGiven = (time: number) => given.some((other) => other === time || (other + 720) % 1440 === time)
  return written.some(isGiven) ? passed : failed('It gives another time than the text given.')
}

const PROHIBITS =
  /\b(?:must not|may not|mustn't|cannot|can't|not (?:allowed|permitted)|no longer|forbidden|prohibited|never)\b/i
const NEGATES =
  /\b(?:not|no|never|n't|\w{2,8}n't|cannot|forbidden|prohibited|banned|off[- ]limits|avoid|refrain|without|keep (?:out|off|clear)|closed|stop|only|except|unless|nobody|none|neither|illegal|against|denied|impossible|unable|refuse\w?)\b/i

/** A sentence that forbids something is put in other words, and nothing in them forbids it. */
function checkPermission(task: ReadTask, output: ReadText): Finding {
  if (
    task.is.translation ||
    !/\b(?:rewrite|rephrase|simplif\w{1,3}|paraphrase|more simply|plain (?:english|language)|in other words|reword|shorten|summari[sz]e)\b/i.test(
      task.request,
    )
  )
    return notApplicable
  const sentences = sentencesOf(task.material)
  if (sentences.length !== 1 || !PROHIBITS.test(task.material)) return notApplicable
  return !NEGATES.test(output.raw) && /\b(?:may|can|allowed|free to|welcome to)\b/i.test(output.raw)
    ? failed('It allows what the text given forbids.')
    : passed
}

const sorted = (text: string) => [...text].sort().join('')

/** Days of the week in Chinese and Japanese: those of the answer are those of the task. */
function checkChineseDays(task: ReadTask, output: ReadText, source: string): Finding {
  const daysIn = (text: string) =>
    new Set(
      [...text.matchAll(/(?:周|星期|礼拜)([一二三四五六日天])|([月火水木金土日])曜/gu)]
        .slice(0, 40)
        .map((match) => match[1] ?? match[2]!),
    )
  const sourceValues = daysIn(source)
  if (sourceValues.size === 0 || task.is.translation) return notApplicable
  const strange = [...daysIn(output.raw)].some((day) => !sourceValues.has(day))
  return strange && sourceValues.size <= 2 ? failed('It names another day than the text given.') : passed
}
