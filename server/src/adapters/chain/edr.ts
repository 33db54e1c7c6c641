/** The EVM itself: Nomic Foundation's EDR in this process, in memory, mining a block for every transaction. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Hex } from '../../modules/payments/facilitator.ts'
import { decodeRevertText, keccak, toBytes, toHex } from './codec.ts'
import { type ChainRequest, RpcError } from './rpc.ts'

export const CHAIN_ID = 8453
/** The address of USDC on Base: clients pay in this token unless they are configured otherwise. */
export const USDC: Hex = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913'
export const MULTICALL3: Hex = '0xca11bde05977b3631167028862be2a173976ca11'
/** A million gas of pure computation takes about a second, so this limit also bounds how long one call can stall the chain. */
export const BLOCK_GAS_LIMIT = 15_000_000n

/** The token's minter. There is no key for it; the process that owns the chain impersonates it. */
export const MINTER: Hex = toHex(keccak(Buffer.from('countersign.development.minter')).subarray(12))
/** Writes the journalled state back at start. Not the minter, whose transaction count is part of that state. */
export const LOADER: Hex = toHex(keccak(Buffer.from('countersign.development.loader')).subarray(12))

const readBytecode = (contract: string) =>
  (
    JSON.parse(readFileSync(new URL(`../../../contracts/${contract}.json`, import.meta.url), 'utf8')) as {
      deployedBytecode: Hex
    }
  ).deployedBytecode

type Edr = typeof import('@nomicfoundation/edr')
type Context = InstanceType<Edr['EdrContext']>

// EDR allows one context in a process.
let loadedEdr: Promise<{ edr: Edr; context: Context }> | undefined

async function loadEdr() {
  const edr = createRequire(import.meta.url)('@nomicfoundation/edr') as Edr
  const context = new edr.EdrContext()
  await context.registerProviderFactory(edr.L1_CHAIN_TYPE, edr.l1ProviderFactory())
  return { edr, context }
}

export type EvmCall = [method: string, params: readonly unknown[]]

export type Evm = {
  send: ChainRequest
  /** One after the other in one call, without a turn of the event loop in between. The first error is thrown and ends it. */
  sendAll(calls: readonly EvmCall[]): Promise<unknown[]>
}

/** A fresh EVM whose token address holds the loader; `finishLoading` puts the token there. */
export async function createEvm(genesisTime: bigint): Promise<Evm & { finishLoading(): Promise<void> }> {
  loadedEdr ??= loadEdr()
  const { edr, context } = await loadedEdr
  const provider = await context.createProvider(
    edr.L1_CHAIN_TYPE,
    {
      // Otherwise every block in one second pushes the chain's clock a second ahead, and authorisations expire.
      allowBlocksWithSameTimestamp: true,
      allowUnlimitedContractSize: false,
      bailOnCallFailure: true,
      bailOnTransactionFailure: false,
      chainId: BigInt(CHAIN_ID),
      coinbase: new Uint8Array(20),
      defaultTransactionGasLimit: BLOCK_GAS_LIMIT,
      genesisState: [
        ...edr.l1GenesisState(edr.SpecId.Prague),
        { address: toBytes(USDC), code: toBytes(readBytecode('DevUSDCLoader')) },
        { address: toBytes(MULTICALL3), code: toBytes(readBytecode('Multicall3')) },
      ],
      // Gas is free, so no account needs ether. A block that can never exceed its gas target keeps the base fee at zero.
      baseFeeConfig: [{ activation: { blockNumber: 0n }, maxChangeDenominator: 8n, elasticityMultiplier: 1n }],
      hardfork: edr.PRAGUE,
      initialBaseFeePerGas: 0n,
      minGasPrice: 0n,
      mining: { autoMine: true, blockGasLimit: BLOCK_GAS_LIMIT, memPool: { order: edr.MineOrdering.Fifo } },
      network: { genesisBlockGasLimit: BLOCK_GAS_LIMIT, genesisBlockTime: genesisTime },
      networkId: BigInt(CHAIN_ID),
      observability: {},
      ownedAccounts: [],
      precompileOverrides: [],
    },
    { enable: false, decodeConsoleLogInputsCallback: () => [], printLineCallback: () => {} },
    { subscriptionCallback: () => {} },
    new edr.ContractDecoder(),
  )
  const handle = async (request: object): Promise<unknown> => {
    const response = await provider.handleRequest(JSON.stringify(request))
    const body = (typeof response.data === 'string' ? JSON.parse(response.data) : response.data) as {
      result?: unknown
      error?: { code: number; message: string; data?: { data?: unknown } | string }
    }
    if (body.error) {
      const { code, message, data } = body.error
      const revertData = typeof data === 'object' ? data?.data : data
      // The form other nodes use: code 3, this message, and the revert data under `data`.
      if (typeof revertData === 'string')
        throw new RpcError(3, `execution reverted: ${decodeRevertText(revertData) ?? message}`, revertData)
      throw new RpcError(code, message)
    }
    return body.result
  }
  const toRequest = (method: string, params: readonly unknown[]) => ({ jsonrpc: '2.0', id: 1, method, params })
  const send: ChainRequest = (method, params = []) => handle(toRequest(method, params))
  const sendAll: Evm['sendAll'] = async (calls) =>
    (await handle(calls.map(([method, params]) => toRequest(method, params)))) as unknown[]
  for (const account of [MINTER, LOADER]) await send('hardhat_impersonateAccount', [account])
  return {
    send,
    sendAll,
    finishLoading: async () => void (await send('hardhat_setCode', [USDC, readBytecode('DevUSDC')])),
  }
}
