import { createCodeParser } from '../src/adapters/parsers/code-parser.ts'
import { createVerification } from '../src/modules/verification/verification.ts'

/** One line of `server/data/verification/*.jsonl`. `visible: false`: only somebody who knows the world could see the fault. */
export type LabelledOutput = {
  id: string
  lane: string
  task: string
  context?: string[]
  output: string
  label: (typeof LABELS)[number]
  visible: boolean
  note: string
}

export const LABELS = [
  'right',
  'wrong_checkable',
  'refusing',
  'off_subject',
  'placeholder',
  'truncated',
  'injected',
  'other_language',
] as const

export type MeasuredOutput = { item: LabelledOutput; verified: boolean; faults: string[] }

/** Verifies each output as the work of a model. */
export async function measureVerification(items: readonly LabelledOutput[]): Promise<MeasuredOutput[]> {
  const parser = createCodeParser()
  const verify = createVerification({ parseCode: parser.parse })
  const measured: MeasuredOutput[] = []
  for (const item of items) {
    const { lane: agentId, task, output, context } = item
    const { verified, checks } = await verify({ agentId, task, output, mode: 'live', ...(context && { context }) })
    const faults = checks
      .filter((check) => !check.passed)
      .map(({ name, detail, decides }) => `${decides ? '' : '('}${name}${decides ? '' : ')'}: ${detail}`)
    measured.push({ item, verified, faults })
  }
  return measured
}

const percent = (part: number, whole: number) => (whole === 0 ? '–' : `${((100 * part) / whole).toFixed(1)} %`)

export function summarise(measured: readonly MeasuredOutput[]) {
  const right = measured.filter(({ item }) => item.label === 'right')
  const bad = measured.filter(({ item }) => item.label !== 'right' && item.visible)
  const refused = (items: readonly MeasuredOutput[]) => items.filter(({ verified }) => !verified).length
  return { right: right.length, rightRefused: refused(right), bad: bad.length, badRefused: refused(bad) }
}

/** Refused of all, by label and lane. Outputs whose fault no check could see have a row of their own. */
export function renderConfusionTable(measured: readonly MeasuredOutput[]): string {
  const lanes = [...new Set(measured.map(({ item }) => item.lane))].sort()
  const cell = (items: readonly MeasuredOutput[]) =>
    items.length === 0 ? '' : `${items.filter(({ verified }) => !verified).length}/${items.length}`
  const row = (name: string, select: (item: LabelledOutput) => boolean) => {
    const items = measured.filter(({ item }) => select(item))
    return `| ${[name, ...lanes.map((lane) => cell(items.filter(({ item }) => item.lane === lane))), cell(items)].join(' | ')} |`
  }
  const { right, rightRefused, bad, badRefused } = summarise(measured)
  return [
    `| refused of | ${lanes.join(' | ')} | all |`,
    `|---|${lanes.map(() => '---|').join('')}---|`,
    ...LABELS.map((label) => row(label, (item) => item.label === label && (item.visible || label === 'right'))),
    row('not visible', (item) => item.label !== 'right' && !item.visible),
    '',
    `Refused: ${badRefused} of ${bad} bad outputs whose fault a check could see (${percent(badRefused, bad)}), ${rightRefused} of ${right} right ones (${percent(rightRefused, right)}).`,
  ].join('\n')
}
