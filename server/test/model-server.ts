import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text as readText } from 'node:stream/consumers'

/** A request in OpenAI's wire format, as the service sends it. */
export type ModelRequest = {
  model: string
  messages: { role: string; content: string }[]
  stream?: boolean
  response_format?: { type: string; json_schema?: { schema: unknown } }
}

export type ModelReply = { text: string; finish?: 'stop' | 'length' } | ((response: ServerResponse) => void)

/**
 * A server on loopback with OpenAI's wire format. `answerTask` speaks for the lanes and `answerJudge` for the judge, which
 * is told apart by its request for structured output.
 */
export async function startModelServer(behaviour: {
  answerTask(request: ModelRequest): ModelReply
  answerJudge?(request: ModelRequest): ModelReply
}) {
  const requests: ModelRequest[] = []
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    if (request.method !== 'POST') return void response.writeHead(404).end()
    const body = JSON.parse(await readText(request)) as ModelRequest
    requests.push(body)
    const reply = body.response_format
      ? (behaviour.answerJudge?.(body) ?? { text: '{"failures": []}' })
      : behaviour.answerTask(body)
    if (typeof reply === 'function') reply(response)
    else if (body.stream) streamText(response, reply.text, reply.finish ?? 'stop')
    else sendText(response, reply.text, reply.finish ?? 'stop')
  }
  const server = createServer((request, response) => void handle(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

const USAGE = { prompt_tokens: 100, completion_tokens: 40, total_tokens: 140 }

function sendText(response: ServerResponse, content: string, finish_reason: string) {
  const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason }]
  response
    .writeHead(200, { 'content-type': 'application/json' })
    .end(JSON.stringify({ id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, usage: USAGE }))
}

function streamText(response: ServerResponse, text: string, finish: string) {
  const send = (choices: unknown[], usage?: unknown) =>
    response.write(
      `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...(usage ? { usage } : {}) })}\n\n`,
    )
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  send([{ index: 0, delta: { role: 'assistant', content: text }, finish_reason: null }])
  send([{ index: 0, delta: {}, finish_reason: finish }])
  send([], USAGE)
  response.end('data: [DONE]\n\n')
}
