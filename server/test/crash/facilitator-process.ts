import { createServer } from 'node:http'

/**
 * A facilitator in a process of its own that stands before a real one and does it wrong. Environment: UPSTREAM is the
 * real one's address, FAULT what to do to /settle: `destroy` the socket once the payment has been mined.
 */
const { UPSTREAM, FAULT } = process.env
let faults = 0

const server = createServer(async (request, response) => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const body = Buffer.concat(chunks)
  const upstream = await fetch(`${UPSTREAM}${request.url}`, {
    method: request.method,
    headers: { 'content-type': 'application/json' },
    ...(request.method === 'POST' && { body }),
  })
  const answer = await upstream.text()
  if (FAULT === 'destroy' && request.url === '/settle' && faults === 0) {
    faults += 1
    request.socket.destroy()
    return
  }
  response.writeHead(upstream.status, { 'content-type': 'application/json' }).end(answer)
})
server.listen(0, '127.0.0.1', () => {
  console.log(`listens on http://127.0.0.1:${(server.address() as { port: number }).port}`)
})
