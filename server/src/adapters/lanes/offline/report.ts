import type { Wish } from './brief.ts'
import { clip } from './text.ts'

/** What an offline lane hands back. One renderer turns it into the form the caller asked for. */
export type Report = {
  lane: string
  title: string
  /** The answer in one or two sentences: the part that survives the tightest length limit. */
  summary: string
  sections: readonly Section[]
  /** How the answer was made, so that nobody takes it for a model's. */
  method: string
}

export type Section = {
  heading: string
  prose?: string
  lines?: readonly string[]
  table?: { columns: readonly string[]; rows: readonly (readonly string[])[] }
  code?: { language: string; text: string }
}

export const OUTPUT_LIMIT = 12_000

export function render(report: Report, wish: Wish): string {
  if (wish.form === 'json') return renderJson(report)
  const sections = wish.form === 'list' ? report.sections.map(asList) : report.sections
  const text = wish.maxWords ? renderWithin(report, sections, wish.maxWords) : renderMarkdown(report, sections)
  return text.length <= OUTPUT_LIMIT
    ? text
    : `${clip(text, OUTPUT_LIMIT - 60)}\n\n(The rest was cut at ${OUTPUT_LIMIT} characters.)`
}

function renderMarkdown(report: Report, sections: readonly Section[]): string {
  const parts = [`# ${report.title}`, report.summary, ...sections.map(sectionText), `_${report.method}_`]
  return parts.filter(Boolean).join('\n\n')
}

/** Whole sections are left out from the end until the answer fits; the summary alone is cut mid-sentence. */
function renderWithin(report: Report, sections: readonly Section[], maxWords: number): string {
  const count = (text: string) => text.split(/\s+/).filter(Boolean).length
  for (let kept = sections.length; kept >= 0; kept--) {
    const text = [report.summary, ...sections.slice(0, kept).map(sectionText)].filter(Boolean).join('\n\n')
    if (count(text) <= maxWords) return text
  }
  return report.summary.split(/\s+/).slice(0, maxWords).join(' ')
}

function sectionText(section: Section): string {
  const parts = [`## ${section.heading}`]
  if (section.prose) parts.push(section.prose)
  if (section.lines?.length) parts.push(section.lines.map((line) => `- ${line}`).join('\n'))
  if (section.table) parts.push(tableText(section.table))
  if (section.code) parts.push(`\`\`\`${section.code.language}\n${section.code.text}\n\`\`\``)
  return parts.length > 1 ? parts.join('\n\n') : ''
}

function tableText(table: NonNullable<Section['table']>): string {
  const row = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll('\n', ' ')).join(' | ')} |`
  return [row(table.columns), row(table.columns.map(() => '---')), ...table.rows.map(row)].join('\n')
}

function asList(section: Section): Section {
  const lines = [
    ...(section.prose ? [section.prose] : []),
    ...(section.lines ?? []),
    ...(section.table?.rows.map((row) => row.map((cell, at) => `${section.table!.columns[at]}: ${cell}`).join(', ')) ??
      []),
  ]
  return { heading: section.heading, lines, ...(section.code ? { code: section.code } : {}) }
}

/** Sections are dropped from the end until the JSON is within the limit: cut JSON would be no JSON. */
function renderJson(report: Report): string {
  for (let kept = report.sections.length; kept > 0; kept--) {
    const text = JSON.stringify(
      { ...report, sections: report.sections.slice(0, kept), truncated: kept < report.sections.length },
      null,
      2,
    )
    if (text.length <= OUTPUT_LIMIT) return text
  }
  return JSON.stringify({ ...report, summary: clip(report.summary, 4000), sections: [], truncated: true }, null, 2)
}
