import { toStorableText } from '../../../platform/storable-text.ts'
import type { OutputFormat } from './brief.ts'
import { clip } from './text.ts'

/** The result of an offline lane. `renderReport` turns it into the requested format. */
export type Report = {
  lane: string
  title: string
  /** The answer in one or two sentences, which is kept under any length limit. */
  summary: string
  sections: readonly Section[]
  /** How the answer was produced, so that it is not mistaken for a model's. */
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

/** Texts in a report are cut by length, so what is left of a cut surrogate pair is removed here, once for all lanes. */
export const renderReport = (report: Report, format: OutputFormat): string => toStorableText(render(report, format))

function render(report: Report, format: OutputFormat): string {
  if (format.form === 'json') return renderJson(report)
  const sections = format.form === 'list' ? report.sections.map(toListSection) : report.sections
  const text = format.maxWords ? renderWithinWords(report, sections, format.maxWords) : renderMarkdown(report, sections)
  return text.length <= OUTPUT_LIMIT
    ? text
    : `${clip(text, OUTPUT_LIMIT - 60)}\n\n(The rest was cut at ${OUTPUT_LIMIT} characters.)`
}

function renderMarkdown(report: Report, sections: readonly Section[]): string {
  const parts = [`# ${report.title}`, report.summary, ...sections.map(renderSection), `_${report.method}_`]
  return parts.filter(Boolean).join('\n\n')
}

/** Drops whole sections from the end until the text fits; only the summary may be cut within a sentence. */
function renderWithinWords(report: Report, sections: readonly Section[], maxWords: number): string {
  const countWords = (text: string) => text.split(/\s+/).filter(Boolean).length
  for (let sectionCount = sections.length; sectionCount >= 0; sectionCount--) {
    const text = [report.summary, ...sections.slice(0, sectionCount).map(renderSection)].filter(Boolean).join('\n\n')
    if (countWords(text) <= maxWords) return text
  }
  return report.summary.split(/\s+/).slice(0, maxWords).join(' ')
}

function renderSection(section: Section): string {
  const parts = [`## ${section.heading}`]
  if (section.prose) parts.push(section.prose)
  if (section.lines?.length) parts.push(section.lines.map((line) => `- ${line}`).join('\n'))
  if (section.table) parts.push(renderTable(section.table))
  if (section.code) parts.push(`\`\`\`${section.code.language}\n${section.code.text}\n\`\`\``)
  return parts.length > 1 ? parts.join('\n\n') : ''
}

function renderTable(table: NonNullable<Section['table']>): string {
  const renderRow = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll('\n', ' ')).join(' | ')} |`
  return [renderRow(table.columns), renderRow(table.columns.map(() => '---')), ...table.rows.map(renderRow)].join('\n')
}

function toListSection(section: Section): Section {
  const lines = [
    ...(section.prose ? [section.prose] : []),
    ...(section.lines ?? []),
    ...(section.table?.rows.map((row) => row.map((cell, i) => `${section.table!.columns[i]}: ${cell}`).join(', ')) ??
      []),
  ]
  return { heading: section.heading, lines, ...(section.code ? { code: section.code } : {}) }
}

/** Drops sections from the end until the JSON is within the limit, because truncated JSON would be invalid. */
function renderJson(report: Report): string {
  for (let sectionCount = report.sections.length; sectionCount > 0; sectionCount--) {
    const text = JSON.stringify(
      { ...report, sections: report.sections.slice(0, sectionCount), truncated: sectionCount < report.sections.length },
      storableValue,
      2,
    )
    if (text.length <= OUTPUT_LIMIT) return text
  }
  return JSON.stringify(
    { ...report, summary: clip(report.summary, 4000), sections: [], truncated: true },
    storableValue,
    2,
  )
}

/** JSON would escape half a surrogate pair instead of showing it. */
const storableValue = (_key: string, value: unknown) => (typeof value === 'string' ? toStorableText(value) : value)
