// Receives webhooks: verifies the signature over the bytes as they came, answers fast, and does each event once.
import { createServer } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { verifyWebhook, WebhookRefused } from '@countersign/sdk'
import { createOrganisation } from './support.mjs'

const { client } = await createOrganisation(1)
const finished = new Set()
let secret

const server = createServer(async (request, response) => {
  try {
    const event = await verifyWebhook(await buffer(request), request.headers, secret)
    response.writeHead(204).end()
    // A delivery can come more than once; its id is the same each time.
    const id = request.headers['webhook-id']
    if (finished.has(id)) return
    finished.add(id)
    console.log(`${event.type} ${event.data.run_id}`)
    server.close()
    server.closeAllConnections()
  } catch (error) {
    if (!(error instanceof WebhookRefused)) throw error
    response.writeHead(400).end()
  }
})
server.listen(0, '127.0.0.1', async () => {
  const url = `http://127.0.0.1:${server.address().port}/`
  const subscription = await client.post('/api/webhooks', { body: { url, events: ['run.completed'] } })
  secret = subscription.signingSecret
  const forged = await fetch(url, { method: 'POST', body: '{}' })
  console.log(`A delivery without a signature is refused: ${forged.status}`)
  await client.run({ task: 'Tell a joke about clocks.', agent_id: 'comedian-v1' })
})
