import { type Answer, cellNumber, NAMES_TOTAL, readAnswer, sumOf, TOTAL, tablesOf } from './answer-numbers.ts'
import { parseExpression } from './arithmetic.ts'
import { combine, type Finding, failed, notApplicable, passed } from './finding.ts'
import { isRoughIn, readNumbers, standsFor, type TextNumber } from './numbers.ts'
import { isSameAmount, plainUnits, type Quantity, quantitiesOf } from './quantities.ts'
import type { ReadTask } from './task.ts'
import { clip, type ReadText } from './text.ts'
import { cached } from './text-cache.ts'

/** What the answer itself claims to have computed: its equations and the totals of its tables. What it quotes it does not claim. */
export const checkClaims = (task: ReadTask, output: ReadText): Finding =>
  combine([
    checkEquations(task, readAnswer(output)),
    checkShares(readAnswer(output)),
    checkUnitEquations(task, readAnswer(output)),
    checkCalculationsWithUnit(readAnswer(output)),
    checkSumsOfTimes(readAnswer(output)),
    checkTables(output),
    checkListTotal(output),
    checkShareLines(output),
    checkStatement(output),
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
    // "= 2,150 € + 1,748 € = 3,898 €": the first figure is a part of what follows.
    if (/^\s?[$€£]\s?[-+*/×÷−]/.test(right.slice(claimed.end, claimed.end + 4))) continue
    if (/^\s{0,2}[%\s]{0,2}[+*/×÷^−]/.test(right.slice(claimed.end, claimed.end + 4))) {
      // "1/2 + 1/3 = 5/6": both sides are calculations.
      // "= 13 / 20" is a mark, and "1.500 + 2.400" of a language that groups with a point.
      if (standsFor(claimed, left.value)) continue
      const isGrouped = /\d\.\d{3}(?!\d)/.test(left.text) && groupedReading(left.text).length > 0
      if (isGrouped) continue
      const other = parseExpression(right.split(/[=≈\n]/, 1)[0]!, 'start')
      if (other && Math.abs(other.value - left.value) > 0.01 * Math.abs(left.value))
        return failed(`${left.text.trim()} is not ${other.text.trim()}.`)
      continue
    }
    if (/^\s?[-–]\s?\d/.test(right.slice(claimed.end)) || isOtherScale(right, claimed)) continue
    isChecked = true
    const isRough = sign === '≈' || isRoughIn(right, claimed)
    const readings = [left.value, ...groupedReading(left.text), ...percentAdded(left.text)]
    const values = claimed.isPercent ? readings.flatMap((value) => [value * 100, value]) : readings
    const isRounded = values.some(
      (value) =>
        standsFor(claimed, value, isRough) ||
        Math.abs(Math.abs(claimed.values[0]!) - Math.abs(value)) <=
          0.5000001 * 10 ** -claimed.decimals * (Number.isInteger(value) && claimed.decimals === 0 ? 0.02 : 1),
    )
    // "= 41.17…" breaks off and does not round.
    const isCut =
      /^(?:…|\.{3})/.test(right.slice(claimed.end)) &&
      values.some((value) => Math.abs(value - claimed.values[0]!) < 10 ** -claimed.decimals)
    if (!isRounded && !isCut) return failed(`${left.text.trim()} is not ${claimed.text}.`)
  }
  return isChecked ? passed : notApplicable
}

/** Whether the answer shows a calculation of its own, and its result follows. */
export const hasRightEquation = ({ text }: Answer) =>
  readEquations(text).some(({ left, claimed }) => standsFor(claimed, left.value))

