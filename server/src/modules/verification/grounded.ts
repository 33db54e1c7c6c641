import { MONTH_NAMES, WEEKDAY_NAMES } from './day-names.ts'
import { checkExchangedNames } from './exchanged-names.ts'
import { combine, doubt, type Finding, failed, notApplicable, passed } from './finding.ts'
import { checkOnlyFigure, checkOnlyTime, checkSwappedDigits } from './source-figures.ts'
import type { ReadTask } from './task.ts'
import { clip, containsText, plainText, quotedPassages, type ReadText, splitFences, wordsOf } from './text.ts'

/** Figures, names, days and quotations of the answer against the text that the task gives. */
export const checkGrounded = (task: ReadTask, output: ReadText): Finding => {
  const source = [task.full.raw, ...task.context].join('\n')
  const isCopied = !task.is.translation && !isComputing(task)
  return combine([
    checkQuotes(task, output, source),
    checkNames(task, output, source),
    isCopied ? checkExchangedNames(task, output, source) : notApplicable,
    isCopied ? checkSwappedDigits(task, output, source) : notApplicable,
    isCopied ? checkOnlyFigure(task, output, source) : notApplicable,
    checkOnlyTime(task, output),
    isCopied ? doubt(checkDays(task, output, source)) : notApplicable,
  ])
}

const isComputing = (task: ReadTask) =>
  task.agentId.startsWith('analyst') ||
  task.agentId.startsWith('coder') ||
  /\b(?:sum|total|average|mean|median|calculate|compute|convert|forecast|how many|how much|percent|berechne|calcul\w{0,4}|what date|which date|until when|(?:weeks?|days?) (?:after|before|from (?:now|today|the|\d))|days? (?:window|trial)|pro rata|in words|the amount|what they get|prorated?|roman numerals)\b|-day\b/i.test(
    task.request,
  )

/** Lanes whose quotations are claims about the input. Writers and comedians may invent speech. */
const QUOTING = /^(?:researcher|analyst|support|default)/

function checkQuotes(task: ReadTask, output: ReadText, source: string): Finding {
  const isStrict = task.is.quotation && task.material !== ''
  if (!isStrict && !QUOTING.test(task.agentId)) return notApplicable
  if (/\b(?:fake|invented?|made-up|fictional|imaginary|funny) quot(?:e|ation)s?\b/i.test(task.request))
    return notApplicable
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

/** A weekday or a month that the source does not name, where it names others. */
function checkDays(task: ReadTask, output: ReadText, source: string): Finding {
  if (
    task.is.creative ||
    !/^(?:writer|support|researcher|default)/.test(task.agentId) ||
    (task.agentId === 'default' && task.material === '')
  )
    return notApplicable
  // "Mon-Fri" names days in its own way.
  if (/\b(?:mon|tue|wed|thu|fri|sat|sun|mo|di|mi|do|fr|sa|so)\.?\s?[-–]/i.test(source)) return notApplicable
  const sourceParts = new Set(wordsOf(source))
  const written = new Set(output.words)
  for (const names of [WEEKDAY_NAMES, MONTH_NAMES]) {
    const inSource = names.filter((name) => sourceParts.has(name))
    const other = inSource.length > 0 ? names.find((name) => written.has(name) && !sourceParts.has(name)) : undefined
    const keepsOne = inSource.some((name) => written.has(name))
    if (
      other &&
      !keepsOne &&
      !/\b(?:next|following|after|before|comes|tomorrow|plan|schedule|week|calendar)\b/i.test(task.request)
    )
      return failed(`${clip(other, 20)} is not in the text given.`)
  }
  return passed
}

const TITLES =
  /\b(?:Mr|Mrs|Ms|Miss|Dr|Herr|Herrn|Frau|Monsieur|Madame|Mme|Señora?|Sr|Sra|Signora?|Mevrouw|Meneer)\.?\s(\p{Lu}[\p{L}'-]{1,30})/gu

/** Somebody is addressed or named who is not in the task. */
function checkNames(task: ReadTask, output: ReadText, source: string): Finding {
  if (!/^(?:writer|support|comedian)/.test(task.agentId) && !(task.is.summary && task.material)) return notApplicable
  if ((task.is.creative && !FOR_SOMEBODY.test(task.request)) || task.is.translation) return notApplicable
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
  const sourceParts = source.toLowerCase()
  const strange = names.find((name) => !sourceParts.includes(name.toLowerCase().replace(/'s$/, '')))
  const people = strange ? peopleIn(source) : []
  if (people.length === 0) return passed
  const fault = failed('It names somebody who is not in the task.')
  // Who wrote to somebody of the task as well may have added one more person.
  return people.some((name) => output.raw.toLowerCase().includes(name)) ? doubt(fault) : fault
}

const NAMED =
  /(?:^|[\s"“(])(?:(?<=\b(?:reply|answer|letter|e?-?mail|cards?|message|notes?|text|write|respond|invitation|reminder|speech|toast|poem|limerick|joke|reference|review|thank-you|thanks|written|one|send|sent|brief|carta|antwort|schreiben)\b[^.,;:\n]{0,24}[\s"“(])(?:to|for|from|by|an|von|für|à|pour|para)|from:|to:|dear|hi|hello|thanks|regards|named?|called|customer|guest|client|tenant|colleague|patient|student|kundin|kunde|liebe[rs]?)[,:]?\s(\p{Lu}\p{Ll}{2,20})\b/giu

/** Those whom a text names by a title, or as whom it speaks to or of. */
const peopleIn = (text: string) =>
  [...text.matchAll(TITLES), ...text.matchAll(NAMED)]
    .slice(0, 60)
    .map((match) => match[1]!)
    .filter((name) => /^\p{Lu}/u.test(name) && !/^(?:Mrs?|Ms|Miss|Dr|Prof|Herrn?|Frau|Mme|Madame|Monsieur)$/.test(name))
    .map((name) => name.toLowerCase())
    .filter((name) => !MONTH_NAMES.includes(name) && !WEEKDAY_NAMES.includes(name))

/** "for Bartholomew who's off to Iceland": a joke for a person who is named. */
const FOR_SOMEBODY = /\b(?:for|to) (?:my \w{1,12} |our \w{1,12} |grandpa |grandma |uncle |aunt )?\p{Lu}\p{Ll}{2,20}\b/u
