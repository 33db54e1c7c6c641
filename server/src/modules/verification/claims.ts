import { type Answer, cellNumber, readAnswer, sumOf, TOTAL, tablesOf } from './answer-numbers.ts'
import { parseExpression } from './arithmetic.ts'
import { combine, type Finding, failed, notApplicable, passed } from './finding.ts'
import { isRoughIn, readNumbers, standsFor, type TextNumber } from './numbers.ts'
import type { ReadTask } from './task.ts'
import type { ReadText } from './text.ts'

/** What the answer itself claims to have computed: its equations and the totals of its tables. What it quotes it does not claim. */
export const checkClaims = (task: ReadTask, output: ReadText): Finding =>
  combine([checkEquations(task, readAnswer(output)), checkTables(output)])

/** "24 × 250 = 6,000": both sides are numbers and signs only. */
function checkEquations(task: ReadTask, { text }: Answer): Finding {
  let isChecked = false
  let quoted: ReadonlySet<string> | undefined
  for (const equation of readEquations(text)) {
    const { sign, left, right, claimed } = equation
    quoted ??= new Set(
      [task.full.raw, ...task.context].flatMap((taskValues) => readEquations(taskValues).map(keyOfEquation)),
    )
    if (quoted.has(keyOfEquation(equation))) continue
    if (/^\s{0,2}[%\s]{0,2}[+*/×÷^−]/.test(right.slice(claimed.end, claimed.end + 4))) {
      // "1/2 + 1/3 = 5/6": both sides are calculations.
      const other = parseExpression(right.split(/[=≈\n]/, 1)[0]!, 'start')
      if (other && Math.abs(other.value - left.value) > 0.01 * Math.abs(left.value))
        return failed(`${left.text.trim()} is not ${other.text.trim()}.`)
      continue
    }
    if (/^\s?[-–]\s?\d/.test(right.slice(claimed.end))) continue
    isChecked = true
    const isRough = sign === '≈' || isRoughIn(right, claimed)
    const values = claimed.isPercent ? [left.value * 100, left.value] : [left.value]
    const isRounded = values.some(
      (value) =>
        standsFor(claimed, value, isRough) ||
        Math.abs(Math.abs(claimed.values[0]!) - Math.abs(value)) <=
          0.5000001 * 10 ** -claimed.decimals * (Number.isInteger(value) && claimed.decimals === 0 ? 0.02 : 1),
    )
    if (!isRounded) return failed(`${left.text.trim()} is not ${claimed.text}.`)
  }
  return isChecked ? passed : notApplicable
}

type Equation = { sign: string; left: { value: number; text: string }; right: string; claimed: TextNumber }

function readEquations(text: string): Equation[] {
  return [...text.matchAll(/[=≈]/g)].flatMap((match) => {
    const left = parseExpression(text.slice(Math.max(0, match.index - 80), match.index), 'end')
    const right = text.slice(match.index + 1, match.index + 40)
    const [claimed] = readNumbers(right)
    if (!left || !claimed || !/^[\s$€£*~]{0,4}[-−]?[\s$€£]{0,2}$/.test(right.slice(0, claimed.start))) return []
    return { sign: match[0], left, right, claimed }
  })
}

const keyOfEquation = ({ left, claimed }: Equation) => `${left.text.replace(/\s/g, '')}=${claimed.text}`
/** The rows and columns that a table calls its total add up. */
function checkTables(output: ReadText): Finding {
  let isChecked = false
  for (const { header, rows } of tablesOf(output)) {
    const totalRow = rows.length >= 3 && TOTAL.test(rows.at(-1)![0] ?? '') ? rows.at(-1)! : undefined
    const body = totalRow ? rows.slice(0, -1) : rows
    for (let column = 1; totalRow && column < header.length; column++) {
      const total = cellNumber(totalRow[column])
      const cells = body.map((row) => cellNumber(row[column]))
      if (
        !total ||
        cells.some((cell) => cell === undefined) ||
        /%|rate|price|average|avg|mean|share|per |margin|growth|preis|anteil|mittel/i.test(header[column]!) ||
        total.isPercent
      )
        continue
      isChecked = true
      if (
        !standsFor(total, sumOf(cells.map((cell) => cell!.values[0]!))) &&
        !standsFor(total, sumOf(cells.map((cell) => cell!.values.at(-1)!)))
      )
        return failed('A total in the table is not the sum of its column.')
    }
    const totalColumn = header.findIndex(
      (name, index) =>
        index > 1 &&
        index === header.length - 1 &&
        /^(?:row )?(?:totals?|sum|subtotal|amount|gesamt|summe|betrag|total|montant)$/i.test(name),
    )
    if (totalColumn < 0) continue
    for (const row of body) {
      const total = cellNumber(row[totalColumn])
      const cells = row
        .slice(1, totalColumn)
        .map(cellNumber)
        .flatMap((cell) => (cell ? [cell.values[0]!] : []))
      if (!total || cells.length < 2) continue
      isChecked = true
      const product = cells.reduce((result, value) => result * value, 1)
      if (!standsFor(total, sumOf(cells)) && !standsFor(total, product))
        return failed('A total in the table is not the sum of its row.')
    }
  }
  return isChecked ? passed : notApplicable
}
