import { doubt, type Finding, failed, notApplicable, passed } from './finding.ts'
import { readNumbers } from './numbers.ts'
import type { ReadTask } from './task.ts'
import type { ReadText } from './text.ts'

const UNITS: readonly (readonly [RegExp, number])[] = [
  [/^(?:minutes?|minuten|minutos?|minuti|mins?)$/i, 1 / 60],
  [/^(?:hours?|hrs?|heures?|horas?|ore|ora|stunden?|uur|uren)$/i, 1],
  [/^(?:days?|jours?|días?|giorni|giorno|tage?n?|dagen|dag|dias?|werktage?n?)$/i, 24],
  [/^(?:weeks?|semaines?|semanas?|settimane|settimana|wochen?|weken|week)$/i, 168],
  [/^(?:months?|mois|mes|meses|mesi|mese|monate?n?|maanden|maand)$/i, 730],
  [/^(?:years?|ans|années?|años?|anni|anno|jahre?n?|jaar|jaren)$/i, 8_760],
]

/** The spans of time that a text names, in hours. */
function spansOf(raw: string): number[] {
  // "A week" is one, and "two-year" two.
  const text = raw
    .replaceAll(/(?<=\p{L})-(?=\p{L})/gu, ' ')
    .replaceAll(/\b(?:an?|une?|einen?|eine[rm]?|un[ao]?) (?=\p{L}{3,9}\b)/giu, 'one ')
  return readNumbers(text, { words: true })
    .slice(0, 60)
    .flatMap(({ values, end, start }) => {
      const word = /^[\s-]{1,2}(?:(?:working|business|full|calendar|more) )?(\p{L}{2,10})/u.exec(
        text.slice(end, end + 24),
      )?.[1]
      const unit = word ? UNITS.find(([pattern]) => pattern.test(word)) : undefined
      return unit && !/[\d–-]\s?$/.test(text.slice(Math.max(0, start - 2), start)) ? [values[0]! * unit[1]] : []
    })
}

/** The task gives one span of time and the answer names one other. */
export function checkDurations(task: ReadTask, output: ReadText): Finding {
  if (!/^(?:support|writer)/.test(task.agentId) || task.is.creative || task.is.template) return notApplicable
  const source = [task.full.raw, ...task.context].join('\n')
  const [given, written] = [spansOf(source), spansOf(output.raw)]
  if (
    given.length !== 1 ||
    written.length !== 1 ||
    /\b\d{1,2}[:.]\d{2}\b|\b\d{1,2} (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)/i.test(source)
  )
    return notApplicable
  const ratio = written[0]! / given[0]!
  // A month is four weeks or thirty days; a day is a working day or not.
  return ratio > 0.7 && ratio < 1.5 ? passed : doubt(failed('It names another span of time than the one given.'))
}
