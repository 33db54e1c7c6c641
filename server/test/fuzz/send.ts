import { Agent, request as httpRequest, type IncomingMessage } from 'node:http'

/** A request as it goes over the wire. Headers are a list, because some are sent twice. */
export type WireRequest = {
  method: string
  path: string
  headers: [name: string, value: string][]
  body: Buffer | undefined
}

export type WireResponse = { status: number; headers: Headers; text: string; body: unknown }

export type Sender = (request: WireRequest, options?: { endless?: boolean }) => Promise<WireResponse>

const MAX_RESPONSE_BYTES = 16 * 1024 * 1024

/** Sends requests as they are, also those that `fetch` would refuse; a response that takes longer than the deadline is an error. */
export function createSender(url: string, deadlineMs: number): { send: Sender; close(): void } {
  const { hostname, port } = new URL(url)
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })
  const send: Sender = (wire, { endless = false } = {}) =>
    new Promise((resolve, reject) => {
      const outgoing = httpRequest({
        hostname,
        port,
        agent,
        method: wire.method,
        path: wire.path,
        // Node adds no Host to a list of headers.
        headers: ['host', `${hostname}:${port}`, ...wire.headers.flat()],
      })
      const timer = setTimeout(
        () => outgoing.destroy(new Error(`no complete response within ${deadlineMs} ms`)),
        deadlineMs,
      )
      const settle = (finish: () => void) => {
        clearTimeout(timer)
        finish()
      }
      outgoing.on('error', (error) => settle(() => reject(error)))
      outgoing.on('response', (incoming) => {
        readBody(incoming, endless && incoming.statusCode === 200).then(
          (text) => settle(() => resolve(toResponse(incoming, text))),
          (error) => settle(() => reject(error)),
        )
      })
      outgoing.end(wire.body)
    })
  return { send, close: () => agent.destroy() }
}

async function readBody(incoming: IncomingMessage, firstChunkOnly: boolean): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of incoming) {
    chunks.push(chunk as Buffer)
    size += (chunk as Buffer).length
    if (size > MAX_RESPONSE_BYTES) throw new Error(`the response is larger than ${MAX_RESPONSE_BYTES} bytes`)
    if (firstChunkOnly) break
  }
  return Buffer.concat(chunks).toString('utf8')
}

function toResponse(incoming: IncomingMessage, text: string): WireResponse {
  const headers = new Headers()
  for (let index = 0; index < incoming.rawHeaders.length; index += 2)
    headers.append(incoming.rawHeaders[index]!, incoming.rawHeaders[index + 1]!)
  const isJson = /^application\/json\b/.test(headers.get('content-type') ?? '')
  return { status: incoming.statusCode!, headers, text, body: isJson ? parseJson(text) : undefined }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
