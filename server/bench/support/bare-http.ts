/** node:http and nothing else, which sends prepared bytes by path: the body and the headers of a response of the service. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { answerParent } from './child.ts'

export type BareResponse = { headers: Record<string, string>; body: string }

answerParent(async ({ responses }: { responses: Record<string, BareResponse> }) => {
  const prepared = new Map(
    Object.entries(responses).map(([path, { headers, body }]) => {
      const bytes = Buffer.from(body)
      return [path, { headers: [...Object.entries(headers).flat(), 'content-length', `${bytes.length}`], body: bytes }]
    }),
  )
  const server = createServer((request, response) => {
    const found = prepared.get(request.url!)
    if (!found) return void response.writeHead(404, { 'content-length': 0 }).end()
    response.writeHead(200, found.headers).end(found.body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { port: (server.address() as AddressInfo).port }
})
