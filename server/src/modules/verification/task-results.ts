import { type Answer, readAnswer, shows } from './answer-numbers.ts'
import { parseExpression } from './arithmetic.ts'
import { checkCalendar } from './calendar.ts'
import { hasRightEquation } from './claims.ts'
import { checkConversions } from './conversions.ts'
import { combine, doubt, type Finding, failed, notApplicable, passed } from './finding.ts'
import { checkListOperations } from './list-operations.ts'
import { checkNamedFigures } from './named-figures.ts'
import { checkInWords, checkNotation } from './notation.ts'
import { checkPrime } from './number-questions.ts'
import { hasTwoFigures, readNumbers, standsFor } from './numbers.ts'
import { checkExtremes, checkOrder, checkShownOrder } from './ordering.ts'
import { checkPercentages } from './percentages.ts'
import { checkStatistics } from './statistics.ts'
import type { ReadTask } from './task.ts'
import { type ReadText, sentencesOf } from './text.ts'
import { checkTextQuestions } from './text-questions.ts'

/** What the task asks to compute, computed again: the answer has to have the result. */
export const checkResult = (task: ReadTask, output: ReadText): Finding => {
  if (task.is.translation) return notApplicable
  const answer = readAnswer(output)
  return combine([
    checkExpression(task, answer),
    checkConversions(task, answer),
    checkCalendar(task, answer),
    hasRightEquation(answer) ? doubt(checkPercentages(task, answer)) : checkPercentages(task, answer),
    checkStatistics(task, answer),
    checkOrder(task, output),
    checkShownOrder(task, output),
    checkListOperations(task, output),
    checkNamedFigures(task, output),
    checkTextQuestions(task, output),
    checkNotation(task, output),
    checkInWords(task, output),
    checkPrime(task, output),
    doubt(checkExtremes(task, output)),
  ])
}

const MAX_PLAIN_WORDS = 14

/** Words around a calculation that make nothing else of it. */
const QUESTION_WORDS =
  /^(?:hey|hi|hello|if|get|what|whats|s|is|the|a|of|and|to|by|how|much|many|does|do|make|makes|equal|equals|give|me|please|pls|just|only|number|answer|result|calculate|calc|compute|solve|evaluate|quick|quickly|tell|can|you|i|need|work|out|value|in|for|with|show|your|working|steps|step|round|rounded|decimal|decimals|places|place|one|two|nearest|whole|sum|total|add|subtract|from|divide|divided|multiply|multiplied|times|plus|minus|squared|power|square|root|product|difference|between|percent|per|cent|off|tip|usd|eur|gbp|euro|euros|dollar|dollars|was|ist|sind|wie|viel|wieviel|von|berechne|rechne|bitte|mal|durch|geteilt|und|combien|font|fait|est|calcule|calculez|calculer|fois|cuánto|cuanto|es|calcula|por|quanto|fa|fanno|calcola|di|de|hoeveel|rekenen|x)$/i
const MAX_OTHER_WORDS = 1

