/**
 * The load generator, a process of its own: keep-alive connections over plain sockets, one request in flight on each, so
 * that the generator costs far less than what it measures. It reports its own CPU time with every result.
 */
import { connect } from 'node:net'
import { answerParent } from './child.ts'
import type { Load, LoadResult } from './load.ts'

const MAX_FAILURE_TEXT = 400

answerParent(generateLoad)

async function generateLoad(load: Load): Promise<LoadResult> {
  const heads = load.requests.map(
    ({ method, path, headers }) =>
      `${method} ${path} HTTP/1.1\r\nhost: 127.0.0.1:${load.port}\r\n${Object.entries(headers ?? {})
        .map(([name, value]) => `${name}: ${value}\r\n`)
        .join('')}`,
  )
  const bodies = load.requests.map(({ body }) => body)
  const expectedStatuses = load.requests.map(({ expectedStatus = 200 }) => expectedStatus)
  const exchangeLength = load.exchangeLength ?? 1
  const limit = load.count ?? Number.POSITIVE_INFINITY
  const deadline = load.seconds === undefined ? Number.POSITIVE_INFINITY : performance.now() + load.seconds * 1000
  const statuses: Record<number, number> = {}
  const latencies: number[] = []
  let failure: string | undefined
  let nextNumber = 0
  let bytes = 0

  /** The number of the first request of the next exchange, or undefined when the load is complete. */
  const takeExchange = (): number | undefined => {
    if (nextNumber >= limit || performance.now() >= deadline) return undefined
    const number = nextNumber
    nextNumber += exchangeLength
    return number
  }

  const render = (number: number): string => {
    const index = number % heads.length
    const template = bodies[index]
    if (template === undefined) return `${heads[index]}\r\n`
    const body = template.replace('{n}', `${(load.firstNumber ?? 0) + number}`)
    return `${heads[index]}content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  }

  const runConnection = () =>
    new Promise<void>((resolve, reject) => {
      const socket = connect(load.port, '127.0.0.1')
      let number = -1
      let sentAt = 0
      let chunks: Buffer[] = []
      let received = 0
      /** The length of the whole response, or 0 until its head has arrived. */
      let expected = 0
      let status = 0
      const send = () => {
        const isInExchange = number >= 0 && (number + 1) % exchangeLength !== 0
        const next = isInExchange ? number + 1 : takeExchange()
        if (next === undefined) return socket.end(() => resolve())
        number = next
        sentAt = performance.now()
        socket.write(render(number))
      }
      socket.setNoDelay(true)
      socket.on('connect', send)
      socket.on('data', (chunk) => {
        chunks.push(chunk)
        received += chunk.length
        if (expected === 0) {
          const data = chunks.length === 1 ? chunk : Buffer.concat(chunks)
          chunks = [data]
          const headEnd = data.indexOf('\r\n\r\n')
          if (headEnd < 0) return
          const head = data.toString('latin1', 0, headEnd)
          const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
          if (length === undefined) return reject(new Error(`A response has no content-length:\n${head}`))
          status = Number(head.slice(9, 12))
          expected = headEnd + 4 + Number(length)
        }
        if (received < expected) return
        statuses[status] = (statuses[status] ?? 0) + 1
        if (status !== expectedStatuses[number % heads.length])
          failure ??= Buffer.concat(chunks).toString('utf8').slice(0, MAX_FAILURE_TEXT)
        latencies.push(performance.now() - sentAt)
        bytes += received
        chunks = []
        received = 0
        expected = 0
        send()
      })
      socket.on('error', reject)
    })

  const cpuBefore = process.cpuUsage()
  const startedAt = performance.now()
  await Promise.all(Array.from({ length: load.inFlight }, runConnection))
  const seconds = (performance.now() - startedAt) / 1000
  const cpu = process.cpuUsage(cpuBefore)
  latencies.sort((a, b) => a - b)
  const percentile = (share: number) =>
    latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? 0
  return {
    seconds,
    responses: latencies.length,
    statuses,
    failure,
    bytes,
    cpuMs: (cpu.user + cpu.system) / 1000,
    p50Ms: percentile(0.5),
    p99Ms: percentile(0.99),
  }
}
