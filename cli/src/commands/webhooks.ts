import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { verifyWebhook, type WebhookEvent } from '@countersign/sdk'
import { Command } from 'commander'
import { list, wholeNumber } from '../arguments.ts'
import { CliError } from '../cli-error.ts'
import { dim, formatTable, green, red, safeText, show } from '../output.ts'
import { connect, type ServiceOptions, serviceCommand } from '../service.ts'

const MAX_BODY_BYTES = 1024 * 1024
const FORWARD_MS = 10_000

type ListenOptions = ServiceOptions & { forward?: string; publicUrl?: string; port: number; events: string[] }

export function webhooksCommand(): Command {
  const webhooks = new Command('webhooks').description('events over HTTP')
  webhooks.addCommand(
    serviceCommand('list')
      .description('subscriptions')
      .action(async (options: ServiceOptions) =>
        show(await connect(options).get('/api/webhooks'), options, ({ subscriptions }) =>
          formatTable(subscriptions, [
            ['WEBHOOK', ({ id }) => id],
            ['URL', ({ url }) => url],
            ['EVENTS', ({ events }) => events.join(',')],
            ['STATE', ({ is_active, disabled_reason }) => (is_active ? 'active' : (disabled_reason ?? 'off'))],
          ]),
        ),
      ),
  )
  webhooks.addCommand(
    serviceCommand('deliveries')
      .description('what was sent to a subscription')
      .argument('<webhook_id>')
      .action(async (id: string, options: ServiceOptions) =>
        show(await connect(options).get('/api/webhooks/{id}/deliveries', { path: { id } }), options, ({ deliveries }) =>
          formatTable(deliveries, [
            ['DELIVERY', (delivery) => delivery.id],
            ['EVENT', ({ type }) => type],
            ['STATE', ({ state }) => state],
            ['ATTEMPTS', ({ attempts }) => attempts],
            ['LAST', ({ last_status, last_error }) => last_status ?? last_error],
          ]),
        ),
      ),
  )
  webhooks.addCommand(
    serviceCommand('replay')
      .description('send a delivery again')
      .argument('<webhook_id>')
      .argument('<delivery_id>')
      .action(async (id: string, deliveryId: string, options: ServiceOptions) => {
        const path = { id, delivery_id: deliveryId }
        const replay = '/api/webhooks/{id}/deliveries/{delivery_id}/replay'
        const delivery = await connect(options).post(replay, { path, body: {} })
        show(delivery, options, () => `${deliveryId} will be sent again.`)
      }),
  )
  webhooks.addCommand(
    serviceCommand('listen')
      .description('print events as they come, and forward them to a local address; ends with Ctrl-C')
      .option('--forward <address>', 'where to send each delivery, such as http://127.0.0.1:3000/webhooks')
      .option('--events <types>', 'which events, separated by commas', list, [] as string[])
      .option('--port <port>', 'port of the receiver on 127.0.0.1', wholeNumber, 0)
      .option(
        '--public-url <address>',
        'how the service reaches the receiver, when it is not on this machine (a tunnel)',
      )
      .action(listen),
  )
  return webhooks
}

/** Subscribes for as long as it runs, checks each signature, prints the event and forwards the very same bytes. */
async function listen(options: ListenOptions) {
  const client = connect(options)
  let secret: string | undefined
  const server = createServer(async (request, response) => {
    let body: Buffer
    let event: WebhookEvent
    try {
      body = await readBody(request)
      event = await verifyWebhook(body, request.headers, secret!)
    } catch (error) {
      response.writeHead(400).end()
      return console.error(red(`A request was refused: ${(error as Error).message}`))
    }
    const status = options.forward ? await forward(options.forward, request, body) : 204
    response.writeHead(status).end()
    print(event, body, status, options)
  })
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(options.port, '127.0.0.1', resolve))
  const url = options.publicUrl ?? `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const events = options.events.length > 0 ? options.events : ['*']
  const subscription = await client.post('/api/webhooks', { body: { url, events } }).catch((error) => {
    server.close()
    throw options.publicUrl
      ? error
      : new CliError(
          `${error.message} If the service is not on this machine, give the address of a tunnel with --public-url.`,
        )
  })
  secret = subscription.signingSecret
  console.error(
    `Listening for ${events.join(', ')} at ${url} (${subscription.id}).${options.forward ? ` Forwarding to ${options.forward}.` : ''} Ctrl-C ends it.`,
  )
  await new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve())
  })
  server.close()
  server.closeAllConnections()
  await client.delete('/api/webhooks/{id}', { path: { id: subscription.id } })
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request) {
    size += chunk.length
    if (size > MAX_BODY_BYTES) throw new Error('The body is too long.')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

const header = (request: IncomingMessage, name: string) => String(request.headers[name] ?? '')

/** What the local address answers goes back to the service, so that its retries can be tried out. */
async function forward(address: string, request: IncomingMessage, body: Buffer): Promise<number> {
  const names = ['content-type', 'webhook-id', 'webhook-timestamp', 'webhook-signature']
  const headers = Object.fromEntries(names.map((name) => [name, header(request, name)]))
  try {
    const response = await fetch(address, {
      method: 'POST',
      headers,
      body: new Uint8Array(body),
      signal: AbortSignal.timeout(FORWARD_MS),
    })
    await response.body?.cancel()
    return response.status
  } catch (error) {
    console.error(red(`${address} cannot be reached: ${(error as Error).message}`))
    return 502
  }
}

function print({ type }: WebhookEvent, body: Buffer, status: number, { json, forward: address }: ListenOptions) {
  const text = body.toString('utf8')
  if (json) return console.log(text)
  const answer = address ? (status < 300 ? green(String(status)) : red(String(status))) : ''
  console.log(`${dim(new Date().toISOString())} ${safeText(type)} ${answer}\n${safeText(text)}`)
}
