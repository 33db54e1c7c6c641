import { spendSteps } from '../../platform/step-budget.ts'
import { readNumbers, type TextNumber } from './numbers.ts'
import type { ReadTask } from './task.ts'
import { partsBetween, sentencesOf } from './text.ts'

/** The figures a task gives, read in several ways: as a list, by columns, by what follows a colon, as quantity times price. */
export function datasetsOf(task: ReadTask): number[][] {
  const text = task.full.raw
  spendSteps(text.length * 6)
  const firstValue = (number: TextNumber) => number.values[0]!
  const clean = (part: string) =>
    readNumbers(part).filter((number) => {
      const before = part.slice(Math.max(0, number.start - 3), number.start)
      const after = part.slice(number.end, number.end + 16)
      // "Q1", "MSKU-11", the flat "1A" of "1A 640", "2 decimals" and "top 3" are no data.
      return (
        !/[A-Za-z_]-?$/.test(before) &&
        !/^[A-Z]:? [$€£]?\d/.test(after) &&
        !/^\s?(?:decimals?|decimal places|biggest|largest|smallest|highest|lowest|nachkommastellen|d[eé]cimal\w{0,3})/i.test(
          after,
        )
      )
    })
  const sets: number[][] = []
  const push = (values: number[]) => {
    if (values.length >= 2 && values.length <= 400) sets.push(values)
  }
  const all = clean(text)
  push(all.map(firstValue))
  push(all.filter((number) => !number.isPercent && !/^(?:19|20)\d\d$/.test(number.text)).map(firstValue))
  push(all.map((number) => number.values.at(-1)!))
  const colon = text.search(/[::]/)
  if (colon > 0) push(clean(text.slice(colon + 1)).map(firstValue))
  for (const sentence of sentencesOf(text).slice(0, 20)) push(clean(sentence).map(firstValue))
  const [bracket] = partsBetween(text, '[', ']', 4_000)
  if (bracket) push(clean(bracket).map(firstValue))
  // "120, 85, 40 y 55" is one list.
  const runs = text
    .replace(/\s(?:and|und|et|y|e|en|plus)\s(?=[$€£]?\d)/gi, ', ')
    .split(/[\p{L}:()[\]{}"']/u)
    .filter((part) => /\d/.test(part))
  for (const run of runs.slice(0, 20)) push((run.match(/-?\d+(?:\.\d+)?/g) ?? []).map(Number))
  const rows = text
    .split('\n')
    .map((line) => line.split(/[,;\t|]/))
    .filter((cells) => cells.length >= 2)
  const width = Math.max(0, ...rows.slice(0, 500).map((cells) => cells.length))
  for (let column = 0; column < Math.min(width, 12); column++)
    push(
      rows
        .map((cells) => Number((cells[column] ?? '').trim().replace(/^[$€£]/, '') || Number.NaN))
        .filter(Number.isFinite),
    )
  const priced = [
    ...text.matchAll(
      /(\d[\d.,]{0,9})\s?(?:x|×|\*|\p{L}{1,20}(?: \p{L}{1,20})?)?\s?(?:at|@|à|for|zu je|je|a|x|×|\*)\s?[$€£]?\s?(\d[\d.,]{0,9})/giu,
    ),
  ].slice(0, 100)
  const products = priced.map((match) => readNumbers(match[1]!)[0]!.values[0]! * readNumbers(match[2]!)[0]!.values[0]!)
  const others = all.filter(
    ({ start }) => !priced.some((match) => start >= match.index && start < match.index + match[0].length),
  )
  // "4 chairs at 89, delivery 45": what has a price of its own is added to the products.
  if (products.length >= 1) push([...products, ...others.filter(({ isPercent }) => !isPercent).map(firstValue)])
  if (priced.length >= 1)
    push([...priced.map((match) => readNumbers(match[1]!)[0]!.values[0]! * readNumbers(match[2]!)[0]!.values[0]!), 0])
  return sets
}
