/** Who settles and which chain is asked: the embedded one, a real one with our own keys, or somebody else's facilitator. */
import type { ChainReader, Facilitator, Hex } from '../../modules/payments/facilitator.ts'
import type { Clock } from '../../platform/clock.ts'
import { type Config, usesEmbeddedChain } from '../../platform/config.ts'
import type { Database } from '../../platform/db.ts'
import type { Keys } from '../../platform/keys.ts'
import type { Log } from '../../platform/log.ts'
import type { SecretFolder } from '../../platform/secrets.ts'
import { createHttpFacilitator } from '../facilitators/http.ts'
import { createOwnFacilitator } from '../facilitators/own.ts'
import { loadCurve } from '../facilitators/recover.ts'
import { facilitatorHttp } from '../facilitators/wire.ts'
import { createChainReader } from './chain-reader.ts'
import { USDC } from './edr.ts'
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
  instance: string
  listens: boolean
  /** Called when a transaction has been mined and before anybody has read it; the crash test stops the process there. */
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
        facilitator: ReturnType<typeof facilitatorHttp>
      }
    | undefined
  announce(url: string): Promise<void>
  close(): Promise<void>
}

const NETWORK = 'eip155:8453'

export async function openChain(deps: Deps): Promise<OpenChain> {
  if (usesEmbeddedChain(deps.config)) return openEmbedded(deps)
  const { config, clock, log } = deps
  const request = config.CHAIN_RPC_URL ? createRemoteChain({ url: config.CHAIN_RPC_URL }).request : undefined
  const common = {
    reader: request && createChainReader({ request }),
    asset: USDC,
    payTo: config.PAY_TO_ADDRESS!,
    dev: undefined,
    announce: async () => {},
  }
  if (config.FACILITATOR_URL) {
    const facilitator = createHttpFacilitator({
      urls: config.FACILITATOR_URL,
      clock,
      log,
      ...(request && { hasCode: async (address: Hex) => (await request('eth_getCode', [address, 'latest'])) !== '0x' }),
    })
    return { ...common, facilitator, close: async () => facilitator.close() }
  }
  const privateKeys = config.FACILITATOR_PRIVATE_KEY!
  const facilitator = createOwnFacilitator({
    request: request!,
    network: NETWORK,
    asset: USDC,
    privateKeys,
    clock,
    log,
  })
  return { ...common, facilitator, close: async () => {} }
}

// The embedded chain mines at once; a receipt that takes longer will not come before its journal is back.
const EMBEDDED_RECEIPT_MS = 2_000

async function openEmbedded({
  config,
  database,
  clock,
  log,
  keys,
  instance,
  listens,
  onMined,
}: Deps): Promise<OpenChain> {
  const shared = await createSharedChain({
    pool: database.pool,
    connect: database.connect,
    clock,
    log,
    mayOwn: listens,
  })
  const request: ChainRequest = async (method, params) => {
    const result = await shared.request(method, params)
    if (method === 'eth_sendRawTransaction') onMined()
    return result
  }
  // Gas is free here and two processes must not share an account's nonces, so each process sends with a key of its own.
  const privateKey: Hex = `0x${keys.evmKey(`facilitator/${instance}`).toString('hex')}`
  const facilitator = createOwnFacilitator({
    request,
    network: NETWORK,
    asset: USDC,
    privateKeys: [privateKey],
    receiptTimeoutMs: EMBEDDED_RECEIPT_MS,
    clock,
    log,
  })
  return {
    facilitator,
    reader: createChainReader({ request: shared.request }),
    asset: USDC,
    payTo: config.PAY_TO_ADDRESS ?? loadCurve().addressOf(keys.evmKey('payee')),
    dev: { mint: shared.mint, rpc: createPublicRpc(shared.request), facilitator: facilitatorHttp(facilitator) },
    announce: shared.announce,
    close: shared.close,
  }
}
