import type { CallToolResult, McpRequestContext, Server, ServerContext } from '@modelcontextprotocol/server'
import type { Caller } from '../../platform/auth-context.ts'
import type { Clock } from '../../platform/clock.ts'
import { asObject } from '../../platform/x402-wire.ts'
import { type Answer, type ClientRequest, callOperation, type SendRequest } from './call-operation.ts'
import { decodeHeader, PAYMENT_RESPONSE_META, paymentHeader } from './payment.ts'
import { handleTasks, TASK_HEADERS, TASK_TOOL, type TaskCalls, taskCapability, toCreatedTask } from './tasks.ts'
import { describeTools, maySee, type Operation, type Operations, type Tool } from './tools.ts'

export type McpDeps = {
  operations: Operations
  send: SendRequest
  clock: Clock
  version: () => string
  publicUrl: () => string
}

export type McpClient = ClientRequest & { caller: Caller }

export type Mcp = ReturnType<typeof createMcp>

const PRICING_URI = 'countersign://pricing'
const RECEIPT_TEMPLATE = 'countersign://receipts/{id}'
const RECEIPT_URI = /^countersign:\/\/receipts\/([\w-]{1,200})$/

const INSTRUCTIONS =
  'Countersign runs tasks for agents, takes payment and returns signed receipts. Ask route for the price, then call run. Without a key pay by x402: the error of an unpaid call has the terms, the same call with _meta["x402/payment"] is paid. With an X-API-Key a run may be paid from a wallet. A refusal names the rule and the smallest change that would pass.'

const CLIENT_CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'

/** The answer to one question of the protocol; the key in `inputRequests`. */
const APPROVAL = 'approval'

/** Each is a call of the API for its run. */
const TASK_OPERATIONS = new Set(['tasks/get', 'tasks/result', 'tasks/cancel'])

type SdkModule = typeof import('@modelcontextprotocol/server')

/**
 * The tools and resources of the Model Context Protocol. Each call is a request to the HTTP API of this process with the
 * caller's key, address and payment: there is no second way to anything.
 */
