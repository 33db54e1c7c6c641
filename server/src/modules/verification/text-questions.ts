import { datasetsOf } from './datasets.ts'
import { combine, type Finding, failed, notApplicable, passed } from './finding.ts'
import { numberOfWord, readNumbers, standsFor } from './numbers.ts'
import { ASCENDING, DESCENDING } from './ordering.ts'
import type { ReadTask } from './task.ts'
import { type ReadText, wordsOf } from './text.ts'

export const checkTextQuestions = (task: ReadTask, output: ReadText): Finding =>
  combine([
    checkTextOperation(task, output),
    checkSmallQuestions(task, output),
    checkWordCount(task, output),
    checkCountOfWords(task, output),
  ])

const COUNT_OF_WORDS =
  /\bhow many of (?:these|the following|the) (?:words|names|items|cities|countries|animals|fruits?|codes|terms) (?:(?:start|begin)s? with|end(?:s)? (?:with|in)|contain|have|include) (?:a (vowel|consonant)|(?:the (?:letters? )?|an? )?["'“‘]?(\p{L})["'”’]?(?: in (?:it|them))?|(more|fewer|less) than (\w{1,6}) letters|(?:exactly )?(\w{1,6}) letters)\??:\s?([^?.\n]{5,400})/iu

/** "How many of these words start with a vowel: …?" */
function checkCountOfWords(task: ReadTask, output: ReadText): Finding {
  const match = task.full.raw.length <= 800 && task.full.raw.includes(':') ? COUNT_OF_WORDS.exec(task.full.raw) : null
  if (!match) return notApplicable
  const [order, kind, letter, comparison, limit, size, list] = match
  const words = list!
    .toLowerCase()
    .split(/,|;|\band\b/)
    .map((word) => word.trim().replaceAll(/["“”'‘’]/g, ''))
    .filter(Boolean)
  if (words.length < 3 || words.some((word) => !/^\p{L}+$/u.test(word))) return notApplicable
  const askedLength = Number(limit ?? size) || numberOfWord((limit ?? size ?? '').toLowerCase())
  const isAsked = (text: string) =>
    kind ? /[aeiou]/.test(text) === (kind.toLowerCase() === 'vowel') : text.includes(letter!.toLowerCase())
  const isCounted = (word: string): boolean => {
    if (askedLength !== undefined && !letter && !kind)
      return comparison
        ? comparison.toLowerCase() === 'more'
          ? word.length > askedLength
          : word.length < askedLength
        : word.length === askedLength
    if (/ (?:start|begin)s? /i.test(order)) return isAsked(word[0]!)
    return / ends? /i.test(order) ? isAsked(word.at(-1)!) : !kind && isAsked(word)
  }
  const count = words.filter(isCounted).length
  const numbers = readNumbers(output.raw, { words: true })
  if (numbers.length === 0 || (kind && words.some((word) => /^y|y$/.test(word)))) return notApplicable
  return numbers.some(({ values }) => values.includes(count)) ? passed : failed('The count is not right.')
}

/** Sorting, reversing and counting letters. */
function checkTextOperation(task: ReadTask, output: ReadText): Finding {
  const request = task.full.raw
  if (request.length > 400 || task.code) return notApplicable
  const run = SORTS.test(request) ? NUMBERS_TO_SORT.exec(request)?.[1] : undefined
  if (run && !/\bduplicat\w{1,5}\b|\bunique\b/i.test(request) && DESCENDING.test(request) !== ASCENDING.test(request))
    return checkNumbers(run, DESCENDING.test(request), output)
  const list =
    /\b(sort\w{0,3}|sortiere\w?|ordne|trie[rz]?|ordena|ordina|order|alphabeti[sz]e|arrange|rank)\b[^:]{0,60}:\s?(.{3,300})/i.exec(
      request,
    )
  if (list) {
    const items = list[2]!
      .split(/[,;\n]/)
      .map((item) => item.trim().replace(/[.?!]$/, ''))
      .filter(Boolean)
    const isNumeric = items.every((item) => /^-?\d+(?:\.\d+)?$/.test(item))
    if (/\bduplicat\w{1,5}\b|\bunique\b|\bdoubles\b|\b(?:sur|last |family |nach)names?n?\b/i.test(request))
      return notApplicable
    const times = items.map(minutesOf)
    if (items.length >= 3 && times.every((time) => time !== undefined)) return checkTimes(request, times, output)
    if (items.length < 3 || (!isNumeric && !/alphabet/i.test(request))) return notApplicable
    const sorted = isNumeric
      ? [...items].sort((a, b) => Number(a) - Number(b))
      : [...items].sort((a, b) => a.toLowerCase().localeCompare(b.toLowerCase(), 'en'))
    if (DESCENDING.test(request) || /\b(?:reverse|z to a|z-a|z–a)\b/i.test(request)) sorted.reverse()
    const text = output.raw.toLowerCase()
    let at = -1
    for (const item of sorted) {
      const next = isNumeric ? findWhole(text, item, at + 1) : text.indexOf(item.toLowerCase(), at + 1)
      if (next < 0) return failed('It is not in the order asked for.')
      at = next
    }
    return passed
  }
  const letters =
    /\b(?:how many|number of) (?:letters|characters) (?:are |does |has |is )?(?:there )?(?:in )?(?:the word )?["'“]?(\p{L}{2,40})["'”]?\s?(?:have)?/iu.exec(
      request,
    )
  if (letters && !/^(?:are|does|has|is|in|the|word)$/i.test(letters[1]!))
    return readNumbers(output.raw, { words: true }).some((number) => number.values.includes(letters[1]!.length))
      ? passed
      : failed('The number of letters is not right.')
  const occurrences =
    /\bhow (?:many times|often) (?:does |do |is )?(?:the letter )?["'“]?(\p{L})["'”]? (?:appears? |occurs? |there )?in (?:the (?:word|phrase|name|sentence|text) )?(?:["“'‘]([^"”'’\n]{3,120})["”'’]|(\p{L}{3,40}))\W{0,3}$/iu.exec(
      request.trim(),
    ) ??
    /\bhow many (?:letters? )?["'“]?(\p{L})["'”]?(?:['’]?s)? (?:are |does )?(?:there )?(?:in )(?:the (?:word|phrase|name|sentence|text) )?(?:["“'‘]([^"”'’\n]{3,120})["”'’]|(\p{L}{3,40}))/iu.exec(
      request,
    )
  if (occurrences) {
    const count = [...(occurrences[2] ?? occurrences[3])!.toLowerCase()].filter(
      (letter) => letter === occurrences[1]!.toLowerCase(),
    ).length
    return readNumbers(output.raw, { words: true }).some((number) => number.values.includes(count)) ||
      (count === 1 && /\bonce\b/i.test(output.raw))
      ? passed
      : failed('The number of letters is not right.')
  }
  const reversed =
    /\b(?:reverse|spell|write)\b(?:[^"'“:\n]{0,40}["'“:]\s?["'“]?|(?: (?:the|this))?(?: (?:word|name|string|text|letters (?:of|in)))?\s)(\p{L}{3,30})["'”]?\s?(?:backwards|in reverse|rückwärts)?[.?!]?$/iu.exec(
      request.trim(),
    )
  const word =
    /["'“‘](\p{L}{3,30})["'”’] (?:backwards|in reverse|reversed|rückwärts|à l'envers|al revés)/iu.exec(request)?.[1] ??
    (reversed && /\b(?:reverse|backwards|rückwärts)\b/i.test(reversed[0]) ? reversed[1] : undefined) ??
    /^[^"“'‘]{0,40}["“'‘](\p{L}{3,30})["”'’][^"“'‘]{0,40}$/u.exec(request)?.[1]
  if (word && /\b(?:reversed?|backwards|rückwärts|envers|revés)\b/i.test(request)) {
    const expected = [...word.toLowerCase()].reverse().join('')
    // Letters may stand apart: "t-a-c".
    const text = output.raw.toLowerCase().replace(/(?<=(?<!\p{L})\p{L})[\s-](?=\p{L}(?!\p{L}))/gu, '')
    return new RegExp(`(?<!\\p{L})${expected}(?!\\p{L})`, 'u').test(text)
      ? passed
      : failed('It is not the word in reverse.')
  }
  return notApplicable
}

/** "sort ascending 45, 12, 78": figures in a row and nothing else. */
const NUMBERS_TO_SORT =
  /(?<![\d.,:;-])((?:-?\d{1,9}(?:\.\d{1,6})?[,;] ?){2,30}-?\d{1,9}(?:\.\d{1,6})?)(?![\d.:]{0,12}\d| ?\p{L}{1,3}\b|%)/iu
const SORTS = /\b(?:sort\w{0,3}|sortiere\w?|ordne|trie[rz]?|ordena|ordina|order|arrange|rank|put)\b/i

function checkNumbers(list: string, isDescending: boolean, output: ReadText): Finding {
  const numbers = (text: string) => (text.match(/(?<![\d.,]|\d:)-?\d{1,9}(?:\.\d{1,6})?/g) ?? []).map(Number)
  const sorted = numbers(list.replaceAll(/[,;]/g, ' ')).sort((a, b) => (isDescending ? b - a : a - b))
  const written = numbers(output.raw.replaceAll(/^ {0,4}\d{1,2}[.)] /gm, ' ').replaceAll(/(?<=\d)[,;]/g, ' '))
  const isThere = written.some((_, i) => sorted.every((value, k) => written[i + k] === value))
  return isThere ? passed : failed('It is not in the order asked for.')
}

const CLOCK = /^(\d{1,2})(?:[:.]([0-5]\d))? ?(am|pm|a\.m\.|p\.m\.)?$/i

/** "12:05 am", "19:30": minutes after midnight. */
function minutesOf(text: string): number | undefined {
  const [, hour, minute, half] = CLOCK.exec(text.trim()) ?? []
  if (!hour || (!minute && !half) || Number(hour) > 24) return undefined
  const hours = half ? (Number(hour) % 12) + (/^p/i.test(half) ? 12 : 0) : Number(hour)
  return hours * 60 + Number(minute ?? 0)
}

/** Times of day in the order of the day. */
function checkTimes(request: string, times: readonly number[], output: ReadText): Finding {
  const isDescending = /\b(?:descending|latest (?:first|to earliest)|reverse)\b/i.test(request)
  if (!isDescending && !/\b(?:earliest|ascending|chronological\w{0,2})\b/i.test(request)) return notApplicable
  const written = (output.raw.match(/(?<![\d:.])\d{1,2}(?:[:.][0-5]\d)?(?: ?[ap]\.?m\b\.?)?(?![\d:])/gi) ?? [])
    .map((text) => minutesOf(text.replaceAll(/(?<=m)\.|\.(?=m)/gi, '')))
    .filter((time) => time !== undefined)
  if (written.length !== times.length) return notApplicable
  const sorted = [...times].sort((a, b) => (isDescending ? b - a : a - b))
  return sorted.every((time, i) => time === written[i]) ? passed : failed('It is not in the order asked for.')
}

/** The larger of two numbers, running sums, the length of a word in code, letters and capitals. */
function checkSmallQuestions(task: ReadTask, output: ReadText): Finding {
  const request = task.full.raw.slice(0, 400)
  const pair =
    /\bwhich (?:number )?is (bigger|larger|greater|higher|more|smaller|less|lower)\b[^\d]{0,20}(\d[\d.,/]{0,12}\d|\d)\s?(?:or|and|,)\s?(\d[\d.,/]{0,12}\d|\d)/i.exec(
      request,
    )
  if (pair) {
    const [a, b] = [readNumbers(pair[2]!)[0], readNumbers(pair[3]!)[0]]
    const [first] = readNumbers(output.raw)
    if (!a || !b || !first || /\//.test(`${pair[2]}${pair[3]}`)) return notApplicable
    const [x, y] = [a.values[0]!, b.values[0]!]
    const expected = /smaller|less|lower/i.test(pair[1]!) ? Math.min(x, y) : Math.max(x, y)
    return first.values.includes(expected) ? passed : failed('It names the wrong one of the two numbers.')
  }
  if (/\b(?:cumulative|running) (?:sum|total)/i.test(request)) {
    const [data] = datasetsOf(task)
    if (!data || data.length < 3) return notApplicable
    let sum = 0
    const sums = data.map((value) => (sum += value))
    const numbers = readNumbers(output.raw)
    return sums.every((value) => numbers.some((number) => standsFor(number, value)))
      ? passed
      : failed('A running sum is not right.')
  }
  const length = /\blen\(["']([^"']{0,80})["']\)|["']([^"']{0,80})["']\.length\b/.exec(request)
  if (length)
    return readNumbers(output.raw, { words: true }).some(({ values }) =>
      values.includes((length[1] ?? length[2])!.length),
    )
      ? passed
      : failed('The length is not right.')
  const spelled = /^\W*(?:how do you )?spell (?:the word )?["'“]?(\p{L}{3,40})["'”]?\W*$/iu.exec(request.trim())
  if (spelled)
    return output.raw
      .toLowerCase()
      .replace(/[^\p{L}]/gu, '')
      .includes(spelled[1]!.toLowerCase())
      ? passed
      : failed('It is spelled otherwise.')
  const raised =
    /^\W*(uppercase|capitali[sz]e all|lowercase) (?:this|the following)?(?: text| sentence| word)?s?: ?(.{1,200})$/i.exec(
      request.trim(),
    )
  if (raised) {
    const text = raised[2]!.replace(/^["“]|["”]$/g, '')
    return output.raw.includes(/^lower/i.test(raised[1]!) ? text.toLowerCase() : text.toUpperCase())
      ? passed
      : failed('The letters are not as asked for.')
  }
  return notApplicable
}

function findWhole(text: string, item: string, from: number): number {
  for (let at = text.indexOf(item, from); at >= 0; at = text.indexOf(item, at + 1))
    if (!/[\d.]/.test(text[at - 1] ?? ' ') && !/\d/.test(text[at + item.length] ?? ' ')) return at
  return -1
}

/** "How many words are in: …", "how many times does the letter e occur in …", vowels. */
function checkWordCount(task: ReadTask, output: ReadText): Finding {
  const request = task.full.raw.slice(0, 600)
  const quoted =
    /["“„«'‘]([^"”“»'’]{2,400})["”“»'’]/.exec(request)?.[1] ??
    (request.includes(':') ? request.slice(request.indexOf(':') + 1).trim() : '')
  if (!quoted || !/\bhow many|\bcount\b|\bnumber of\b|\bwie (?:viele|oft)\b|\bcombien\b/i.test(request))
    return notApplicable
  const unquotedRequest = request.replace(quoted, ' ')
  const letter =
    /\b(?:letter|buchstabe|lettre|letra|character)s? ["'“‘]?(\p{L})["'”’]?(?=\s|$|\?)|["'“‘](\p{L})["'”’]s?\b/iu.exec(
      unquotedRequest,
    )
  const expected = /\b(?:many|of|the|viele|de) (?:words|wörter|mots)\b/i.test(unquotedRequest)
    ? wordsOf(quoted).length
    : letter
      ? [...quoted.toLowerCase()].filter((character) => character === (letter[1] ?? letter[2])!.toLowerCase()).length
      : /\bvowels\b/i.test(unquotedRequest)
        ? (quoted.match(/[aeiou]/gi) ?? []).length
        : undefined
  if (expected === undefined) return notApplicable
  const numbers = readNumbers(output.raw.replace(quoted, ' '), { words: true })
  const times = /\bonce\b/i.test(output.raw) ? 1 : /\btwice\b/i.test(output.raw) ? 2 : undefined
  if (numbers.length === 0 && times === undefined) return notApplicable
  return times === expected || numbers.some(({ values }) => values.includes(expected))
    ? passed
    : failed('The count is not right.')
}