/** The task itself is a calculation: "13*12?", "what's 7 times 6", "15 % of 80". */
function checkExpression(task: ReadTask, answer: Answer): Finding {
  // "Is 0.1 + 0.2 == 0.3 true?" is answered with yes or no.
  if (task.code || task.full.words.length > 30 || /[=!]=|\byes or no\b|\btrue or false\b/i.test(task.full.raw))
    return notApplicable
  const request = task.request.toLowerCase()
  // "5 squared" and "the square root of 9" have one figure, every other calculation has two.
  if (!hasTwoFigures(request) && !/\d\s?squared|root of|wurzel|racine|raíz/.test(request)) return notApplicable
  const text = request
    .replace(/\b(?:times|multiplied by|mal|fois|por|per)\b/g, '*')
    .replace(/\bplus\b|\bund\b(?= ?\d)/g, '+')
    .replace(/\b(?:minus|moins|menos|meno)\b/g, '-')
    .replace(/\b(?:divided by|geteilt durch|divisé par|dividido (?:por|entre)|diviso)\b/g, '/')
    .replace(/(\d)\s?(?:squared)\b/g, '$1^2')
    .replace(/\bto the power of\b/g, '^')
    .replace(
      /\b(?:divide|multiply) (\d[\d.,]{0,12}) by (?=\d)/g,
      (words, first) => `${first} ${words[0] === 'd' ? '/' : '*'} `,
    )
    .replace(/\badd (\d[\d.,]{0,12}) (?:and|to) (?=\d)/g, '$1 + ')
    .replace(/\bsubtract (\d[\d.,]{0,12}) from (\d[\d.,]{0,12}(?<=\d))/g, '$2 - $1')
  const share =
    /(\d[\d.,]{0,12})\s?(?:%|percent|per cent|prozent|pour cent|por ciento)\s(?:of|von|de|di|van|av|do|da)\s[$€£]?\s?(\d[\d.,]{0,15})/.exec(
      text,
    )
  const root = /\b(?:square root of|wurzel (?:aus|von)|racine carrée de|raíz cuadrada de)\s(\d[\d.,]{0,12})/.exec(text)
  const difference = /\bdifference between [$€£]?(\d[\d.,]{0,12}) and [$€£]?(\d[\d.,]{0,12})/.exec(text)
  const product = /\bproduct of (\d[\d.,]{0,12}) and (\d[\d.,]{0,12})/.exec(text)
  let value: number | undefined
  if (share) value = (readNumbers(share[1]!)[0]!.values[0]! / 100) * readNumbers(share[2]!)[0]!.values[0]!
  else if (difference)
    value = Math.abs(readNumbers(difference[1]!)[0]!.values[0]! - readNumbers(difference[2]!)[0]!.values[0]!)
  else if (product) value = readNumbers(product[1]!)[0]!.values[0]! * readNumbers(product[2]!)[0]!.values[0]!
  else if (root) value = Math.sqrt(readNumbers(root[1]!)[0]!.values[0]!)
  else {
    const match = /[\d(][\d\s.,()+*/×÷x^−-]{2,80}/.exec(text)
    const expression = match ? parseExpression(match[0], 'start') : undefined
    // A range ("40-60"), a date or a telephone number is no calculation.
    const isCalculation =
      expression &&
      (/[*×÷^+]|\s[-−/]\s|\d\/\d/.test(expression.text) || /^\s*\d+\s?-\s?\d+\s*[=?]?\s*$/.test(text)) &&
      !/[-+−] ?\d[\d.,]{0,9} ?%|\d\s?\/\s?[\d.,]+\s?\/|\d{1,2}\/\d{1,2}\/\d{2,4}|\d{4}-\d{2}|\d{1,2}:\d{2}\b|\d\s?[-–]\s?\d+\s?(?:words|day|week|month|hour|minute|people|euro|%)|24\/7/.test(
        text,
      )
    if (
      isCalculation &&
      /\b(?:what|whats|wat|how much|calc|calculate|compute|result|solve|rechne|berechne|wie viel|combien|calculer?|calcula|calcule[zr]?|cuánto|calcola|quanto|wieviel|ist|is|evaluate|hoeveel|tel op|totaal|suma|somma|addiere)\b|[\d)]\s?=|\?/.test(
        `${text}${/^[\s\d.,()+*/×÷x^−=?-]+$/.test(text) ? '?' : ''}`,
      )
    )
      value = expression.value
  }
  if (value === undefined || !Number.isFinite(value)) return notApplicable
  // "144 divided by 12 is 14" shows 12 as well: then the last number of the first sentence with one is the result.
  const operands = readNumbers(task.request, { words: true }).flatMap(({ values }) => values)
  if (operands.includes(value)) {
    const sentence = sentencesOf(answer.text).find((part) => readNumbers(part, { words: true }).length > 0) ?? ''
    const last = readNumbers(sentence, { words: true }).at(-1)
    return last && (standsFor(last, value) || sentencesOf(answer.text).length > 1)
      ? passed
      : failed('The result is not the one that the calculation gives.')
  }
  // A calculation in a longer story may be only a part of it, or none.
  const others = task.full.words.filter((word) => /^\p{L}/u.test(word) && !QUESTION_WORDS.test(word))
  const isPlain =
    task.full.words.length <= MAX_PLAIN_WORDS && others.length <= MAX_OTHER_WORDS && !hasRightEquation(answer)
  return shows(answer, value, /\b(?:about|roughly|approx|estimate)/.test(text)) ||
    (Math.abs(value) < 1 && shows(answer, value * 100))
    ? passed
    : isPlain
      ? failed('The result is not the one that the calculation gives.')
      : doubt(failed('The result is not the one that the calculation gives.'))
}
