import { type DiscoveryDeps, type PaidCall, type PaidTool, paidCalls, SERVICE_NAME } from './discovery.ts'

/** `/.well-known/x402`: the addresses that can be paid for, as x402's indexes read them. */
export const wellKnownX402 = ({ publicUrl }: DiscoveryDeps) => ({
  version: 1,
  x402Version: 2,
  resources: paidCalls.map(({ path }) => `${publicUrl()}${path}`),
  instructions: `Send POST without a body to get the price range and the input schema as a 402, or with a JSON body to get the exact price. Guide: ${publicUrl()}/llms.txt`,
  discovery: `${publicUrl()}/discovery/resources`,
  openapi: `${publicUrl()}/openapi.json`,
})

export type ResourceFilter = {
  type?: string
  payTo?: string
  scheme?: string
  network?: string
  extensions?: string
  limit?: number
  offset?: number
}

export const MAX_RESOURCES = 100

/** `/discovery/resources`: the discovery API of x402 facilitators, for our own resources. */
export function listResources(deps: DiscoveryDeps, filter: ResourceFilter) {
  const { limit = MAX_RESOURCES, offset = 0 } = filter
  const matches = resources(deps).filter(
    ({ type, accepts: [terms], extensions }) =>
      (filter.type === undefined || filter.type === type) &&
      (filter.payTo === undefined || filter.payTo.toLowerCase() === String(terms!.payTo).toLowerCase()) &&
      (filter.scheme === undefined || filter.scheme === terms!.scheme) &&
      (filter.network === undefined || filter.network === terms!.network) &&
      (filter.extensions === undefined || Object.hasOwn(extensions, filter.extensions)),
  )
  return {
    x402Version: 2,
    items: matches.slice(offset, offset + limit),
    pagination: { limit, offset, total: matches.length },
  }
}

const resources = (deps: DiscoveryDeps) => [
  ...paidCalls.map(({ kind, purpose }) => ({
    ...describeResource(deps, kind, purpose),
    resource: deps.paymentRequired(kind).resource.url,
    type: 'http',
    extensions: deps.paymentRequired(kind).extensions,
  })),
  ...deps.paidTools().map((tool) => ({
    ...describeResource(deps, tool.kind, tool.description),
    resource: `${deps.publicUrl()}/mcp`,
    type: 'mcp',
    extensions: toolExtension(tool),
  })),
]

function describeResource(deps: DiscoveryDeps, kind: PaidCall['kind'], description: string) {
  const { resource, accepts } = deps.paymentRequired(kind)
  return {
    x402Version: 2,
    accepts,
    lastUpdated: deps.updatedAt().toISOString(),
    description,
    mimeType: resource.mimeType,
    serviceName: SERVICE_NAME,
    tags: ['agents', 'execution', 'receipts', 'governance'],
  }
}

/** The extension `bazaar` for a tool of the Model Context Protocol. */
const toolExtension = ({ name, description, inputSchema, example }: PaidTool) => ({
  bazaar: {
    info: {
      input: { type: 'mcp', toolName: name, description, transport: 'streamable-http', inputSchema, example },
    },
    schema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: {
        input: {
          type: 'object',
          properties: {
            type: { const: 'mcp' },
            toolName: { type: 'string' },
            description: { type: 'string' },
            transport: { enum: ['streamable-http'] },
            inputSchema: { type: 'object' },
            example: { type: 'object' },
          },
          required: ['type', 'toolName', 'inputSchema'],
        },
      },
      required: ['input'],
    },
  },
})
