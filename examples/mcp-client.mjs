// Finds the tools of the MCP server, asks for a route, and has a task done from the wallet.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { baseUrl, createOrganisation } from './support.mjs'

const { apiKey, walletId } = await createOrganisation(1)
const client = new Client({ name: 'countersign-example', version: '1.0.0' })
await client.connect(
  new StreamableHTTPClientTransport(new URL('/mcp', baseUrl), { requestInit: { headers: { 'x-api-key': apiKey } } }),
)
const { tools } = await client.listTools()
console.log(`Tools: ${tools.map(({ name }) => name).join(', ')}`)

const task = 'Tell a joke about clocks.'
const route = await client.callTool({ name: 'route', arguments: { task } })
console.log(`Lane: ${route.structuredContent.recommended_agent_id}`)

const run = await client.callTool({
  name: 'run',
  arguments: { task, payment: { wallet_id: walletId }, idempotency_key: crypto.randomUUID() },
})
console.log(run.structuredContent.output)
console.log(`Paid ${run.structuredContent.price_usdc} USDC`)
await client.close()
