import type { Tool as ToolDescription } from '@modelcontextprotocol/server'
import type { FastifyContextConfig, FastifySchema } from 'fastify'
import type { Caller, KeyScope } from '../../platform/auth-context.ts'

/** A route of the HTTP API, as it was registered. */
export type Operation = { method: string; url: string; schema: FastifySchema; config: FastifyContextConfig }

/** The routes by their operation id. */
export type Operations = ReadonlyMap<string, Operation>

type ToolEntry = {
  name: string
  /** The operation of the HTTP API that the tool calls. */
  operationId: string
  title: string
  description: string
  annotations: { readOnlyHint: boolean; destructiveHint?: boolean; idempotentHint?: boolean; openWorldHint: boolean }
}

const reads = { readOnlyHint: true, openWorldHint: false }

const toolEntries: readonly ToolEntry[] = [
  {
    name: 'route',
    operationId: 'route',
    title: 'Choose a lane',
    description: 'Says which lane fits a task, what a run on it costs and why, with a signed quote. Free.',
    annotations: reads,
  },
  {
    name: 'run',
    operationId: 'run',
    title: 'Run a task',
    description:
      'Routes, executes, verifies, settles and attests one task. Paid by x402 in _meta["x402/payment"], or with a key from a wallet ("payment": {"wallet_id": …}). Without payment the result is an error with the x402 terms. Send an idempotency_key. A failed run is not charged.',
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  },
  {
    name: 'pre_authorize',
    operationId: 'createPreauth',
    title: 'Pre-authorise a payment',
    description:
      'Asks whether an agent may make a payment to a merchant. If so, the amount is held and a signed token is returned; close it with the tool close.',
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
  },
  {
    name: 'close',
    operationId: 'closePreauth',
    title: 'Close a pre-authorisation',
    description:
      'Reports what came of a pre-authorised payment: settled, failed or voided. What was not charged is released.',
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  },
  {
    name: 'approve',
    operationId: 'resolveApproval',
    title: 'Approve or reject',
    description: 'Approves or rejects a request that waits for a person. Needs a key with the scope control.',
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  },
  {
    name: 'spend',
    operationId: 'getSpend',
    title: 'Spend report',
    description: 'Says what the tenant spent, by day, spender, team, lane, merchant, tag, key or rail.',
    annotations: reads,
  },
  {
    name: 'receipts',
    operationId: 'listReceipts',
    title: 'List receipts',
    description: 'Lists public receipts, newest first. One receipt is the resource countersign://receipts/{id}.',
    annotations: reads,
  },
  {
    name: 'verify',
    operationId: 'verifyReceipt',
    title: 'Verify a receipt',
    description: 'Checks a receipt, given whole or by its id, and explains every check.',
    annotations: reads,
  },
  {
    name: 'basis_quote',
    operationId: 'getBasisQuote',
    title: 'Basis quote',
    description: 'Says what a tokenised equity costs against its underlying share.',
    annotations: { ...reads, openWorldHint: true },
  },
  {
    name: 'basis_attestation',
    operationId: 'getBasisAttestation',
    title: 'Basis attestation',
    description: 'Returns the signed attestation of a basis measurement.',
    annotations: { ...reads, openWorldHint: true },
  },
]

type ObjectSchema = ToolDescription['inputSchema']

export type Tool = Omit<ToolEntry, 'operationId'> & {
  inputSchema: ObjectSchema
  outputSchema: ObjectSchema
  operation: Operation
}

/** The tools over the routes that are registered; their schemas are those that the routes check. */
export const describeTools = (operations: Operations): ReadonlyMap<string, Tool> =>
  new Map(
    toolEntries.map(({ operationId, ...entry }) => {
      const operation = operations.get(operationId)
      if (!operation) throw new Error(`No route has the operation id ${operationId}.`)
      const { params, querystring, body, response } = operation.schema
      const tool: Tool = {
        ...entry,
        inputSchema: mergeSchemas([params, querystring, body].filter((part) => part !== undefined) as ObjectSchema[]),
        outputSchema: Object.entries(response as Record<string, ObjectSchema>).find(([status]) =>
          status.startsWith('2'),
        )![1],
        operation,
      }
      return [entry.name, tool] as const
    }),
  )

/** A tool has one object of arguments; no name is used twice among path, query and body of one route. */
const mergeSchemas = (parts: readonly ObjectSchema[]): ObjectSchema => ({
  ...(parts.length === 1 ? parts[0] : {}),
  type: 'object',
  properties: Object.assign({}, ...parts.map(({ properties }) => properties)),
  required: parts.flatMap(({ required = [] }) => required),
  additionalProperties: false,
})

/** Whether this caller may use the tool. A guest sees what a key could do, except for deciding about others. */
export function maySee(caller: Caller, { operation: { config } }: Tool): boolean {
  const scopes = [config.scope ?? []].flat() as KeyScope[]
  if (caller.kind === 'guest') return !scopes.includes('control')
  return scopes.length === 0 || scopes.some((scope) => caller.scopes.includes(scope))
}
