import { isRoughIn, readNumbers, standsFor, type TextNumber } from './numbers.ts'
import { type ReadText, splitFences } from './text.ts'
import { cached } from './text-cache.ts'

/** An answer and its numbers, for the checks that compute again. */
export type Answer = { text: string; numbers: readonly TextNumber[] }

/** Several checks ask for it, so an output is read once, and its numbers when somebody wants them. */
export const readAnswer = (output: ReadText): Answer => cached('answer', output.raw, findAnswer)

function findAnswer(raw: string): Answer {
  const plain = splitFences(raw).prose.trim() ? raw.replaceAll('**', '') : raw
  // "1 000" in a cell of its own
  const text = plain.replace(/(?<=\| ?)(\d{1,3}) (\d{3})(?= ?\|)/g, '$1$2')
  let numbers: readonly TextNumber[] | undefined
  return {
    text,
    get numbers() {
      numbers ??= [...readNumbers(text, { words: true }), ...spacedNumbers(text)]
      return numbers
    },
  }
}

/** "1 800 €": with a space for thousands. It may as well be two figures, so these are read too. */
const spacedNumbers = (text: string): TextNumber[] =>
  [...text.matchAll(/(?<![\d.,]|\d )\d{1,3}(?: \d{3})+(?:[.,]\d{1,2})?(?!\d| \d|[.,]\d)/g)].map(
    ({ 0: digits, index }) => {
      const [whole, fraction = ''] = digits.replaceAll(' ', '').split(/[.,]/) as [string, string?]
      return {
        values: [Number(`${whole}.${fraction}`)],
        text: digits,
        start: index,
        end: index + digits.length,
        decimals: fraction.length,
        isPercent: false,
        isWord: false,
      }
    },
  )

export const shows = ({ text, numbers }: Answer, value: number, isRough = false) =>
  numbers.some((number) => standsFor(number, value, isRough || isRoughIn(text, number)))

export const sumOf = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0)

const TOTAL_WORDS = 'totals?|sum|all|overall|gesamt|summe|insgesamt|somme|suma|totale|soma|totaal'
export const TOTAL = new RegExp(`^\\W*(?:grand )?(?:${TOTAL_WORDS})\\W*$`, 'i')
/** Whether one of the words of `TOTAL` stands anywhere in a text. */
export const NAMES_TOTAL = new RegExp(`\\b(?:${TOTAL_WORDS})\\b`, 'i')
const isRow = (line: string) => line.includes('|')

type Table = { header: string[]; rows: string[][] }

export function tablesOf(output: ReadText): Table[] {
  const tables: Table[] = []
  let rows: string[][] = []
  const close = () => {
    if (rows.length >= 2) tables.push({ header: rows[0]!, rows: rows.slice(1) })
    rows = []
  }
  for (const line of output.lines) {
    if (!isRow(line)) close()
    else if (!/^[\s|:-]+$/.test(line))
      rows.push(
        line
          .replace(/^\||\|$/g, '')
          .split('|')
          .map((cell) => cell.replaceAll('*', '').trim())
          .slice(0, 30),
      )
  }
  close()
  return tables.slice(0, 10)
}

export const cellNumber = (cell: string | undefined): TextNumber | undefined => {
  const numbers = readNumbers(cell ?? '')
  return numbers.length === 1 && !/[\p{L}]{3}/u.test((cell ?? '').replace(/\b(?:usd|eur|gbp|chf)\b/gi, ''))
    ? numbers[0]
    : undefined
}
