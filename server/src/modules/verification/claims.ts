import { type Answer, cellNumber, readAnswer, sumOf, TOTAL, tablesOf } from './answer-numbers.ts'
import { parseExpression } from './arithmetic.ts'
import { evaluateCode } from './code-values.ts'
import { combine, type Finding, failed, notApplicable, passed } from './finding.ts'
import { isRoughIn, readNumbers, standsFor, type TextNumber } from './numbers.ts'
import type { ReadTask } from './task.ts'
import type { ReadText } from './text.ts'

/** What the answer itself claims to have computed: its equations and the totals of its tables. What it quotes it does not claim. */
export const checkClaims = (task: ReadTask, output: ReadText): Finding =>
  combine([
    checkEquations(task, readAnswer(output)),
    checkTables(output),
    checkStatement(output),
    checkProducts(output),
    checkComparisons(output),
    checkCodeClaims(task, output),
  ])

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
    if (/^\s?[-–]\s?\d/.test(right.slice(claimed.end)) || isOtherScale(right, claimed)) continue
    isChecked = true
    const isRough = sign === '≈' || isRoughIn(right, claimed)
    const readings = [left.value, ...groupedReading(left.text)]
    const values = claimed.isPercent ? readings.flatMap((value) => [value * 100, value]) : readings
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

/** "1.800 × 4" of a language that groups thousands with a point. */
const groupedReading = (text: string): number[] => {
  const grouped = text.replace(/(?<=\d)[.,](?=\d{3}(?!\d))/g, '')
  const other = grouped === text ? undefined : parseExpression(grouped, 'end')
  return other ? [other.value] : []
}

/** "= 3 650" and "= 2 लाख": the figure goes on, or a word that is not known here multiplies it. */
const isOtherScale = (right: string, { end }: TextNumber) =>
  /^[\s\u00a0]\d{3}\b|^\s?(?!\p{Script=Latin})\p{L}/u.test(right.slice(end))

type Equation = { sign: string; left: { value: number; text: string }; right: string; claimed: TextNumber }

function readEquations(text: string): Equation[] {
  return [...text.matchAll(/[=≈]/g)].flatMap((match) => {
    const left = parseExpression(text.slice(Math.max(0, match.index - 80), match.index), 'end')
    const right = text.slice(match.index + 1, match.index + 40)
    const [claimed] = readNumbers(right)
    // "175 200 / 48": the first figure begins before the expression.
    const isGrouped = left && /\d\s$/.test(text.slice(0, match.index).trimEnd().slice(0, -left.text.trim().length))
    if (!left || isGrouped || !claimed || !/^[\s$€£*~]{0,4}[-−]?[\s$€£]{0,2}$/.test(right.slice(0, claimed.start)))
      return []
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

const numberOfLine = (output: ReadText, name: RegExp): number | undefined => {
  const lines = output.lines.filter((line) => name.test(line.replace(/^[|\s*-]+/, '')))
  const numbers =
    lines.length === 1
      ? readNumbers(lines[0]!.replace(/\([^)]{0,60}\)/g, '')).filter(({ isPercent }) => !isPercent)
      : []
  return numbers.length === 1 ? numbers[0]!.values[0] : undefined
}

/** Lines named net, VAT and gross, or revenue, costs and profit, add up. */
function checkStatement(output: ReadText): Finding {
  const [net, tax, gross] = [
    /^(?:net|netto|subtotal)\b/i,
    /^(?:vat|tax|mwst|iva|tva|sales tax)\b/i,
    /^(?:gross|brutto|total|grand total|amount due)\b/i,
  ].map((name) => numberOfLine(output, name))
  if (net === undefined || tax === undefined || gross === undefined) return notApplicable
  return Math.abs(net + tax - gross) <= 0.011 ||
    output.lines.some((line) => /discount|shipping|tip|rabatt|deposit|fee/i.test(line))
    ? passed
    : failed('Net and tax do not add up to gross.')
}

/** "60 customers at 25 bring in 2,000": a number of things, a price and what they come to. */
function checkProducts(output: ReadText): Finding {
  for (const match of [
    ...output.raw.matchAll(
      /\b(\d[\d,.]{0,9}) (?:\p{L}{3,14} ){1,2}(?:at|à|@|x|×) [$€£]?(\d[\d,.]{0,9})(?: (?:each|apiece|\p{L}{3,6}))?(?: still| would| will| only| then)? (?:bring in|make|makes|comes? to|cost|costs|give|gives|is|are|yield|total) [$€£]?(\d[\d,.]{0,12})/giu,
    ),
  ].slice(0, 20)) {
    const [count, price, total] = match.slice(1).map((part) => readNumbers(part)[0])
    if (
      count &&
      price &&
      total &&
      !standsFor(total, count.values[0]! * price.values[0]!) &&
      !/^\s?(?:%|per\b)/.test(output.raw.slice(match.index + match[0].length, match.index + match[0].length + 5))
    )
      return failed(`${count.text} at ${price.text} are not ${total.text}.`)
  }
  return notApplicable
}

/** "Blue is faster: 6.4 a day against 6.8 for Red": the comparison goes against its own figures. */
function checkComparisons(output: ReadText): Finding {
  const match =
    /\bis (faster|higher|larger|bigger|more|better|cheaper|lower|smaller|slower|less)\b[^.:\n\d]{0,30}[:,(] ?[^.\d\n]{0,20}[$€£]?(\d[\d.,]{0,10})(?![\d%])[^.\n\d]{0,40}\b(?:against|versus|vs\.?|compared (?:with|to)|than)\b[^.\n\d]{0,20}[$€£]?(\d[\d.,]{0,10})/i.exec(
      output.raw,
    )
  const [a, b] = match ? [readNumbers(match[2]!)[0]?.values[0], readNumbers(match[3]!)[0]?.values[0]] : []
  if (!match || a === undefined || b === undefined || a === b) return notApplicable
  const word = match[1]!.toLowerCase()
  // Faster may be more a day or fewer seconds; better may be either.
  if (
    /^(?:better|slower)$/.test(word) ||
    (word === 'faster' && !/\b(?:per|a|an) (?:day|hour|minute|week)\b/i.test(output.raw))
  )
    return notApplicable
  return /^(?:cheaper|lower|smaller|less)$/.test(word) === a < b
    ? passed
    : failed('The comparison goes against its own figures.')
}

/** "`17 // 5` is 3.4": the value of an expression in code. */
function checkCodeClaims(task: ReadTask, output: ReadText): Finding {
  if (!task.agentId.startsWith('coder') || !/\bpython\b/i.test(task.full.raw)) return notApplicable
  for (const [, expression, digits] of [
    ...output.raw.matchAll(
      /`(-?\d[\d\s+*/%().-]{2,40})`? (?:is|gives|=|==|returns|evaluates to|→|->) `?(-?\d{1,12}(?:\.\d{1,8})?)/g,
    ),
  ].slice(0, 20)) {
    const value = evaluateCode(`\`${expression}\``)
    if (value !== undefined && Math.abs(Number(value) - Number(digits)) > 1e-3 * Math.max(1, Math.abs(Number(value))))
      return failed(`${expression!.trim()} is not ${digits}.`)
  }
  return notApplicable
}