export function createMcp(deps: McpDeps) {
  const tools = describeTools(deps.operations)
  const findOperation = (operationId: string): Operation => deps.operations.get(operationId)!

  const callTool = async (
    sdk: SdkModule,
    era: McpRequestContext['era'],
    client: McpClient,
    { name, arguments: args = {}, task }: { name: string; arguments?: Record<string, unknown>; task?: unknown },
    { mcpReq }: ServerContext,
  ) => {
    const tool = tools.get(name)
    if (!tool) throw new sdk.ProtocolError(sdk.ProtocolErrorCode.InvalidParams, `Unknown tool: ${name.slice(0, 80)}`)
    const reply = sdk.inputResponse(mcpReq.inputResponses, APPROVAL)
    // Whoever may name the approval as an argument may do so here; whether it is approved is decided by the API.
    const approvalId = reply.kind === 'elicit' && reply.action === 'accept' ? mcpReq.requestState<string>() : undefined
    const allArgs = approvalId === undefined ? args : { ...args, approval_id: approvalId }
    const payment = tool.operation.config.paid ? paymentHeader(mcpReq._meta) : {}
    const asTask = era === 'legacy' && task !== undefined && name === TASK_TOOL
    const headers = asTask ? { ...payment, ...TASK_HEADERS } : payment
    const answer = await callOperation(deps.send, tool.operation, allArgs, client, headers)
    if (asTask) return toCreatedTask(sdk, answer, decodeHeader(answer.headers['payment-required']), deps.clock.now())
    const pendingId = pendingApproval(answer)
    const wasDeclined = reply.kind === 'elicit' && reply.action !== 'accept'
    const canAsk = era === 'modern' && canAskPerson(mcpReq.envelope)
    if (pendingId === undefined || wasDeclined || !canAsk) return toResult(answer)
    return sdk.inputRequired({
      inputRequests: {
        [APPROVAL]: sdk.inputRequired.elicit({
          message: `${messageOf(answer)} Somebody who may decide approves ${pendingId}, for example at ${deps.publicUrl()}/dashboard. Continue when it is approved.`,
          requestedSchema: { type: 'object', properties: {} },
        }),
      },
      requestState: pendingId,
    })
  }

  const taskCallsOf = (client: McpClient): TaskCalls => ({
    readRun: (id, headers) => callOperation(deps.send, findOperation('getRun'), { id }, client, headers),
    cancelRun: (id, headers) => callOperation(deps.send, findOperation('cancelRun'), { id }, client, headers),
  })

  const findResource = (uri: string) => {
    if (uri === PRICING_URI) return { operation: findOperation('getPricing'), args: {} }
    const id = RECEIPT_URI.exec(uri)?.[1]
    return id === undefined ? undefined : { operation: findOperation('getReceipt'), args: { id } }
  }

  const readResource = async (sdk: SdkModule, client: McpClient, uri: string) => {
    const resource = findResource(uri)
    if (!resource) throw new sdk.ResourceNotFoundError(uri)
    const answer = await callOperation(deps.send, resource.operation, resource.args, client)
    if (answer.status === 404) throw new sdk.ResourceNotFoundError(uri)
    if (answer.status !== 200) throw new sdk.ProtocolError(sdk.ProtocolErrorCode.InternalError, messageOf(answer))
    return { contents: [{ uri, mimeType: 'application/json', text: JSON.stringify(answer.body) }] }
  }

  return {
    tools,

    /** Whether the API counts this request itself, because the tool or resource is one of its metered calls. */
    isCountedByApi(message: { method?: unknown; params?: unknown }): boolean {
      const params = asObject(message.params)
      const operation =
        message.method === 'tools/call'
          ? tools.get(String(params?.name))?.operation
          : message.method === 'resources/read'
            ? findResource(String(params?.uri))?.operation
            : TASK_OPERATIONS.has(String(message.method))
              ? findOperation('getRun')
              : undefined
      return operation !== undefined && operation.config.unmetered !== true
    },

    /** A server for one exchange. */
    createServer(sdk: SdkModule, { era }: McpRequestContext, client: McpClient): Server {
      const server = new sdk.Server(
        { name: 'countersign', title: 'Countersign', version: deps.version() },
        {
          capabilities: { tools: {}, resources: {}, ...(era === 'legacy' && { tasks: taskCapability }) },
          instructions: INSTRUCTIONS,
          inputRequired: { legacyShim: false },
        },
      )
      server.setRequestHandler('tools/list', () => ({
        tools: [...tools.values()].filter((tool) => maySee(client.caller, tool)).map((tool) => describeTool(tool, era)),
      }))
      server.setRequestHandler('tools/call', ({ params }, context) => callTool(sdk, era, client, params, context))
      server.setRequestHandler('resources/list', () => ({
        resources: [{ uri: PRICING_URI, name: 'pricing', title: 'Price list', mimeType: 'application/json' }],
      }))
      server.setRequestHandler('resources/templates/list', () => ({
        resourceTemplates: [
          { uriTemplate: RECEIPT_TEMPLATE, name: 'receipt', title: 'A receipt', mimeType: 'application/json' },
        ],
      }))
      server.setRequestHandler('resources/read', ({ params }) => readResource(sdk, client, params.uri))
      if (era === 'legacy') handleTasks(sdk, server, taskCallsOf(client))
      return server
    },
  }
}

/** Clients of the revision before compare errors with the output schema too, so theirs allows an error. */
function describeTool({ operation: _, ...tool }: Tool, era: McpRequestContext['era']) {
  const { outputSchema, title, annotations } = tool
  const withErrors = { type: 'object' as const, anyOf: [outputSchema, { type: 'object', required: ['error'] }] }
  return {
    ...tool,
    outputSchema: era === 'legacy' ? withErrors : outputSchema,
    ...(era === 'legacy' && tool.name === TASK_TOOL && { execution: { taskSupport: 'optional' as const } }),
    annotations: { title, ...annotations },
  }
}

/** The terms of a 402 as the x402 transport for MCP has them, or the answer as it is. */
function toResult({ status, headers, body }: Answer): CallToolResult {
  const settlement = decodeHeader(headers['payment-response'])
  const structuredContent = (status === 402 && decodeHeader(headers['payment-required'])) || (asObject(body) ?? {})
  return {
    content: [{ type: 'text', text: JSON.stringify(structuredContent) }],
    structuredContent,
    ...(status >= 400 && { isError: true }),
    ...(settlement && { _meta: { [PAYMENT_RESPONSE_META]: settlement } }),
  }
}

/** Each request of the newer revision says what its client can do. */
const canAskPerson = (envelope: object | undefined) =>
  asObject((envelope as Record<string, unknown> | undefined)?.[CLIENT_CAPABILITIES])?.elicitation !== undefined

const messageOf = ({ body }: Answer) => String(asObject(body)?.message ?? '')

/** The approval that a refused request waits for. */
function pendingApproval({ status, body }: Answer): string | undefined {
  const refusal = asObject(body)
  const needsApproval = status === 429 && refusal?.outcome === 'review_required'
  return needsApproval && typeof refusal.approval_id === 'string' ? refusal.approval_id : undefined
}
