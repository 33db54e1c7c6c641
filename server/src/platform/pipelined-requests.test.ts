import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { expect, test } from 'vitest'
import { queuePipelinedRequests } from './pipelined-requests.ts'

const REQUESTS = 300
const CONNECTIONS = 8

test('the pipelined requests of one address are parsed a connection at a time, and all are answered', async () => {
  const server = createServer((_request, reply) => reply.end('x'))
  queuePipelinedRequests(server)
  let turn = 0
  let isOver = false
  const countTurns = () => {
    turn += 1
    if (!isOver) setImmediate(countTurns)
  }
  const parsed = new Map<number, number>()
  const emit = server.emit.bind(server)
  server.emit = ((name: string, ...values: unknown[]) => {
    if (name === 'request') parsed.set(turn, (parsed.get(turn) ?? 0) + 1)
    return emit(name, ...values)
  }) as typeof server.emit
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const request = 'GET / HTTP/1.1\r\nhost: localhost\r\n\r\n'
  const lastRequest = 'GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n'
  const sockets = await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      const socket = connect(port, '127.0.0.1')
      socket.write(request)
      await once(socket, 'data')
      return socket
    }),
  )
  countTurns()
  // All of them can be read in the same turn.
  for (const socket of sockets) socket.write(request.repeat(REQUESTS - 1) + lastRequest)
  const answers = await Promise.all(
    sockets.map(async (socket) => {
      let text = ''
      for await (const chunk of socket) text += chunk
      return text.split('HTTP/1.1 200').length - 1
    }),
  )
  isOver = true
  server.close()
  expect(answers).toEqual(Array.from({ length: CONNECTIONS }, () => REQUESTS))
  expect(Math.max(...parsed.values())).toBeLessThan(2 * REQUESTS)
})
