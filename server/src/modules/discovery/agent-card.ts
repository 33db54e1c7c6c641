import { usdcFromMicro } from '../../platform/money.ts'
import { type DiscoveryDeps, paidCalls, SERVICE_NAME, SUMMARY } from './discovery.ts'

/** The version of A2A whose agent card this is. */
const A2A_VERSION = '1.0'

/**
 * `/.well-known/agent-card.json` of A2A 1.0, so that agents and registries find the service and its prices. The calls
 * themselves are HTTP paid by x402, which the interfaces name as bindings of their own: A2A messages are not understood.
 */
export function agentCard({ publicUrl, lanes, priceRange, settlement, describeApi }: DiscoveryDeps) {
  const url = publicUrl()
  const [run] = paidCalls
  const { minMicro, maxMicro } = priceRange(run!.kind)
  return {
    name: SERVICE_NAME,
    description: `${SUMMARY} Called over HTTP as its OpenAPI description says or as an MCP server, not by A2A messages.`,
    version: (describeApi() as { info: { version: string } }).info.version,
    provider: { organization: SERVICE_NAME, url },
    documentationUrl: `${url}/docs`,
    supportedInterfaces: [
      { url: `${url}${run!.path}`, protocolBinding: `${url}/openapi.json`, protocolVersion: A2A_VERSION },
      { url: `${url}/mcp`, protocolBinding: 'https://modelcontextprotocol.io', protocolVersion: A2A_VERSION },
    ],
    capabilities: {
      streaming: false,
      pushNotifications: false,
      extendedAgentCard: false,
      extensions: [
        {
          uri: 'https://www.x402.org',
          description: `A run costs ${usdcFromMicro(minMicro)} to ${usdcFromMicro(maxMicro)} USDC, paid by x402 over HTTP.`,
          required: false,
          params: { ...settlement, discovery: `${url}/discovery/resources` },
        },
      ],
    },
    securitySchemes: {
      apiKey: {
        apiKeySecurityScheme: {
          location: 'header',
          name: 'X-API-Key',
          description: 'Optional: attaches the run to a tenant with budgets, policies and wallets.',
        },
      },
    },
    securityRequirements: [],
    defaultInputModes: ['application/json'],
    defaultOutputModes: ['application/json'],
    skills: lanes().map((lane) => ({
      id: lane.agentId,
      name: lane.displayName,
      description: `${lane.description} ${usdcFromMicro(lane.priceMicro)} USDC a run.`,
      tags: [lane.category, lane.tier],
      examples: [lane.recommendedUse],
      inputModes: ['application/json'],
      outputModes: ['application/json'],
    })),
  }
}
