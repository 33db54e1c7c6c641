import type { Router } from '../../src/modules/routing/model.ts'

export type LabelledTask = { lane: string; task: string; kind?: string }
export type LabelledPrediction = LabelledTask & { confidence: number; decided: string }

export type Evaluation = {
  tasks: number
  /** Share of tasks routed to the right lane; abstaining counts as `default`. */
  accuracy: number
  calibrationError: number
  /** Of tasks that have a kind. */
  perKind: readonly { kind: string; tasks: number; accuracy: number }[]
  perLane: readonly { lane: string; recall: number; precision: number }[]
  mistakes: readonly LabelledPrediction[]
}

const BINS = 10

export function evaluate(router: Router, tasks: readonly LabelledTask[]): Evaluation {
  return summarise(
    tasks.map((row) => {
      const best = router.predict(row.task).scores[0]!
      return {
        ...row,
        confidence: best.probability,
        decided: best.probability >= router.threshold ? best.agentId : 'default',
      }
    }),
  )
}

export const evaluateKeywords = (tasks: readonly LabelledTask[]): Evaluation =>
  summarise(tasks.map((row) => ({ ...row, decided: keywordBaseline(row.task), confidence: 1 })))

function summarise(predictions: readonly LabelledPrediction[]): Evaluation {
  const lanes = [...new Set(predictions.map((row) => row.lane))].sort()
  const kinds = [...new Set(predictions.flatMap((row) => row.kind ?? []))].sort()
  const share = (part: number, whole: number) => (whole > 0 ? part / whole : 0)
  const isRight = (row: LabelledPrediction) => row.decided === row.lane
  return {
    tasks: predictions.length,
    accuracy: share(predictions.filter(isRight).length, predictions.length),
    calibrationError: calibrationError(predictions),
    perKind: kinds.map((kind) => {
      const rows = predictions.filter((row) => row.kind === kind)
      return { kind, tasks: rows.length, accuracy: share(rows.filter(isRight).length, rows.length) }
    }),
    perLane: lanes.map((lane) => ({
      lane,
      recall: share(
        predictions.filter((row) => row.lane === lane && isRight(row)).length,
        predictions.filter((row) => row.lane === lane).length,
      ),
      precision: share(
        predictions.filter((row) => row.lane === lane && isRight(row)).length,
        predictions.filter((row) => row.decided === lane).length,
      ),
    })),
    mistakes: predictions.filter((row) => !isRight(row)),
  }
}

/** Expected calibration error over ten equal bins: the difference between stated confidence and accuracy. */
function calibrationError(predictions: readonly LabelledPrediction[]): number {
  let error = 0
  for (let bin = 0; bin < BINS; bin++) {
    const rows = predictions.filter((row) => Math.min(BINS - 1, Math.floor(row.confidence * BINS)) === bin)
    if (rows.length === 0) continue
    const confidence = rows.reduce((sum, row) => sum + row.confidence, 0) / rows.length
    const accuracy = rows.filter((row) => row.decided === row.lane).length / rows.length
    error += (rows.length / predictions.length) * Math.abs(confidence - accuracy)
  }
  return error
}

/** A baseline: the first lane, in the order of the price list, with a keyword that occurs in the task. */
const KEYWORDS: readonly (readonly [string, readonly string[]])[] = [
  ['comedian-v1', ['joke', 'funny', 'laugh', 'humor', 'comedy', 'pun', 'roast']],
  ['writer-v1', ['write', 'blog', 'article', 'email', 'essay', 'copy', 'draft', 'story']],
  ['support-v1', ['customer', 'refund', 'support', 'help', 'complaint', 'ticket', 'order']],
  ['analyst-v1', ['data', 'analyze', 'analysis', 'metrics', 'trend', 'csv', 'statistics']],
  ['coder-v1', ['code', 'function', 'bug', 'python', 'javascript', 'sql', 'debug']],
  ['strategist-v1', ['strategy', 'plan', 'roadmap', 'market', 'decision', 'priorit']],
  ['researcher-v2', ['research', 'study', 'evidence', 'source', 'find', 'history', 'compare']],
]

export function keywordBaseline(task: string): string {
  const text = task.toLowerCase()
  return KEYWORDS.find(([, words]) => words.some((word) => text.includes(word)))?.[0] ?? 'default'
}
