import type { FastifyRequest, preValidationAsyncHookHandler } from 'fastify'
import { type Static, Type } from 'typebox'
import { requireTenant } from '../../platform/auth-context.ts'
import type { App } from '../../platform/http-app.ts'
import { ErrorResponse } from '../../platform/http-openapi.ts'
import { hashBody, readIdempotencyKey } from '../../platform/idempotency.ts'
import { prefersAsync } from '../../platform/prefer.ts'
import { invalid } from '../../platform/problem.ts'
import { sendStoredResponse } from '../../platform/stored-response.ts'
import { paymentInfo, readPayment } from '../payments/x402.ts'
import type { createCancelRun } from './cancel-run.ts'
import { hashRequest, type PaidRequest } from './paid-request.ts'
import type { RunBody, RunResponse } from './paid-unit.ts'
import type { createRunEvents } from './run-events.ts'
import { readRunToken } from './run-token.ts'
import {
  GovernanceRefusal,
  LoopRequest,
  LoopSuccessResponse,
  LoopsQuery,
  PaymentRequiredResponse,
  RecentLoopsResponse,
  Run,
  RunCancelled,
  RunEvent,
  RunFailure,
  RunParams,
  RunPending,
  RunRequest,
  RunSuccessResponse,
  RunsQuery,
  RunsResponse,
  RunTokenHeader,
} from './runs.schema.ts'
import type { Runs } from './runs.ts'

export type RunRoutesDeps = {
  runs: Runs
  executeRun(request: PaidRequest): Promise<RunResponse>
  cancelRun: ReturnType<typeof createCancelRun>
  events: ReturnType<typeof createRunEvents>
  /** The 402 to a call without a body. */
  answerProbe(kind: PaidRequest['kind'], requestId: string): RunResponse
  limits: { payerPerMinute: number }
  priceRange(kind: PaidRequest['kind']): { minMicro: bigint; maxMicro: bigint }
}

const PATHS = { run: '/api/run', loop: '/api/loop' } as const

const paidResponses = {
  202: RunPending,
  402: PaymentRequiredResponse,
  404: ErrorResponse,
  409: ErrorResponse,
  410: ErrorResponse,
  429: GovernanceRefusal,
  500: RunFailure,
}

