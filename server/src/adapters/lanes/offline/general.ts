import { analyseData, reportSum } from './analyst.ts'
import { type Brief, extractTopic } from './brief.ts'
import { reviewCode } from './coder.ts'
import type { Report } from './report.ts'
import { researchText } from './researcher.ts'
import { findSources } from './source.ts'
import { readTable } from './tables.ts'
import { capitalise, clip, countFrequencies, extractContentWords, splitSentences, splitWords } from './text.ts'

const METHOD =
  'Offline general lane: does what the shape of the task allows (code, numbers, text) by rule, no language model.'

/** The fallback lane: uses the coder, analyst or researcher when the material suits them, else describes the task. */
export function answerGeneral(brief: Brief): Report | Promise<Report> {
  const sum = reportSum(brief, 'default')
  if (sum) return sum
  if (findSources(brief).length > 0) return reviewCode(brief).then((report) => relabelReport(report, 'coder-v1'))
  const table = readTable(brief)
  if (table && table.rows >= (asksForStatistics(brief) ? 2 : 4)) return relabelReport(analyseData(brief), 'analyst-v1')
  if (splitSentences(brief.material).length >= 3) return relabelReport(researchText(brief), 'researcher-v2')
  return describeTask(brief)
}

const asksForStatistics = ({ instruction }: Brief) =>
  /\b(?:average|mean|median|sum|total|deviation|variance|minimum|maximum|range|percent\w{0,4}|growth|trend|statistics?)\b/i.test(
    instruction,
  )

const relabelReport = (report: Report, lane: string): Report => ({
  ...report,
  lane: 'default',
  sections: [
    ...report.sections,
    {
      heading: 'A closer fit',
      lines: [`Ask for \`${lane}\` to have this kind of task judged and checked as that lane's work.`],
    },
  ],
  method: METHOD,
})

function describeTask(brief: Brief): Report {
  const topic = extractTopic(brief, 120)
  const words = splitWords(brief.task)
  const keywords = countFrequencies(extractContentWords(brief.task))
    .slice(0, 6)
    .map(([word]) => word)
  const isQuestion = brief.task.includes('?')
  return {
    lane: 'default',
    title: clip(capitalise(topic.includes(' ') ? topic : brief.task), 80) || 'An empty task',
    summary: isQuestion
      ? `You asked: “${clip(splitSentences(brief.task).find((sentence) => sentence.text.endsWith('?'))?.text ?? brief.task, 200)}” This lane has no model and no sources, so it will not guess an answer; it can help you get to one.`
      : `The task speaks of ${keywords.slice(0, 3).join(', ') || 'nothing in particular'} and does not say what kind of work it wants. Here is a way to get it done.`,
    sections: [
      {
        heading: 'What the task says',
        lines: [
          `Length: ${words.length} ${words.length === 1 ? 'word' : 'words'}.`,
          `Key words: ${keywords.join(', ') || 'none'}.`,
          `Numbers: ${(brief.task.match(/\d[\d.,]*/g) ?? []).slice(0, 6).join(', ') || 'none'}.`,
        ],
      },
      {
        heading: 'A checklist to finish it',
        lines: [
          `Write down the result you want from “${clip(topic, 60)}” in one sentence.`,
          'List what you already know and what you would have to look up.',
          'Name who decides that it is done, and by when.',
          'Do the part that could fail first.',
        ],
      },
      {
        heading: 'Lanes that do more with the right material',
        lines: [
          'analyst-v1: paste a table, CSV or numbers.',
          'coder-v1: paste code in a ``` fence.',
          'researcher-v2: paste a source text and a question.',
          'writer-v1: paste a draft, or name the kind of text.',
          'support-v1: paste a customer’s message.',
          'strategist-v1: name the options and the criteria.',
          'comedian-v1: name a topic.',
        ],
      },
    ],
    method: METHOD,
  }
}
