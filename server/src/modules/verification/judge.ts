import { type Finding, failed, notApplicable, passed } from './finding.ts'
import type { AskJudge, Criterion, JudgeRequest, LaneUsage } from './judge-port.ts'
import { clip, containsText, plainText } from './text.ts'

/** What a judge has to look for, beside what every lane must do. */
const COMMON: readonly Criterion[] = [
  { name: 'answers_task', question: 'Does the output do what the task asks, and not something else?' },
  { name: 'nothing_missing', question: 'Does the output have every part that the task asks for?' },
]

const BY_LANE: Readonly<Record<string, readonly Criterion[]>> = {
  'comedian-v1': [{ name: 'on_subject', question: 'Is it about the subject that was named?' }],
  'writer-v1': [
    { name: 'facts_kept', question: 'Are the facts, names and figures of the task kept as they are?' },
    { name: 'form_kept', question: 'Does it have the kind of text, length and audience asked for?' },
  ],
  'support-v1': [
    { name: 'policy_kept', question: 'Does it promise only what the rules given allow?' },
    { name: 'facts_kept', question: 'Are the facts, names and figures of the task kept as they are?' },
  ],
  'analyst-v1': [
    { name: 'figures_right', question: 'Do all figures follow from the data given?' },
    { name: 'conclusion_follows', question: 'Does the conclusion follow from the figures?' },
  ],
  'coder-v1': [
    { name: 'code_works', question: 'Would the code run and do what was asked?' },
    { name: 'defect_gone', question: 'Is the defect that the task names gone?' },
  ],
  'strategist-v1': [
    { name: 'constraints_kept', question: 'Does the advice keep to every constraint of the task?' },
    { name: 'reasons_given', question: 'Is each recommendation given a reason?' },
  ],
  'researcher-v2': [
    { name: 'source_kept', question: 'Where a text is given, does the output agree with it?' },
    { name: 'no_contradiction', question: 'Is the output free of statements that contradict each other?' },
  ],
}

export const rubricOf = (agentId: string): readonly Criterion[] => [...COMMON, ...(BY_LANE[agentId] ?? [])]

export type JudgeOpinion = { finding: Finding; asked?: { provider: string; model: string; usage: LaneUsage } }

/** Asks the judge. One that fails, is late or answers nonsense decides nothing. */
export async function askJudge(
  ask: AskJudge,
  request: Omit<JudgeRequest, 'criteria' | 'schema'>,
): Promise<JudgeOpinion> {
  const criteria = rubricOf(request.agentId)
  const reply = await ask({ ...request, criteria, schema: judgementSchema(criteria) }).catch(() => undefined)
  if (!reply) return { finding: notApplicable }
  const { text, ...asked } = reply
  return { finding: weighJudgement(text, criteria, request), asked }
}

type Failure = { criterion: string; quoted_from: 'task' | 'output'; quotation: string }

const MAX_ANSWER = 8_000
const MIN_QUOTED_WORDS = 2

/**
 * What a judge's answer decides. It can only fail criteria of the rubric, each with a passage that really stands in the
 * output or in the task. An answer of another form, a passage that is not there, or a judge that fails everything makes
 * the whole answer unusable.
 */
export function weighJudgement(
  text: string,
  criteria: readonly Criterion[],
  { task, output, context = [] }: Pick<JudgeRequest, 'task' | 'output' | 'context'>,
): Finding {
  const failures = readFailures(text, criteria)
  if (!failures || failures.length >= criteria.length) return notApplicable
  if (failures.length === 0) return passed
  const passages = { task: plainText([task, ...context].join('\n')), output: plainText(output) }
  const isShown = ({ quoted_from, quotation }: Failure) => {
    const quoted = plainText(quotation)
    const isWhole = quoted === passages[quoted_from]
    return (
      quoted !== '' &&
      (isWhole || quoted.split(' ').length >= MIN_QUOTED_WORDS) &&
      containsText(` ${passages[quoted_from]} `, ` ${quoted} `)
    )
  }
  if (!failures.every(isShown)) return notApplicable
  return failed(clip(failures.map(({ criterion }) => criterion).join(', '), 120))
}

function readFailures(text: string, criteria: readonly Criterion[]): Failure[] | undefined {
  if (text.length > MAX_ANSWER) return undefined
  let answer: unknown
  try {
    answer = JSON.parse(text)
  } catch {
    return undefined
  }
  const list = isRecord(answer) && Object.keys(answer).length === 1 ? answer.failures : undefined
  if (!Array.isArray(list) || list.length > criteria.length) return undefined
  const names = new Set<string>()
  for (const item of list as unknown[]) {
    if (!isRecord(item)) return undefined
    const { criterion, quoted_from, quotation } = item
    if (typeof criterion !== 'string' || typeof quotation !== 'string') return undefined
    if (quoted_from !== 'task' && quoted_from !== 'output') return undefined
    if (names.has(criterion) || !criteria.some(({ name }) => name === criterion)) return undefined
    names.add(criterion)
  }
  return list as Failure[]
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The schema of a judge's answer, for providers that enforce one. */
const judgementSchema = (criteria: readonly Criterion[]) => ({
  type: 'object' as const,
  properties: {
    failures: {
      type: 'array' as const,
      maxItems: criteria.length,
      items: {
        type: 'object' as const,
        properties: {
          criterion: { type: 'string' as const, enum: criteria.map(({ name }) => name) },
          quoted_from: { type: 'string' as const, enum: ['task', 'output'] },
          quotation: { type: 'string' as const },
        },
        required: ['criterion', 'quoted_from', 'quotation'],
        additionalProperties: false,
      },
    },
  },
  required: ['failures'],
  additionalProperties: false,
})
