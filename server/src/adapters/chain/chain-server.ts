/**
 * Offers the embedded chain of this process to the other processes of this machine, apart from the API: without its
 * limits, in production too, and only to those that read the address with its token in the database.
 */
import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Hex } from '../../modules/payments/facilitator.ts'
import { microFromUsdc } from '../../platform/money.ts'
import { createPublicRpc } from './public-rpc.ts'
import type { SharedChain } from './shared-chain.ts'

const MAX_BYTES = 1_000_000

export async function serveChain(
  chain: Pick<SharedChain, 'request'> & { mint?: SharedChain['mint'] },
): Promise<{ url: string; close(): Promise<void> }> {
  const rpc = createPublicRpc(chain.request)
  const base = `/${randomBytes(24).toString('base64url')}`
  const handlers: Record<string, (body: unknown) => Promise<unknown>> = {
    [`${base}/api/dev/rpc`]: rpc,
    ...(chain.mint && {
      [`${base}/api/dev/faucet`]: async (body: unknown) => {
        const { address, amount_usdc } = body as { address: Hex; amount_usdc: number }
        return { transaction: await chain.mint!(address, microFromUsdc(amount_usdc)!) }
      },
    }),
  }
  const server = createServer(async (request, response) => {
    const handle = request.method === 'POST' ? handlers[request.url ?? ''] : undefined
    if (!handle) return response.writeHead(404).end()
    try {
      const body = JSON.stringify(await handle(await readJson(request)))
      response.writeHead(200, { 'content-type': 'application/json' }).end(body)
    } catch {
      // The caller treats any other status as a chain that cannot be reached.
      response.writeHead(503).end()
    }
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${base}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request) {
    bytes += (chunk as Buffer).length
    if (bytes > MAX_BYTES) throw new Error('The request is too large.')
    chunks.push(chunk as Buffer)
  }
  return JSON.parse(Buffer.concat(chunks).toString())
}
