import { setTimeout as sleep } from 'node:timers/promises'
import type { CallToolResult, Server, ServerContext, StandardSchemaV1 } from '@modelcontextprotocol/server'
import { asObject } from '../../platform/x402-wire.ts'
import type { Answer } from './call-operation.ts'

/**
 * Tasks of revision 2025-11-25: a call of the tool `run` that asks for a task is an asynchronous run, and the task is that
 * run. Nothing is kept here, so any process answers for any task. The revision after it has no tasks.
 */
export const TASK_TOOL = 'run'

export const taskCapability = { requests: { tools: { call: {} } }, cancel: {} }

/** Asks the API for 202 at once. */
export const TASK_HEADERS = { prefer: 'respond-async' }

const RELATED_TASK = 'io.modelcontextprotocol/related-task'
const POLL_INTERVAL_MS = 1_000
const MAX_POLL_INTERVAL_MS = 5_000
/** A lane works for 55 minutes at most, and its payment is settled after that. */
const MAX_WAIT_MS = 60 * 60_000

type SdkModule = typeof import('@modelcontextprotocol/server')

/** Calls of the API for one client: the run and its cancellation, with a guest's token where the task has one. */
export type TaskCalls = {
  readRun(runId: string, headers: Record<string, string>): Promise<Answer>
  cancelRun(runId: string, headers: Record<string, string>): Promise<Answer>
}

/** The task of an accepted run. An answer that is none of a run (402, a refusal) begins no task, which the protocol reports as an error. */
export function toCreatedTask(sdk: SdkModule, { status, body }: Answer, terms: unknown, now: Date): CallToolResult {
  const answer = asObject(body)
  const runId = answer?.run_id
  const isRun = typeof runId === 'string' && (status === 202 || status === 200 || answer?.status === 'failed')
  if (!isRun)
    throw new sdk.ProtocolError(sdk.ProtocolErrorCode.InvalidParams, String(answer?.message ?? 'No task was begun.'), {
      status,
      ...(asObject(terms) ?? answer),
    })
  const taskId = typeof answer?.token === 'string' ? `${runId}.${answer.token}` : runId
  const at = now.toISOString()
  const task = {
    taskId,
    status: 'working',
    ttl: null,
    createdAt: at,
    lastUpdatedAt: at,
    pollInterval: POLL_INTERVAL_MS,
  }
  return { content: [], task }
}

/** Registers the methods of tasks; a list is not offered, because a guest's tasks have no owner to list them for. */
export function handleTasks(sdk: SdkModule, server: Server, { readRun, cancelRun }: TaskCalls) {
  const unknownTask = () => new sdk.ProtocolError(sdk.ProtocolErrorCode.InvalidParams, 'There is no such task.')

  const readTask = async (taskId: string) => {
    const { runId, headers } = parseTaskId(taskId)
    const answer = await readRun(runId, headers)
    if (NO_SUCH_RUN.includes(answer.status)) throw unknownTask()
    if (answer.status !== 200) throw new sdk.ProtocolError(sdk.ProtocolErrorCode.InternalError, messageOf(answer))
    return toTask(taskId, answer.body as RunBody)
  }

  server.setRequestHandler('tasks/get', { params: taskParams }, async ({ taskId }) => (await readTask(taskId)).task)

  server.setRequestHandler('tasks/result', { params: taskParams }, async ({ taskId }, { mcpReq }: ServerContext) => {
    const deadline = performance.now() + MAX_WAIT_MS
    for (let pauseMs = POLL_INTERVAL_MS / 4; ; pauseMs = Math.min(2 * pauseMs, MAX_POLL_INTERVAL_MS)) {
      const { answer } = await readTask(taskId)
      if (answer) return { ...toToolResult(answer), _meta: { [RELATED_TASK]: { taskId } } }
      if (performance.now() > deadline)
        throw new sdk.ProtocolError(sdk.ProtocolErrorCode.InternalError, 'The task takes too long; ask again.')
      await sleep(pauseMs, undefined, { signal: mcpReq.signal })
    }
  })

  server.setRequestHandler('tasks/cancel', { params: taskParams }, async ({ taskId }) => {
    const { runId, headers } = parseTaskId(taskId)
    const answer = await cancelRun(runId, headers)
    if (NO_SUCH_RUN.includes(answer.status)) throw unknownTask()
    if (answer.status !== 200) throw new sdk.ProtocolError(sdk.ProtocolErrorCode.InvalidParams, messageOf(answer))
    return (await readTask(taskId)).task
  })
}

/** A guest's task has the token of its run in its id. */
function parseTaskId(taskId: string) {
  const [runId = '', token] = taskId.split('.')
  const headers: Record<string, string> = token === undefined ? {} : { 'x-run-token': token }
  return { runId, headers }
}

type StoredAnswer = { status: number; body: Record<string, unknown> }
type RunBody = { outcome: string; created_at: string; answer: StoredAnswer | null }

const STATUSES: Record<string, string> = { completed: 'completed', failed: 'failed', blocked: 'failed' }

function toTask(taskId: string, { outcome, created_at, answer }: RunBody) {
  const receipt = asObject(answer?.body.receipt)
  const wasCancelled = asObject(receipt?.settlement)?.reason === 'cancelled'
  const task = {
    taskId,
    status: wasCancelled ? 'cancelled' : (STATUSES[outcome] ?? 'working'),
    ttl: null,
    createdAt: created_at,
    lastUpdatedAt: typeof receipt?.issued_at === 'string' ? receipt.issued_at : created_at,
    pollInterval: POLL_INTERVAL_MS,
    ...(outcome === 'failed' && { statusMessage: String(answer?.body.message ?? '') }),
  }
  return { task, answer }
}

const toToolResult = ({ status, body }: StoredAnswer): CallToolResult => ({
  content: [{ type: 'text', text: JSON.stringify(body) }],
  structuredContent: body,
  ...(status >= 400 && { isError: true }),
})

const messageOf = ({ body }: Answer) => String(asObject(body)?.message ?? '')

/** An id that no run can have, a run of somebody else, and one that there is not. */
const NO_SUCH_RUN = [400, 401, 404]

const MAX_TASK_ID = 200

/** The parameters of `tasks/get`, `tasks/result` and `tasks/cancel`. */
const taskParams: StandardSchemaV1<unknown, { taskId: string }> = {
  '~standard': {
    version: 1,
    vendor: 'countersign',
    validate: (params) => {
      const taskId = asObject(params)?.taskId
      return typeof taskId === 'string' && taskId.length <= MAX_TASK_ID
        ? { value: { taskId } }
        : { issues: [{ message: `taskId must be text of at most ${MAX_TASK_ID} characters.` }] }
    },
  },
}
