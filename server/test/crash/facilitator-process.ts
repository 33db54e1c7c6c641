import { createServer } from 'node:http'

/**
 * A facilitator process that forwards to a real one and injects a fault. Environment: UPSTREAM is the address of the real
 * one; with FAULT=destroy the first /settle is forwarded, and its socket is destroyed instead of answered.
 */
const { UPSTREAM, FAULT } = process.env
let faultCount = 0

const server = createServer(async (request, response) => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const body = Buffer.concat(chunks)
  const upstream = await fetch(`${UPSTREAM}${request.url}`, {
    method: request.method,
    headers: { 'content-type': 'application/json' },
    ...(request.method === 'POST' && { body }),
  })
  const responseText = await upstream.text()
  if (FAULT === 'destroy' && request.url === '/settle' && faultCount === 0) {
    faultCount += 1
    request.socket.destroy()
    return
  }
  response.writeHead(upstream.status, { 'content-type': 'application/json' }).end(responseText)
})
server.listen(0, '127.0.0.1', () => {
  console.log(`listens on http://127.0.0.1:${(server.address() as { port: number }).port}`)
})