/** "250 + 20 %" is 300. */
function percentAdded(text: string): number[] {
  const [, amount, sign, percent] =
    /(?:^|[^\d.,])(\d[\d.,]{0,11}) ?([+−–-]) ?(\d[\d.,]{0,5}) ?%$/.exec(text.trim()) ?? []
  const [a, p] = [amount, percent].map((digits) => (digits ? readNumbers(digits)[0]?.values[0] : undefined))
  return a === undefined || p === undefined ? [] : [a * (1 + ((sign === '+' ? 1 : -1) * p) / 100)]
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

const MAX_EQUATIONS = 200

const readEquations = (text: string): readonly Equation[] => cached('equations', text, findEquations)

/** "Ana 6.5 + Bo 4 + Cy 7 = 17.5": each figure with its name. */
const NAMED_TERM = /(?<=(?:^|[\n+:(] ?))\p{Lu}\p{L}{1,14} (?=\d[\d.,]{0,8} ?[+=])/gu

function findEquations(answerText: string): readonly Equation[] {
  if (!/[=≈]/.test(answerText)) return []
  const text = answerText.replaceAll(NAMED_TERM, '')
  return [...text.matchAll(/[=≈]/g)].slice(0, MAX_EQUATIONS).flatMap((match): Equation[] => {
    // The dash of a point in a list takes nothing away.
    const ahead = text
      .slice(Math.max(0, match.index - 80), match.index)
      .replace(/(?<=^|\n)\s{0,8}[-–•]\s(?=[^\n]*$)/, '')
    const left = parseExpression(ahead, 'end')
    const right = text.slice(match.index + 1, match.index + 40)
    const [claimed] = readNumbers(right)
    const near = text.slice(Math.max(0, match.index - 4), match.index)
    const end = match.index - (near.length - near.trimEnd().length)
    const before = left ? text.slice(0, end - left.text.trim().length).slice(-8) : ''
    // "175 200 / 48": the first figure begins before the expression. "√(0.2 / 4)": the expression is a part of one.
    const isPart = /(?:\d\s|(?:√|sqrt)\s?)$/.test(before)
    // "1,891 bed days (61 × 31) = 3.70": a remark in brackets, and a result of something else.
    const isRemark = left !== undefined && /^\([^()]*\)$/.test(left.text.trim()) && /\p{L} ?$/u.test(before)
    // "7:15 + 3:15 = 10:30" are times.
    const isTime = /\d:\d\d/.test(text.slice(Math.max(0, match.index - 12), match.index + 12))
    if (
      !left ||
      isPart ||
      isRemark ||
      isTime ||
      !claimed ||
      !/^[\s$€£*~]{0,4}[-−]?[\s$€£]{0,2}$/.test(right.slice(0, claimed.start))
    )
      return []
    return [{ sign: match[0], left, right, claimed }]
  })
}

const keyOfEquation = ({ left, claimed }: Equation) => `${left.text.replace(/\s/g, '')}=${claimed.text}`

const PART = '[$€£]?(\\d[\\d.,]{0,12}\\d|\\d)'
const OF = '(?: \\p{L}{2,14}){0,2} (?:out )?of (?:the |a total of )?'
const SHARE_AFTER = new RegExp(
  `(?<![\\d.,])${PART}${OF}${PART}(?: \\p{L}{2,14}){0,2}(?: ?= ?| ?≈ ?| \\(|, i\\.?e\\.?,? |, that is |, which is |, or )(?:about |roughly )?(\\d[\\d.,]{0,6}) ?%(?! ?(?:more|less|points|higher|lower))`,
  'giu',
)
const SHARE_BEFORE = new RegExp(
  `(?<![\\d.,])(\\d[\\d.,]{0,6}) ?%(?: \\(|: | = )${PART}${OF}${PART}(?![\\d.,]*\\d)`,
  'giu',
)

/** "45 of 790 = 6.3 %", "85 % (17 of 20)": a part, a whole and the share that is said to follow. */
function checkShares({ text }: Answer): Finding {
  if (!text.includes('%')) return notApplicable
  const claims = [
    ...[...text.matchAll(SHARE_AFTER)].map(([, part, whole, share]) => [part!, whole!, share!] as const),
    ...[...text.matchAll(SHARE_BEFORE)].map(([, share, part, whole]) => [part!, whole!, share!] as const),
  ].slice(0, 40)
  for (const [part, whole, share] of claims) {
    const [a, b, claimed] = [part, whole, `${share} %`].map((digits) => readNumbers(digits)[0])
    if (!a || !b || !claimed) continue
    const expected = a.values.flatMap((x) => b.values.map((y) => (100 * x) / y))
    const isRight = expected.some(
      (value) => Math.abs(claimed.values[0]! - value) <= Math.max(0.5000001 * 10 ** -claimed.decimals, 0.02 * value),
    )
    if (!isRight) return failed(`${part} of ${whole} is not ${share} %.`)
  }
  return claims.length > 0 ? passed : notApplicable
}

/** "90 minutes = 1.3 hours", "2 h 45 min = 2.45 h", "5 ft 10 in = 183 cm": a conversion that the answer writes down, unless the task does. */
function checkUnitEquations(task: ReadTask, answer: Answer): Finding {
  if (!/[=≈]|\bequals\b/.test(answer.text)) return notApplicable
  const text = plainUnits(answer.text)
  const equations = unitEquations(text)
  const given = new Set(equations.length > 0 ? unitEquations(plainUnits(task.full.raw)).map(unitsOf) : [])
  for (const equation of equations) {
    const [left, right] = equation
    if (given.has(unitsOf(equation)) || left.units[0]!.kind !== right.units[0]!.kind) continue
    if (!isSameAmount(left, right)) return failed(`${clip(text.slice(left.start, right.end), 40)} is not right.`)
  }
  return equations.length > 0 ? passed : notApplicable
}

const WITH_UNIT =
  /(?<![\d.,+*/×÷·^(=−-] ?)(\d[\d.,]{0,9})(?: ?(\p{L}{1,6}))? ?([×x*·+]) ?(\d[\d.,]{0,9})(?: ?(\p{L}{1,6}))? ?= ?\*{0,2}(\d[\d.,]{0,11}) ?(\p{L}{1,6})(?![\p{L}²³^/])/giu

/** "4 × 7.5 ml = 30 ml", "3 kg + 4 kg = 7 kg": two figures and their result, all with the same unit. */
function checkCalculationsWithUnit({ text }: Answer): Finding {
  if (!text.includes('=')) return notApplicable
  let isChecked = false
  for (const [whole, first, unitA = '', sign, second, unitB = '', result, unit] of [...text.matchAll(WITH_UNIT)].slice(
    0,
    60,
  )) {
    const units = [unitA, unitB].filter(Boolean).map((name) => name.toLowerCase())
    const isSame = units.length === (sign === '+' ? 2 : 1) && units.every((name) => name === unit!.toLowerCase())
    const [a, b, claimed] = [first!, second!, result!].map((digits) => readNumbers(digits.replace(/[.,]$/, ''))[0])
    if (!isSame || !a || !b || !claimed) continue
    isChecked = true
    const values = a.values.flatMap((x) => b.values.map((y) => (sign === '+' ? x + y : x * y)))
    if (!values.some((value) => standsFor(claimed, value))) return failed(`${clip(whole, 40)} is not right.`)
  }
  return isChecked ? passed : notApplicable
}

/** "2h40 + 1h55 = 4h35" */
function checkSumsOfTimes({ text }: Answer): Finding {
  const sums = [
    ...text.matchAll(/((?:\d{1,2} ?h ?\d{2} ?\+ ?){1,9}\d{1,2} ?h ?\d{2}) ?= ?\*{0,2}(\d{1,3} ?h ?\d{2})(?!\d)/g),
  ].slice(0, 20)
  const minutesIn = (part: string) =>
    [...part.matchAll(/(\d{1,3}) ?h ?(\d{2})/g)].reduce(
      (sum, [, hours, minutes]) => sum + 60 * Number(hours) + Number(minutes),
      0,
    )
  const wrong = sums.find(([, parts, total]) => minutesIn(parts!) !== minutesIn(total!))
  return wrong ? failed(`${clip(wrong[0], 40)} is not right.`) : sums.length > 0 ? passed : notApplicable
}

type UnitEquation = readonly [left: Quantity, right: Quantity]

const unitsOf = ([left, right]: UnitEquation) => `${left.units[0]!.name}=${right.units[0]!.name}`

/** Two quantities with a sign between them, neither of them a part of a longer calculation. */
function unitEquations(text: string): UnitEquation[] {
  const quantities = quantitiesOf(text)
  return quantities.slice(1).flatMap((right, i): UnitEquation[] => {
    const left = quantities[i]!
    const isEquation =
      /^ ?(?:=|≈|equals) ?(?:about |roughly |approx\. |~)?$/.test(text.slice(left.end, right.start)) &&
      !/(?:[-+*/×÷·−(]|\bx|\d ?\p{L}{0,7}) ?$/u.test(text.slice(Math.max(0, left.start - 12), left.start)) &&
      !/^ ?(?:[-+*/×÷·−] ?\d|per\b|\d)/.test(text.slice(right.end, right.end + 6))
    return isEquation && left.units.map(({ name }) => name).join() !== right.units.map(({ name }) => name).join()
      ? [[left, right]]
      : []
  })
}

export const hasRightTable = (output: ReadText): boolean => {
  const { applies, fault } = checkTables(output)
  return applies && fault === undefined
}

/** From the last figure on that is the sum of all before it: net and tax below the items. */
function withoutParts(values: readonly number[]): readonly number[] {
  const at = values.findLastIndex((value, i) => i >= 2 && Math.abs(value - sumOf(values.slice(0, i))) < 0.006)
  return at < 0 ? values : values.slice(at)
}

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
      const values = cells.map((cell) => cell!.values[0]!)
      // A figure among those of its column is a rate or a mean of them.
      if (total.values[0]! >= Math.min(...values) && total.values[0]! <= Math.max(...values)) continue
      isChecked = true
      // Each figure may be rounded, and the total made of those that are not.
      const rounding = (0.5 * cells.length + 0.51) * 10 ** -total.decimals
      const isRounded = total.decimals > 0 && Math.abs(total.values[0]! - sumOf(values)) <= rounding
      if (
        !isRounded &&
        !standsFor(total, sumOf(values)) &&
        !standsFor(total, sumOf(cells.map((cell) => cell!.values.at(-1)!))) &&
        !standsFor(total, sumOf(withoutParts(values)))
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

const LIST_LINE =
  /^(?:[-*•] |\d{1,2}[.)] )?([\p{L}][^:|\d]{0,40}?)\s?(?:[:–=]|-(?= )|(?<=^[-*•] .{1,42}) )\s?(?:[$€£]|[A-Z]{3} )?\s?([-−]?\d[\d.,'\u00a0\u202f]{0,14}) ?(?:[$€£]|\p{L}{1,12})?\.?(?:\s[–—(][^\d\n]{0,120})?$/u
/** "Against: 27.5 %" */
const SHARE_LINE = /^(?:[-*•] )?(\p{L}[^:|\d]{0,40}): ?(\d{1,3}(?:[.,]\d{1,2})?) ?%\.?$/u
/** The lines are not all added. */
const OTHER_LINE =
  /\b(?:discount|vat|tax|shipping|sub-?total|net|gross|less|minus|saving|savings|saved|balance|income|revenue|profit|average|mean|median|deposit|rabatt|netto|brutto|mwst|refund|credit|count|number|price|rate|share)\b|%/i
/** A line of these is none of the parts. */
const OTHER_PART = /\b(?:budget|left|remaining|rest|max|min|target|goal|limit)\b/i

/** "For: 55 % / Against: 30 % / Neither: 15 % / Total: 100 %": lines of one share each, up to the one that is called total. */
function checkShareLines(output: ReadText): Finding {
  if (!NAMES_TOTAL.test(output.raw) || !output.raw.includes('%')) return notApplicable
  const lines = output.lines.map((line) => SHARE_LINE.exec(line.replaceAll('**', '')))
  const totalAt = lines.findIndex((line) => line && TOTAL.test(line[1]!) && /^100(?:\.0)?$/.test(line[2]!))
  const shares = lines
    .slice(0, Math.max(0, totalAt))
    .flatMap((line) => (line ? Number(line[2]!.replace(',', '.')) : []))
  if (shares.length < 3 || shares.length < totalAt) return notApplicable
  return Math.abs(sumOf(shares) - 100) <= 0.06 * shares.length + 0.5
    ? passed
    : failed('The shares do not add up to 100 %.')
}

/** "Paint: 120 / Tape: 18 / Total: 140": lines of one label and one figure, and one that is called total. */
function checkListTotal(output: ReadText): Finding {
  if (!NAMES_TOTAL.test(output.raw.replaceAll('**', ''))) return notApplicable
  // "Travel: 64.90 + 18.00 = 82.90"
  const lines = output.lines.map((line) =>
    LIST_LINE.exec(line.replaceAll('**', '').replace(/: [\d.,+ ×x*€$£]{3,80} = (?=[$€£]?\d)/, ': ')),
  )
  const at = lines.findIndex((line) => line && TOTAL.test(line[1]!))
  if (at < 0) return notApplicable
  let from = at
  while (from > 0 && lines[from - 1]) from--
  const parts = lines.slice(from, at).map((line) => line!)
  if (parts.length < 3 || OTHER_LINE.test(output.raw) || parts.some(([line]) => OTHER_PART.test(line)))
    return notApplicable
  const [total, ...figures] = [lines[at]!, ...parts].map((line) => readNumbers(line[2]!)[0])
  if (!total || figures.some((figure) => !figure)) return notApplicable
  return standsFor(total, sumOf(figures.map((figure) => figure!.values[0]!))) ||
    Math.abs(total.values.at(-1)! - sumOf(figures.map((figure) => figure!.values.at(-1)!))) < 0.005
    ? passed
    : failed('The total of a list is not the sum of its lines.')
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
  if (!/\b(?:net|netto|subtotal)\b/i.test(output.raw)) return notApplicable
  const net = numberOfLine(output, /^(?:net|netto|subtotal)\b/i)
  const tax = numberOfLine(output, /^(?:vat|tax|mwst|iva|tva|sales tax)\b/i)
  const gross = numberOfLine(output, /^(?:gross|brutto|total|grand total|amount due)\b/i)
  if (net === undefined || tax === undefined || gross === undefined) return notApplicable
  return Math.abs(net + tax - gross) <= 0.011 ||
    output.lines.some((line) => /discount|shipping|tip|rabatt|deposit|fee/i.test(line))
    ? passed
    : failed('Net and tax do not add up to gross.')
}
