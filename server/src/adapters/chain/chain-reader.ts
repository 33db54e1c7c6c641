/** Reads payments from any chain. Many payments share a transaction, so a payment is identified by (transaction, nonce). */
import type { ChainReader, Hex } from '../../modules/payments/facilitator.ts'
import { addressInWord, encodeCall, encodeWord, maxBigInt, SELECTOR, TOPIC, toQuantity } from './codec.ts'
import { type ChainRequest, type RpcBlock, RpcError, type RpcLog, type RpcReceipt } from './rpc.ts'

export type TransferLog = { asset: Hex; from: Hex; to: Hex; value: bigint; block: bigint }

/** How far back to search on a node that refuses wide ranges: about a day, as Base mines a block every two seconds. */
const DEFAULT_LOOKBACK_BLOCKS = 50_000n
const RANGE_BLOCKS = 10_000n
const MAX_FOUND_TRANSFERS = 100

type Deps = { request: ChainRequest; lookbackBlocks?: bigint }

export function createChainReader({ request, lookbackBlocks = DEFAULT_LOOKBACK_BLOCKS }: Deps): ChainReader {
  const call = async (to: Hex, data: Hex) => BigInt((await request('eth_call', [{ to, data }, 'latest'])) as string)

  const findUseLog = async (asset: Hex, payer: Hex, nonce: Hex): Promise<RpcLog | undefined> => {
    const topics = [
      [TOPIC.authorizationUsed, TOPIC.authorizationCanceled],
      `0x${encodeWord(payer)}`,
      nonce.toLowerCase(),
    ]
    for await (const logs of searchLogs({ address: asset, topics })) if (logs[0]) return logs[0]
    return undefined
  }

  /** The logs of the whole chain; of a node that refuses so wide a search, in ranges with the newest blocks first. */
  async function* searchLogs(filter: { address: Hex; topics: unknown[] }): AsyncGenerator<RpcLog[]> {
    const findLogs = async (fromBlock: Hex, toBlock: string) =>
      (await request('eth_getLogs', [{ ...filter, fromBlock, toBlock }])) as RpcLog[]
    let all: RpcLog[] | undefined
    try {
      all = await findLogs('0x0', 'latest')
    } catch (error) {
      if (!(error instanceof RpcError)) throw error
    }
    if (all) {
      yield all
      return
    }
    const head = BigInt((await request('eth_blockNumber')) as string)
    const oldest = maxBigInt(head - lookbackBlocks, 0n)
    for (let to = head; to >= oldest; to -= RANGE_BLOCKS)
      yield await findLogs(toQuantity(maxBigInt(to - RANGE_BLOCKS + 1n, oldest)), toQuantity(to))
  }

  return {
    async authorization(asset, payer, nonce) {
      const state = await call(asset, encodeCall(SELECTOR.authorizationState, payer, nonce))
      if (state === 0n) return { used: false }
      const useLog = await findUseLog(asset, payer, nonce)
      if (!useLog) return { used: true, transaction: null, transfer: null }
      const transaction = useLog.transactionHash as Hex
      if (useLog.topics[0] === TOPIC.authorizationCanceled) return { used: true, transaction, transfer: null }
      const receipt = (await request('eth_getTransactionReceipt', [transaction])) as RpcReceipt | null
      const transfer = receipt ? findAuthorizedTransfer(receipt, asset, payer, nonce) : undefined
      return { used: true, transaction: transfer ? transaction : null, transfer: transfer ?? null }
    },

    balanceOf: (asset, owner) => call(asset, encodeCall(SELECTOR.balanceOf, owner)),

    async headTime() {
      const head = (await request('eth_getBlockByNumber', ['latest', false])) as RpcBlock
      return BigInt(head.timestamp)
    },

    async blockTime(block) {
      const { timestamp } = (await request('eth_getBlockByNumber', [toQuantity(block), false])) as RpcBlock
      return BigInt(timestamp)
    },

    async transfers(transaction) {
      const receipt = (await request('eth_getTransactionReceipt', [transaction])) as RpcReceipt | null
      return receipt
        ? receipt.logs.flatMap((log, index) =>
            isTransfer(log) ? [{ ...toTransferLog(log), nonce: findNonce(receipt.logs, index) }] : [],
          )
        : null
    },

    async findTransfers({ asset, from, to, value, after }) {
      const topics = [TOPIC.transfer, `0x${encodeWord(from)}`, `0x${encodeWord(to)}`]
      const transfers: RpcLog[] = []
      for await (const logs of searchLogs({ address: asset, topics }))
        transfers.unshift(...logs.filter((log) => isTransfer(log) && BigInt(log.data) === value))
      const newest = transfers.slice(-MAX_FOUND_TRANSFERS)
      const minedAt = new Map<string, bigint>()
      for (const { blockNumber } of newest) {
        if (minedAt.has(blockNumber)) continue
        const block = (await request('eth_getBlockByNumber', [blockNumber, false])) as RpcBlock
        minedAt.set(blockNumber, BigInt(block.timestamp))
      }
      return newest
        .map((log) => ({
          transaction: log.transactionHash.toLowerCase() as Hex,
          minedAt: minedAt.get(log.blockNumber)!,
        }))
        .filter((transfer) => transfer.minedAt > after)
    },
  }
}

const isTransfer = (log: RpcLog) => log.topics[0] === TOPIC.transfer && log.topics.length === 3

const toTransferLog = (log: RpcLog): TransferLog => ({
  asset: log.address.toLowerCase() as Hex,
  from: addressInWord(log.topics[1]!),
  to: addressInWord(log.topics[2]!),
  value: BigInt(log.data),
  block: BigInt(log.blockNumber),
})

/** The nonce of the authorisation that made a transfer; see `findAuthorizedTransfer` for the order of the two logs. */
function findNonce(logs: readonly RpcLog[], index: number): Hex | null {
  const transfer = logs[index]!
  const use = [logs[index - 1], logs[index + 1]].find(
    (log) =>
      log?.topics[0] === TOPIC.authorizationUsed &&
      log.address.toLowerCase() === transfer.address.toLowerCase() &&
      log.topics[1] === transfer.topics[1],
  )
  return use ? (use.topics[2]!.toLowerCase() as Hex) : null
}

/**
 * The transfer that one authorisation made. The token emits AuthorizationUsed directly before its Transfer, so each of
 * several payments in one transaction is matched with its own transfer.
 */
export function findAuthorizedTransfer(
  receipt: RpcReceipt,
  asset: Hex,
  payer: Hex,
  nonce: Hex,
): TransferLog | undefined {
  const logs = receipt.logs.filter((log) => log.address.toLowerCase() === asset.toLowerCase())
  const index = logs.findIndex(
    (log) =>
      log.topics[0] === TOPIC.authorizationUsed &&
      addressInWord(log.topics[1] ?? '') === payer.toLowerCase() &&
      log.topics[2]?.toLowerCase() === nonce.toLowerCase(),
  )
  if (index < 0) return undefined
  // FiatToken has emitted the pair in this order in every version; the preceding log is checked for tokens that do not.
  const neighbours = [logs[index + 1], logs[index - 1]]
  const transfer = neighbours.find(
    (log) => log && isTransfer(log) && addressInWord(log.topics[1]!) === payer.toLowerCase(),
  )
  return transfer && toTransferLog(transfer)
}