export function runsRoutes(
  app: App,
  { runs, executeRun, cancelRun, events, answerProbe, limits, priceRange }: RunRoutesDeps,
) {
  app.addHook('preClose', async () => events.endAll())

  const toPaidRequest = (
    request: FastifyRequest,
    kind: PaidRequest['kind'],
    body: RunBody,
    quoteToken?: string,
  ): PaidRequest => ({
    kind,
    route: PATHS[kind],
    caller: request.caller,
    body,
    quoteToken,
    requestHash: hashRequest(PATHS[kind], request.body as Record<string, unknown>),
    bodyHash: hashBody(request.body),
    idempotencyKey: readIdempotencyKey(request.headers['idempotency-key'], request.body),
    paid: readPayment(request.headers),
    requestId: request.id,
    respondAsync: prefersAsync(request.headers.prefer),
    countPayer: (payer) =>
      request.caller.kind === 'tenant' ? Promise.resolve() : request.limitAs(`payer:${payer}`, limits.payerPerMinute),
    countAddress: () => (request.caller.kind === 'tenant' ? Promise.resolve() : request.countAddress()),
    endTurn: () => request.endTurn(),
  })

  /** Indexes of paid services send a call with neither body nor content type to see what it costs. */
  const useProbe =
    (kind: PaidRequest['kind']): preValidationAsyncHookHandler =>
    async (request, reply) => {
      if (hasBodyOrType(request)) return
      if (readPayment(request.headers))
        throw invalid('A payment needs the request it pays for: send the body with it. The payment was not used.')
      return sendStoredResponse(reply, answerProbe(kind, request.id))
    }

  app.post(
    '/api/run',
    {
      schema: {
        operationId: 'run',
        tags: ['Execution'],
        summary: 'Route, execute, verify, settle and attest one task',
        description:
          'Paid by x402. Without payment the answer is 402 with the price; a run that fails is not charged. With `Prefer: respond-async` the answer to a payment is 202 at once, and `Location` has the run. A task that plainly asks for a translation or an image is 400 with `code: "lane_cannot"` and `needed` where the lanes have no model, before payment.',
        body: RunRequest,
        response: { 200: RunSuccessResponse, ...paidResponses },
        ...paymentInfo(priceRange('run')),
      },
      preValidation: useProbe('run'),
      config: { auth: 'optional', scope: 'run', paid: true },
    },
    async (request, reply) =>
      sendStoredResponse(
        reply,
        await executeRun(toPaidRequest(request, 'run', toRunBody(request.body), request.body.quote?.signature)),
      ),
  )

  app.post(
    '/api/loop',
    {
      schema: {
        operationId: 'loop',
        tags: ['Execution'],
        summary: 'The execution primitive below a run',
        description:
          'One call of one lane, without routing and orchestration. Paid by x402 at the base price of the lane; without an `agent_id` the default lane works. `lane_cannot` as for a run.',
        body: LoopRequest,
        response: { 200: LoopSuccessResponse, ...paidResponses },
        ...paymentInfo(priceRange('loop')),
      },
      preValidation: useProbe('loop'),
      config: { auth: 'optional', scope: 'run', paid: true },
    },
    async (request, reply) =>
      sendStoredResponse(reply, await executeRun(toPaidRequest(request, 'loop', toLoopBody(request.body)))),
  )

  app.get(
    '/api/loops',
    {
      schema: {
        operationId: 'listLoops',
        tags: ['Execution'],
        summary: 'Recent loops; guests get an empty list',
        querystring: LoopsQuery,
        response: { 200: RecentLoopsResponse },
      },
      config: { auth: 'optional', scope: 'read' },
    },
    async (request) =>
      request.caller.kind === 'guest' ? { loops: [], count: 0 } : runs.loops(request.caller, request.query),
  )

  app.get(
    '/api/runs',
    {
      schema: {
        operationId: 'listRuns',
        tags: ['Execution'],
        summary: 'The tenant’s runs, newest first',
        querystring: RunsQuery,
        response: { 200: RunsResponse },
      },
      config: { auth: 'tenant', scope: 'read' },
    },
    async (request) => runs.list(requireTenant(request.caller), request.query),
  )
  app.get(
    '/api/runs/:id',
    {
      schema: {
        operationId: 'getRun',
        tags: ['Execution'],
        summary: 'One run, with the answer that was given for it',
        description:
          'A tenant’s run, with its answer. Without a key: how an asynchronous run goes that was paid without one, and with the token of its 202 in the header `X-Run-Token` also its answer.',
        params: RunParams,
        headers: RunTokenHeader,
        response: { 200: Run },
      },
      config: { auth: 'optional', scope: 'read', fromAnyOrigin: true },
    },
    async ({ caller, headers, params: { id } }, reply) => {
      reply.header('cache-control', 'no-store')
      return caller.kind === 'guest' ? runs.getOfGuest(id, readRunToken(headers['x-run-token'])) : runs.get(caller, id)
    },
  )
  app.get(
    '/api/runs/:id/events',
    {
      // A HEAD response has no body, so its stream would stay open without sending anything.
      exposeHeadRoute: false,
      schema: {
        operationId: 'streamRun',
        tags: ['Execution'],
        summary: 'The states of a run as server-sent events',
        description:
          'Events named `state`, whose data is a `RunEvent`: `pending`, then `settling` where a payment is settled, then `completed` or `failed`, which is the last. `Last-Event-ID` resumes after that event; 204 says that there is no other. The text of an asynchronous run that is paid from a wallet or escrow and has `accept_unverified` is sent while a model writes it, in events named `text` with `{run_id, offset, text}`: it replaces everything from `offset` on, and offset 0 begins anew, on every connection and whenever a model is asked again. What counts is the output of the answer.',
        params: RunParams,
        response: {
          200: {
            description: 'Events named `state` until the run has ended; the schema is that of the data of one event.',
            content: { 'text/event-stream': { schema: RunEvent } },
          },
          204: Type.Null({ description: 'The last event was seen.' }),
        },
      },
      config: { auth: 'optional', scope: 'read', uncounted: true, fromAnyOrigin: true },
    },
    async (request, reply) => {
      const { id } = request.params
      return events.open(request, reply, id, await runs.readStatus(request.caller, id))
    },
  )
  app.post(
    '/api/runs/:id/cancel',
    {
      schema: {
        operationId: 'cancelRun',
        tags: ['Execution'],
        summary: 'Cancel a run before its work is done',
        description:
          'Nothing is charged and no output is shown; the run ends as failed, with a signed receipt that says so. Only a run whose text was streamed already ends as completed, with that text as its output, and is charged. 409 once the result is stored. A run that was paid without a key is cancelled with the token of its 202 in the header `X-Run-Token`, or with its payment in `PAYMENT-SIGNATURE`.',
        params: RunParams,
        headers: RunTokenHeader,
        response: { 200: RunCancelled, 409: ErrorResponse },
      },
      config: { auth: 'optional', scope: 'run', fromAnyOrigin: true },
    },
    async ({ caller, headers, params: { id } }) => {
      const proof = { paid: readPayment(headers), token: readRunToken(headers['x-run-token']) }
      const { receiptId, charged } = await cancelRun(caller, proof, id)
      const status = charged ? ('completed' as const) : ('failed' as const)
      return { run_id: id, status, reason: 'cancelled' as const, charged, receipt_url: `/api/receipts/${receiptId}` }
    },
  )
}

/** In HTTP/1.1 a request without these headers has no body. */
const hasBodyOrType = ({ headers }: FastifyRequest) =>
  headers['content-type'] !== undefined ||
  headers['transfer-encoding'] !== undefined ||
  Number(headers['content-length'] ?? 0) > 0

function toRunBody(body: Static<typeof RunRequest>): RunBody {
  const {
    task: taskField,
    intent,
    agent_id,
    preferred_agent_id,
    lane_id,
    quote: _,
    idempotency_key: __,
    ...fields
  } = body
  const task = readAlias('task', [taskField, intent])
  if (task === undefined) throw invalid('body must have a task.')
  if (task.trim() === '') throw invalid('body/task must not be blank.')
  return {
    ...(fields as Omit<RunBody, 'task'>),
    task,
    ...agentField(readAlias('agent_id', [agent_id, preferred_agent_id, lane_id])),
  }
}

function toLoopBody(body: Static<typeof LoopRequest>): RunBody {
  const { input, agent_id, idempotency_key: _, ...fields } = body
  if (input.trim() === '') throw invalid('body/input must not be blank.')
  return { ...(fields as Omit<RunBody, 'task'>), task: input, ...agentField(agent_id) }
}

const agentField = (agent_id: string | undefined) => (agent_id === undefined ? {} : { agent_id })

/** Aliases may repeat each other but not disagree. */
function readAlias(name: string, values: (string | undefined)[]): string | undefined {
  const distinct = [...new Set(values.filter((value) => value !== undefined))]
  if (distinct.length > 1) throw invalid(`body/${name} and its aliases differ.`)
  return distinct[0]
}
