import type { Brief } from './brief.ts'
import type { Report } from './report.ts'
import { clip, extractContentWords, type Sentence, splitSentences, stem } from './text.ts'

const MAX_LINES = 4
const MAX_SENTENCES = 300

/** Sentences of the session's memories that have to do with the task, best first, each as it stands there. */
export function findRecalled(brief: Pick<Brief, 'task' | 'context'>): string[] {
  if (brief.context.length === 0) return []
  const taskStems = new Set(extractContentWords(brief.task.slice(0, 2_000)).map(stem))
  const needed = taskStems.size <= 3 ? 1 : 2
  const taskText = brief.task.trim().toLowerCase()
  const scored = splitSentences(brief.context.join('\n\n'), MAX_SENTENCES).flatMap(({ text, index }: Sentence) => {
    // What was asked or said about the way of working before is no material.
    if (/^(?:#|task:|_)/i.test(text) || text.toLowerCase().includes(taskText)) return []
    const sentence = text.replace(/^Outcome: /, '')
    const score = new Set(
      extractContentWords(sentence)
        .map(stem)
        .filter((word) => taskStems.has(word)),
    ).size
    return score >= needed ? { sentence, score, index } : []
  })
  scored.sort((a, b) => b.score - a.score || b.index - a.index)
  return [...new Set(scored.map(({ sentence }) => clip(sentence, 300)))].slice(0, MAX_LINES)
}

/** Puts what was recalled to use in any report: it stands below the answer, in the words in which it was remembered. */
export function withRecalled(report: Report, brief: Brief): Report {
  const lines = findRecalled(brief)
  if (lines.length === 0) return report
  return { ...report, sections: [...report.sections, { heading: 'From this session', lines }] }
}
