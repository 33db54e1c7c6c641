import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { MAX_ADD_CHECKPOINT_LENGTH, NOTE_ED25519, parseVerifierKey } from '@countersign/proof'
import { Command, InvalidArgumentError } from 'commander'
import { CliError } from '../cli-error.ts'
import { lockFolder } from '../durable-file.ts'
import { readPolicyFile } from '../evidence.ts'
import { checkWitnessState, createWitness, openWitnessKey } from '../witness.ts'

type Options = {
  name: string
  state: string
  keyFile?: string
  log?: string[]
  policy?: string
  host: string
  port: number
}

const REQUEST_MS = 10_000
const MAX_CONNECTIONS = 256

export const witnessCommand = () =>
  new Command('witness')
    .description('Witness logs after C2SP tlog-witness: cosign checkpoints that only add to the ones before')
    .requiredOption('--name <name>', 'name of this witness in its cosignatures, such as witness.example/w1')
    .requiredOption(
      '--state <folder>',
      'what was cosigned last of each log; a witness that loses it must get a new key',
    )
    .option(
      '--key-file <file>',
      'its private key, made when the file is missing; by default witness.key of the state folder',
    )
    .option('--log <vkey...>', 'verifier keys of the logs it witnesses')
    .option('--policy <file>', 'a tlog-policy file whose logs it witnesses')
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--port <port>', 'port to listen on; 0 for any free one', readPort, 7380)
    .action(async (options: Options) => {
      const folder = resolve(options.state)
      const logs = readLogs(options)
      const lock = lockFolder(folder)
      checkWitnessState(folder)
      const key = openWitnessKey(options.keyFile ?? join(folder, 'witness.key'), options.name)
      const server = serveWitness(createWitness({ key, logs, folder, lock }))
      await new Promise<void>((ready, fail) => {
        server.once('error', (error) => fail(new CliError(`It cannot listen: ${error.message}`)))
        server.listen(options.port, options.host, ready)
      })
      const { port } = server.address() as AddressInfo
      const host = options.host.includes(':') ? `[${options.host}]` : options.host
      console.log(`witness ${key.verifierKey} http://${host}:${port}`)
      for (const signal of ['SIGINT', 'SIGTERM'] as const)
        process.once(signal, () => {
          server.close(() => {
            lock.release()
            process.exit(0)
          })
          server.closeIdleConnections()
        })
    })

/** The HTTP side: `POST <prefix>/add-checkpoint` under any prefix. */
export function serveWitness(witness: Pick<ReturnType<typeof createWitness>, 'addCheckpoint'>): Server {
  const server = createServer((request, response) => {
    const reply = (status: number, body: string, type = 'text/plain; charset=utf-8') => {
      if (status === 413) response.setHeader('connection', 'close')
      response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(body)
    }
    const path = request.url?.split('?', 1)[0] ?? ''
    if (!path.endsWith('/add-checkpoint')) return reply(404, 'There is only add-checkpoint.\n')
    if (request.method !== 'POST') return reply(405, 'add-checkpoint is a POST request.\n')
    readBody(request)
      .then(async (bytes) => {
        if (bytes === undefined) return reply(413, 'The request is too large.\n')
        const body = decodeUtf8(bytes)
        if (body === undefined) return reply(400, 'The request is not UTF-8.\n')
        const answer = await witness.addCheckpoint(body)
        reply(answer.status, answer.body, answer.type)
      })
      .catch((error: Error) => {
        console.error(error.message)
        if (!response.headersSent) reply(500, 'The witness could not write its state and has signed nothing.\n')
      })
  })
  server.requestTimeout = REQUEST_MS
  server.headersTimeout = REQUEST_MS
  server.maxConnections = MAX_CONNECTIONS
  return server
}

/** Undefined when there is more of it than any request has. */
async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > MAX_ADD_CHECKPOINT_LENGTH) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function decodeUtf8(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

function readLogs({ log = [], policy }: Options): string[] {
  const logs = [
    ...log,
    ...(policy === undefined ? [] : readPolicyFile(policy).logs.map(({ verifierKey }) => verifierKey)),
  ]
  for (const verifierKey of logs)
    if (parseVerifierKey(verifierKey)?.type !== NOTE_ED25519)
      throw new CliError(`'${verifierKey}' is not the ed25519 verifier key of a log.`)
  if (logs.length === 0) throw new CliError('Name the logs with --log or --policy.')
  return logs
}

function readPort(text: string): number {
  const port = Number(text)
  if (!/^\d{1,5}$/.test(text) || port > 65_535) throw new InvalidArgumentError('It must be a port from 0 to 65535.')
  return port
}
