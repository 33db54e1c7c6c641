/** Asks any chain about one payment. Many payments share a transaction, so one is known by (transaction, nonce). */
import type { ChainReader, Hex } from '../../modules/payments/facilitator.ts'
import { addressInWord, encodeCall, larger, quantity, SELECTOR, TOPIC, word } from './codec.ts'
import { type ChainRequest, type RpcBlock, RpcError, type RpcLog, type RpcReceipt } from './rpc.ts'

export type TransferLog = { asset: Hex; from: Hex; to: Hex; value: bigint; block: bigint }

/** How far back a node that refuses wide ranges is asked: a day, as Base mines a block every two seconds. */
const DEFAULT_LOOKBACK_BLOCKS = 50_000n
const RANGE_BLOCKS = 10_000n

type Deps = { request: ChainRequest; lookbackBlocks?: bigint }

export function createChainReader({ request, lookbackBlocks = DEFAULT_LOOKBACK_BLOCKS }: Deps): ChainReader {
  const call = async (to: Hex, data: Hex) => BigInt((await request('eth_call', [{ to, data }, 'latest'])) as string)

  const findUse = async (asset: Hex, payer: Hex, nonce: Hex): Promise<RpcLog | undefined> => {
    const topics = [[TOPIC.authorizationUsed, TOPIC.authorizationCanceled], `0x${word(payer)}`, nonce.toLowerCase()]
    const find = async (fromBlock: Hex, toBlock: string) =>
      ((await request('eth_getLogs', [{ address: asset, topics, fromBlock, toBlock }])) as RpcLog[])[0]
    try {
      return await find('0x0', 'latest')
    } catch (error) {
      if (!(error instanceof RpcError)) throw error
    }
    // The node will not look through everything at once: then the newest blocks, piece by piece.
    const head = BigInt((await request('eth_blockNumber')) as string)
    const oldest = larger(head - lookbackBlocks, 0n)
    for (let to = head; to >= oldest; to -= RANGE_BLOCKS) {
      const log = await find(quantity(larger(to - RANGE_BLOCKS + 1n, oldest)), quantity(to))
      if (log) return log
    }
    return undefined
  }

  return {
    async authorization(asset, payer, nonce) {
      const used = await call(asset, encodeCall(SELECTOR.authorizationState, payer, nonce))
      if (used === 0n) return { used: false }
      const use = await findUse(asset, payer, nonce)
      if (!use) return { used: true, transaction: null, transfer: null }
      const transaction = use.transactionHash as Hex
      if (use.topics[0] === TOPIC.authorizationCanceled) return { used: true, transaction, transfer: null }
      const receipt = (await request('eth_getTransactionReceipt', [transaction])) as RpcReceipt | null
      const transfer = receipt ? authorizedTransfer(receipt, asset, payer, nonce) : undefined
      return { used: true, transaction: transfer ? transaction : null, transfer: transfer ?? null }
    },

    balanceOf: (asset, owner) => call(asset, encodeCall(SELECTOR.balanceOf, owner)),

    async headTime() {
      const head = (await request('eth_getBlockByNumber', ['latest', false])) as RpcBlock
      return BigInt(head.timestamp)
    },

    async transfers(transaction) {
      const receipt = (await request('eth_getTransactionReceipt', [transaction])) as RpcReceipt | null
      return receipt ? receipt.logs.filter(isTransfer).map(transferOf) : null
    },
  }
}

const isTransfer = (log: RpcLog) => log.topics[0] === TOPIC.transfer && log.topics.length === 3

const transferOf = (log: RpcLog): TransferLog => ({
  asset: log.address.toLowerCase() as Hex,
  from: addressInWord(log.topics[1]!),
  to: addressInWord(log.topics[2]!),
  value: BigInt(log.data),
  block: BigInt(log.blockNumber),
})

/**
 * The transfer that one authorisation made. The token emits AuthorizationUsed and then its Transfer, next to each other,
 * so of several payments in one transaction each finds its own.
 */
export function authorizedTransfer(receipt: RpcReceipt, asset: Hex, payer: Hex, nonce: Hex): TransferLog | undefined {
  const logs = receipt.logs.filter((log) => log.address.toLowerCase() === asset.toLowerCase())
  const place = logs.findIndex(
    (log) =>
      log.topics[0] === TOPIC.authorizationUsed &&
      addressInWord(log.topics[1] ?? '') === payer.toLowerCase() &&
      log.topics[2]?.toLowerCase() === nonce.toLowerCase(),
  )
  if (place < 0) return undefined
  // FiatToken has emitted the pair in this order in every version; the log before is looked at for tokens that do not.
  const neighbours = [logs[place + 1], logs[place - 1]]
  const transfer = neighbours.find(
    (log) => log && isTransfer(log) && addressInWord(log.topics[1]!) === payer.toLowerCase(),
  )
  return transfer && transferOf(transfer)
}
