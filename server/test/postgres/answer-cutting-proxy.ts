import { connect, createServer, type Socket } from 'node:net'

/**
 * A proxy before PostgreSQL that can lose one answer: the statement is carried out and committed, and the connection is
 * cut instead of saying so.
 */
export type AnswerCuttingProxy = Awaited<ReturnType<typeof startAnswerCuttingProxy>>

/** The message ReadyForQuery without its last byte, the state of the transaction: everything before it has been done. */
const READY = Buffer.from([0x5a, 0, 0, 0, 5])

export async function startAnswerCuttingProxy(databaseUrl: string) {
  const target = new URL(databaseUrl)
  const port = Number(target.port)
  const host = target.searchParams.get('host')
  const sockets = new Set<Socket>()
  let marker: string | undefined
  let cuts = 0
  let isAway = false
  let goesAway = false

  const server = createServer((client) => {
    if (isAway) return void client.destroy()
    const upstream = host ? connect({ path: `${host}/.s.PGSQL.${port || 5432}` }) : connect(port, target.hostname)
    let isCutting = false
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('close', () => sockets.delete(socket))
      socket.on('error', () => {})
    }
    client.on('data', (chunk) => {
      if (marker !== undefined && chunk.includes(marker)) {
        marker = undefined
        isCutting = true
      }
      upstream.write(chunk)
    })
    upstream.on('data', (chunk) => {
      if (!isCutting) return void client.write(chunk)
      if (!chunk.subarray(-READY.length - 1, -1).equals(READY)) return
      cuts += 1
      client.destroy()
      upstream.destroy()
      if (goesAway) leave()
    })
    client.on('close', () => upstream.destroy())
    upstream.on('close', () => client.destroy())
  })
  const leave = () => {
    isAway = true
    for (const socket of sockets) socket.destroy()
  }
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const { port: ownPort } = server.address() as { port: number }
  const url = new URL(databaseUrl)
  url.searchParams.delete('host')
  url.hostname = '127.0.0.1'
  url.port = String(ownPort)
  return {
    url: url.href,
    /** Loses the answer to the next message that contains this text. */
    cutAnswerTo(text: string) {
      marker = text
    },
    /** The same, and from then on the database cannot be reached, until `comeBack`. */
    cutAnswerAndLeave(text: string) {
      marker = text
      goesAway = true
    },
    comeBack() {
      goesAway = false
      isAway = false
    },
    cuts: () => cuts,
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((closed) => server.close(closed))
    },
  }
}
