import type { Router } from '../../src/modules/routing/model.ts'

export type LabelledPrediction = { lane: string; task: string; predicted: string; confidence: number; decided: string }

export type Evaluation = {
  tasks: number
  /** Share of tasks routed to the right lane; falling back to `default` counts as wrong. */
  accuracy: number
  /** Share of tasks whose most likely lane is the right one, whatever the confidence. */
  topAccuracy: number
  calibrationError: number
  perLane: readonly { lane: string; recall: number; precision: number }[]
  mistakes: readonly LabelledPrediction[]
}

const BINS = 10

export function evaluate(router: Router, tasks: readonly { lane: string; task: string }[]): Evaluation {
  const predictions = tasks.map(({ lane, task }) => {
    const best = router.predict(task).scores[0]!
    return {
      lane,
      task,
      predicted: best.agentId,
      confidence: best.probability,
      decided: best.probability >= router.threshold ? best.agentId : 'default',
    }
  })
  return summarise(predictions)
}

export function summarise(predictions: readonly LabelledPrediction[]): Evaluation {
  const lanes = [...new Set(predictions.map((row) => row.lane))].sort()
  const share = (part: number, whole: number) => (whole > 0 ? part / whole : 0)
  return {
    tasks: predictions.length,
    accuracy: share(predictions.filter((row) => row.decided === row.lane).length, predictions.length),
    topAccuracy: share(predictions.filter((row) => row.predicted === row.lane).length, predictions.length),
    calibrationError: calibrationError(predictions),
    perLane: lanes.map((lane) => ({
      lane,
      recall: share(
        predictions.filter((row) => row.lane === lane && row.decided === lane).length,
        predictions.filter((row) => row.lane === lane).length,
      ),
      precision: share(
        predictions.filter((row) => row.lane === lane && row.decided === lane).length,
        predictions.filter((row) => row.decided === lane).length,
      ),
    })),
    mistakes: predictions.filter((row) => row.decided !== row.lane),
  }
}

/** Expected calibration error over ten equal bins: the difference between stated confidence and accuracy. */
function calibrationError(predictions: readonly LabelledPrediction[]): number {
  let error = 0
  for (let bin = 0; bin < BINS; bin++) {
    const rows = predictions.filter((row) => Math.min(BINS - 1, Math.floor(row.confidence * BINS)) === bin)
    if (rows.length === 0) continue
    const confidence = rows.reduce((sum, row) => sum + row.confidence, 0) / rows.length
    const accuracy = rows.filter((row) => row.predicted === row.lane).length / rows.length
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
