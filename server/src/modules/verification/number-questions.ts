import { readAnswer } from './answer-numbers.ts'
import { checkCodeValue, checkCountOf, checkSpread, checkVariance, checkWordCount } from './counted-figures.ts'
import { combine, doubt, type Finding } from './finding.ts'
import { checkInWords, checkNotation } from './notation.ts'
import { checkNext, checkPrime, checkSeries, checkTrend } from './number-series.ts'
import type { ReadTask } from './task.ts'
import type { ReadText } from './text.ts'
import {
  checkBudget,
  checkDifference,
  checkFormulas,
  checkParts,
  checkPerHundred,
  checkSomeOf,
} from './trade-formulas.ts'

/** Questions about numbers whose answer can be computed from the task alone. */
export function checkNumberQuestions(task: ReadTask, output: ReadText): Finding {
  const answer = readAnswer(output)
  return combine([
    checkNotation(task, output),
    checkPrime(task, output),
    checkSeries(task, answer),
    checkNext(task, answer),
    doubt(checkTrend(task, output)),
    doubt(checkCountOf(task, answer)),
    checkSpread(task, answer),
    checkVariance(task, answer),
    checkFormulas(task, answer),
    doubt(checkPerHundred(task, answer)),
    doubt(checkParts(task, answer)),
    doubt(checkBudget(task, output)),
    doubt(checkCodeValue(task, output)),
    checkWordCount(task, output),
    doubt(checkSomeOf(task, answer)),
    doubt(checkDifference(task, answer)),
    checkInWords(task, output),
  ])
}
