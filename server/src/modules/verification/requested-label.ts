import { type Finding, failed, notApplicable, passed } from './finding.ts'
import type { ReadTask } from './task.ts'
import { plainText, type ReadText } from './text.ts'

/** "Classify as one of: a, b, c", "(billing / shipping / technical)", "yes or no". */
export function checkLabel(task: ReadTask, output: ReadText): Finding {
  const request = task.request
  const isOnly =
    /\b(?:only|one word|single word|just|nothing else|label|category|classif\w{1,5}|nur|seulement|solo|apenas|alleen)\b/i.test(
      request,
    )
  if (!isOnly) return notApplicable
  const listed =
    /\b(?:one of|as|into|either|labels?|categor(?:y|ies)|options?|choose from|from|type|priority|sentiment|team|queue|tag)(?: the following| these)?[:? ]{1,2}\(?([\w -]{2,30}(?:(?:, ?| ?\/ ?| or |, or )[\w -]{2,30}){1,10})\)?/i.exec(
      request,
    )?.[1] ?? /\(([\w-]{2,20}(?: ?[/|,] ?[\w-]{2,20}){1,10})\)/.exec(request)?.[1]
  const labels =
    listed
      ?.split(/,| or |\/|\|/)
      .map((label) => plainText(label.replace(/^ ?or /, '')))
      .filter(Boolean) ?? []
  if (labels.length < 2 || labels.some((label) => label.split(' ').length > 3)) return notApplicable
  if (output.words.length > 6)
    return /\b(?:only|nothing else|just)\b/i.test(request) &&
      /\b(?:answer|reply|respond|return|output)\b/i.test(request) &&
      output.words.length > 15 &&
      /\b(?:label|word|category)\b/i.test(request)
      ? failed('One of the named labels was asked for, alone.')
      : notApplicable
  const text = ` ${plainText(output.raw)} `
  return labels.some((label) => text.includes(` ${label} `))
    ? passed
    : failed('It is none of the labels that the task allows.')
}

/** "Choose one: A or B. Name your pick in the first line": that line names one of them. */
export function checkFirstLine(task: ReadTask, output: ReadText): Finding {
  const options = /\b(?:choose|pick|decide|select)\b[^:\n]{0,30}: ?([\p{L}-]{3,24}) or ([\p{L}-]{3,24})/iu
    .exec(task.request)
    ?.slice(1)
  if (!options || !/\bfirst (?:line|sentence|word)\b/i.test(task.request)) return notApplicable
  const line = ` ${plainText(output.lines[0] ?? '')} `
  const named = options.filter((option) => line.includes(` ${option.toLowerCase()} `))
  return named.length === 1 ? passed : failed('Its first line does not name one of the options.')
}

/** "Answer with yes or no only". */
export function checkYesNo(task: ReadTask, output: ReadText): Finding {
  if (
    !/\b(?:yes or no|yes\/no|ja oder nein|oui ou non|sí o no)\b/i.test(task.request) ||
    !/\b(?:only|just|nothing else|one word|single word|nur|uniquement|solo)\b/i.test(task.request)
  )
    return notApplicable
  return output.words.length <= 6 && /\b(?:yes|no|ja|nein|oui|non|sí|si)\b/i.test(output.raw)
    ? passed
    : failed('Yes or no was asked for, alone.')
}

/** "Answer only one of billing, bug, feature", "pick a tag from {bug, feature}". */
export function checkOneOf(task: ReadTask, output: ReadText): Finding {
  const request = task.full.raw.slice(0, 1_500)
  const listed =
    /\b(?:one of|pick (?:a |one )?(?:\w{1,12} )?from|choose (?:one )?from|tag from|label from|categor(?:y|ies) from|either)(?: the following| these)?[: ]{1,2}[{([]?["'“]?([\p{L}-]{2,20}(?:["'”]?(?:, ?| ?\/ ?| ?\| ?| or |, or )["'“]?[\p{L}-]{2,20}){1,9})/iu.exec(
      request,
    )?.[1] ?? /[{]([\p{L}-]{2,20}(?:, ?[\p{L}-]{2,20}){1,9})[}]/u.exec(request)?.[1]
  const isAlone = /\b(?:only|just|nothing else|one word|single word|nur|category|label|tag|classify)\b/i.test(request)
  if (!listed || !isAlone) return notApplicable
  const labels = listed
    .split(/,| or |\/|\|/)
    .map((label) => plainText(label.replace(/^ ?or /, '')))
    .filter(Boolean)
  if (labels.length < 2 || output.words.length > 40) return notApplicable
  const text = ` ${plainText(output.raw)} `
  return labels.some((label) => text.includes(` ${label} `))
    ? passed
    : failed('It is none of the labels that the task allows.')
}
