/** Opens the facilitator and the chain: the embedded chain, a real chain with our own keys, or facilitators over HTTP. */
import type { ChainReader, Facilitator, Hex } from '../../modules/payments/facilitator.ts'
import type { Clock } from '../../platform/clock.ts'
import { type Config, usesEmbeddedChain } from '../../platform/config.ts'
import type { Database } from '../../platform/db.ts'
import type { Instances } from '../../platform/instances.ts'
import type { Keys } from '../../platform/keys.ts'
import type { Log } from '../../platform/log.ts'
import type { SecretFolder } from '../../platform/secrets.ts'
import { createFacilitatorHandlers } from '../facilitators/facilitator-wire.ts'
import { createHttpFacilitator } from '../facilitators/http-facilitator.ts'
import { createLocalFacilitator } from '../facilitators/local-facilitator.ts'
import { loadCurve } from '../facilitators/secp256k1.ts'
import { createChainReader } from './chain-reader.ts'
import { serveChain } from './chain-server.ts'
import { USDC } from './edr.ts'
import { limitPublicRequests } from './public-limits.ts'
import { createPublicRpc } from './public-rpc.ts'
import { createRemoteChain } from './remote-chain.ts'
import type { ChainRequest } from './rpc.ts'
import { createSharedChain } from './shared-chain.ts'

type Deps = {
  config: Config
  database: Database
  clock: Clock
  log: Log
  secrets: SecretFolder
  keys: Keys
  instances: Instances
  /** Whether this process may own the embedded chain: the others must be able to reach it. */
  mayOwn: boolean
  /** Which of the keys of FACILITATOR_PRIVATE_KEY this process sends with. */
  senderShare?: { index: number; count: number } | undefined
  /** Called when a transaction has been mined and before its result is read; the crash test kills the process there. */
  onMined(): void
}

export type OpenChain = {
  facilitator: Facilitator
  reader: ChainReader | undefined
  asset: Hex
  payTo: Hex
  dev:
    | {
        mint(to: Hex, amountMicro: bigint): Promise<Hex>
        rpc(body: unknown): Promise<unknown>
        facilitator: ReturnType<typeof createFacilitatorHandlers>
      }
    | undefined
  /** Lets the other processes on this database reach the chain, when this process owns it. */
  announce(): Promise<void>
  /** The process that owns the embedded chain, dead or alive. */
  findHolder(): Promise<string[]>
  close(): Promise<void>
}

const NETWORK = 'eip155:8453'

export async function openChain(deps: Deps): Promise<OpenChain> {
  if (usesEmbeddedChain(deps.config)) return openEmbeddedChain(deps)
  const { config, clock, log } = deps
  const request = config.CHAIN_RPC_URL ? createRemoteChain({ url: config.CHAIN_RPC_URL }).request : undefined
  const shared = {
    reader: request && createChainReader({ request }),
    asset: USDC,
    payTo: config.PAY_TO_ADDRESS!,
    dev: undefined,
    announce: async () => {},
    findHolder: async () => [],
  }
  if (config.FACILITATOR_URL) {
    const facilitator = createHttpFacilitator({
      urls: config.FACILITATOR_URL,
      clock,
      log,
      ...(request && { hasCode: async (address: Hex) => (await request('eth_getCode', [address, 'latest'])) !== '0x' }),
    })
    return { ...shared, facilitator, close: async () => facilitator.close() }
  }
  const share = deps.senderShare ?? { index: 0, count: 1 }
  const privateKeys = config.FACILITATOR_PRIVATE_KEY!.filter((_key, index) => index % share.count === share.index)
  const facilitator = createLocalFacilitator({
    request: request!,
    network: NETWORK,
    asset: USDC,
    privateKeys,
    allowedFactories: config.EIP6492_FACTORIES,
    clock,
    log,
  })
  return { ...shared, facilitator, close: async () => {} }
}

// The embedded chain mines at once; a receipt that takes longer arrives only after the journal can be written again.
const EMBEDDED_RECEIPT_MS = 2_000

async function openEmbeddedChain({
  config,
  database,
  clock,
  log,
  keys,
  instances,
  mayOwn,
  onMined,
}: Deps): Promise<OpenChain> {
  const shared = await createSharedChain({
    pool: database.pool,
    connect: database.connect,
    instances,
    clock,
    log,
    mayOwn,
  })
  const request: ChainRequest = async (method, params) => {
    const result = await shared.request(method, params)
    if (method === 'eth_sendRawTransaction') onMined()
    return result
  }
  // Two processes must not share an account's nonces; gas is free here, so each process sends with its own key.
  const privateKey: Hex = `0x${keys.evmKey(`facilitator/${instances.id}`).toString('hex')}`
  const facilitator = createLocalFacilitator({
    request,
    network: NETWORK,
    asset: USDC,
    privateKeys: [privateKey],
    receiptTimeoutMs: EMBEDDED_RECEIPT_MS,
    hasMempool: false,
    allowedFactories: config.EIP6492_FACTORIES,
    clock,
    log,
  })
  let server: Awaited<ReturnType<typeof serveChain>> | undefined
  return {
    facilitator,
    reader: createChainReader({ request: shared.request }),
    asset: USDC,
    payTo: config.PAY_TO_ADDRESS ?? loadCurve().addressOf(keys.evmKey('payee')),
    dev: {
      mint: shared.mint,
      rpc: createPublicRpc(
        config.RATE_LIMIT_ANON_PER_MINUTE === 0 ? shared.request : limitPublicRequests(shared.request),
      ),
      facilitator: createFacilitatorHandlers(facilitator),
    },
    findHolder: shared.findHolder,
    async announce() {
      if (!mayOwn) return
      server ??= await serveChain(config.NODE_ENV === 'production' ? { request: shared.request } : shared)
      await shared.announce(server.url)
    },
    async close() {
      await server?.close()
      await shared.close()
    },
  }
}
