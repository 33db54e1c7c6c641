/** Answers RPC requests about blocks from before this process started, which only the journal has. */
import type { Hex } from '../../modules/payments/facilitator.ts'
import { addressInWord, encodeWord, SELECTOR, TOPIC } from './codec.ts'
import { USDC } from './edr.ts'
import type { ChainJournal, LogQuery } from './journal.ts'
import { type ChainRequest, RpcError, type RpcLog, type RpcReceipt, type RpcTransaction } from './rpc.ts'

const MAX_TRANSACTIONS = 5_000
const MAX_LOGS = 10_000

type Chain = {
  send: ChainRequest
  firstBlock: bigint
  headNumber: bigint
  recentReceipts: ReadonlyMap<string, RpcReceipt>
}

/** The result (which may be null), or undefined when the request should go to the EVM. */
export async function answerFromJournal(
  journal: ChainJournal,
  chain: Chain,
  method: string,
  params: readonly unknown[],
): Promise<unknown> {
  const [first, second] = params
  switch (method) {
    case 'eth_getTransactionByHash':
      if (!isHash(first)) return undefined
      return (await chain.send(method, params)) ?? (await journal.findTransaction(first))?.transaction ?? null
    case 'eth_getTransactionReceipt':
      if (!isHash(first)) return undefined
      if (chain.recentReceipts.has(first)) return chain.recentReceipts.get(first)
      return (await chain.send(method, params)) ?? (await journal.findTransaction(first))?.receipt ?? null
    case 'eth_getBlockByHash':
      if (!isHash(first)) return undefined
      return (await chain.send(method, params)) ?? toRpcBlock(await journal.findBlock({ hash: first }), second)
    case 'eth_getBlockByNumber': {
      if (!isNumber(first) || BigInt(first) > chain.firstBlock) return undefined
      return toRpcBlock(await journal.findBlock({ number: BigInt(first) }), second) ?? undefined
    }
    case 'eth_call': {
      const query = parseAuthorizationState(first)
      if (!query || chain.firstBlock === 0n) return undefined
      const response = await chain.send(method, params)
      const used = BigInt(String(response)) === 1n || (await journal.isAuthorizationUsed(query.authorizer, query.nonce))
      return `0x${encodeWord(used ? 1 : 0)}`
    }
    case 'eth_getLogs':
      return findLogs(journal, chain, first)
    default:
      return undefined
  }
}

/** Recognises `authorizationState(authorizer, nonce)` of the token: expired authorisations are not loaded into the EVM. */
function parseAuthorizationState(call: unknown): { authorizer: Hex; nonce: Hex } | undefined {
  const { to, data, input } = (typeof call === 'object' && call !== null ? call : {}) as Record<string, unknown>
  const text = String(data ?? input ?? '').toLowerCase()
  if (String(to).toLowerCase() !== USDC || text.length !== 2 + 8 + 128) return undefined
  if (!text.startsWith(`0x${SELECTOR.authorizationState}`)) return undefined
  return { authorizer: addressInWord(text.slice(10, 74)), nonce: `0x${text.slice(74)}` }
}

const isHash = (value: unknown): value is Hex => typeof value === 'string' && /^0x[0-9a-f]{64}$/i.test(value)
const isNumber = (value: unknown): value is Hex => typeof value === 'string' && /^0x[0-9a-f]{1,16}$/i.test(value)

function toRpcBlock(block: Awaited<ReturnType<ChainJournal['findBlock']>>, full: unknown) {
  if (!block) return null
  const { header, transactions } = block
  return {
    ...header,
    transactions: full === true ? transactions : transactions.map((item: RpcTransaction) => item.hash),
  }
}

type LogFilter = { fromBlock?: unknown; toBlock?: unknown; blockHash?: unknown; address?: unknown; topics?: unknown }

/** The journal holds all logs, of this process and of earlier ones. */
async function findLogs(journal: ChainJournal, chain: Chain, filter: unknown): Promise<RpcLog[]> {
  const logFilter = (typeof filter === 'object' && filter !== null ? filter : {}) as LogFilter
  const range = await findBlockRange(journal, chain, logFilter)
  const topics = Array.isArray(logFilter.topics) ? logFilter.topics.slice(0, 4).map(toOptions) : []
  const addresses = toOptions(logFilter.address)
  if (!range) return []
  const query: LogQuery = { ...range, limit: MAX_TRANSACTIONS, authorization: parseAuthorizationFilter(topics) }
  const receipts = await journal.findReceipts(query)
  if (receipts === 'too_many')
    throw new RpcError(-32005, `more than ${MAX_TRANSACTIONS} transactions in that range: ask for fewer blocks`)
  const logs = receipts
    .flatMap((receipt) => receipt.logs)
    .filter(
      (log) =>
        (!addresses || addresses.includes(log.address.toLowerCase())) &&
        topics.every((options, index) => !options || options.includes(log.topics[index]?.toLowerCase() ?? '')),
    )
  if (logs.length > MAX_LOGS) throw new RpcError(-32005, `more than ${MAX_LOGS} logs: ask for fewer blocks`)
  return logs
}

/** The values a filter field accepts: one value, any of a list, or undefined for all. */
function toOptions(value: unknown): string[] | undefined {
  if (value === undefined || value === null) return undefined
  const list = (Array.isArray(value) ? value : [value]).filter((item): item is string => typeof item === 'string')
  return list.slice(0, 100).map((item) => item.toLowerCase())
}

async function findBlockRange(journal: ChainJournal, chain: Chain, filter: LogFilter) {
  if (filter.blockHash !== undefined) {
    const block = isHash(filter.blockHash) ? await journal.findBlock({ hash: filter.blockHash }) : null
    return block ? { fromBlock: BigInt(block.header.number), toBlock: BigInt(block.header.number) } : undefined
  }
  const toBlockNumber = (tag: unknown) => (isNumber(tag) ? BigInt(tag) : tag === 'earliest' ? 0n : chain.headNumber)
  return { fromBlock: toBlockNumber(filter.fromBlock), toBlock: toBlockNumber(filter.toBlock) }
}

/** Filters for the use of one authorisation are the most frequent and are answered from an index. */
function parseAuthorizationFilter(topics: (string[] | undefined)[]): LogQuery['authorization'] {
  const [kinds, authorizers, nonces] = topics
  const onlyAuthorizations = kinds?.every(
    (kind) => kind === TOPIC.authorizationUsed || kind === TOPIC.authorizationCanceled,
  )
  if (!onlyAuthorizations || authorizers?.length !== 1 || nonces?.length !== 1) return undefined
  return { authorizer: addressInWord(authorizers[0]!), nonce: nonces[0] as Hex }
}
