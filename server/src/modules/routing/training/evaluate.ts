import type { Router } from '../model.ts'

export type Judged = { lane: string; task: string; predicted: string; confidence: number; decided: string }

export type Evaluation = {
  tasks: number
  /** Share of tasks whose final lane is the right one; falling back to `default` counts as wrong. */
  accuracy: number
  /** Share whose most likely lane is the right one, whatever the confidence. */
  topAccuracy: number
  calibrationError: number
  perLane: readonly { lane: string; recall: number; precision: number }[]
  mistakes: readonly Judged[]
}

const BINS = 10

export function evaluate(router: Router, tasks: readonly { lane: string; task: string }[]): Evaluation {
  const judged = tasks.map(({ lane, task }) => {
    const best = router.read(task).scores[0]!
    return {
      lane,
      task,
      predicted: best.agentId,
      confidence: best.probability,
      decided: best.probability >= router.threshold ? best.agentId : 'default',
    }
  })
  return summarise(judged)
}

export function summarise(judged: readonly Judged[]): Evaluation {
  const lanes = [...new Set(judged.map((row) => row.lane))].sort()
  const share = (part: number, whole: number) => (whole > 0 ? part / whole : 0)
  return {
    tasks: judged.length,
    accuracy: share(judged.filter((row) => row.decided === row.lane).length, judged.length),
    topAccuracy: share(judged.filter((row) => row.predicted === row.lane).length, judged.length),
    calibrationError: calibrationError(judged),
    perLane: lanes.map((lane) => ({
      lane,
      recall: share(
        judged.filter((row) => row.lane === lane && row.decided === lane).length,
        judged.filter((row) => row.lane === lane).length,
      ),
      precision: share(
        judged.filter((row) => row.lane === lane && row.decided === lane).length,
        judged.filter((row) => row.decided === lane).length,
      ),
    })),
    mistakes: judged.filter((row) => row.decided !== row.lane),
  }
}

/** Expected calibration error over ten equal bins: how far stated confidence lies from how often it was right. */
function calibrationError(judged: readonly Judged[]): number {
  let error = 0
  for (let bin = 0; bin < BINS; bin++) {
    const inside = judged.filter((row) => Math.min(BINS - 1, Math.floor(row.confidence * BINS)) === bin)
    if (inside.length === 0) continue
    const confidence = inside.reduce((sum, row) => sum + row.confidence, 0) / inside.length
    const right = inside.filter((row) => row.predicted === row.lane).length / inside.length
    error += (inside.length / judged.length) * Math.abs(confidence - right)
  }
  return error
}

/** What routing by one keyword match would do: the first lane one of whose words occurs, in the order of the price list. */
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
