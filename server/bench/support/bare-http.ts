/** node:http and nothing else, which sends prepared bytes by path. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { answerParent } from './child.ts'

export type BareResponse = { contentType: string; body: string }

answerParent(async ({ responses }: { responses: Record<string, BareResponse> }) => {
  const prepared = new Map(
    Object.entries(responses).map(([path, { contentType, body }]) => [path, { contentType, body: Buffer.from(body) }]),
  )
  const server = createServer((request, response) => {
    const found = prepared.get(request.url!)
    if (!found) return void response.writeHead(404, { 'content-length': 0 }).end()
    response.writeHead(200, { 'content-type': found.contentType, 'content-length': found.body.length }).end(found.body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { port: (server.address() as AddressInfo).port }
})
