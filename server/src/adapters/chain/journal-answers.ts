/** The questions about the past that the EVM of this process cannot answer, because it was not there: the journal was. */
import type { Hex } from '../../modules/payments/facilitator.ts'
import { addressInWord, SELECTOR, TOPIC, word } from './codec.ts'
import { USDC } from './edr.ts'
import type { ChainJournal, LogQuery } from './journal.ts'
import { type ChainRequest, RpcError, type RpcLog, type RpcReceipt, type RpcTransaction } from './rpc.ts'

const MAX_TRANSACTIONS = 5_000
const MAX_LOGS = 10_000

type Chain = { send: ChainRequest; firstBlock: bigint; headNumber: bigint; recent: ReadonlyMap<string, RpcReceipt> }

/** The answer (null included), or undefined when the EVM itself should be asked. */
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
      return (await chain.send(method, params)) ?? (await journal.transaction(first))?.transaction ?? null
    case 'eth_getTransactionReceipt':
      if (!isHash(first)) return undefined
      if (chain.recent.has(first)) return chain.recent.get(first)
      return (await chain.send(method, params)) ?? (await journal.transaction(first))?.receipt ?? null
    case 'eth_getBlockByHash':
      if (!isHash(first)) return undefined
      return (await chain.send(method, params)) ?? asBlock(await journal.block({ hash: first }), second)
    case 'eth_getBlockByNumber': {
      if (!isNumber(first) || BigInt(first) > chain.firstBlock) return undefined
      return asBlock(await journal.block({ number: BigInt(first) }), second) ?? undefined
    }
    case 'eth_call': {
      const asked = askedAuthorization(first)
      if (!asked || chain.firstBlock === 0n) return undefined
      const answer = await chain.send(method, params)
      const used = BigInt(String(answer)) === 1n || (await journal.isUsed(asked.authorizer, asked.nonce))
      return `0x${word(used ? 1 : 0)}`
    }
    case 'eth_getLogs':
      return logs(journal, chain, first)
    default:
      return undefined
  }
}

/** `authorizationState(authorizer, nonce)` of the token: expired authorisations are not loaded at a start. */
function askedAuthorization(call: unknown): { authorizer: Hex; nonce: Hex } | undefined {
  const { to, data, input } = (typeof call === 'object' && call !== null ? call : {}) as Record<string, unknown>
  const text = String(data ?? input ?? '').toLowerCase()
  if (String(to).toLowerCase() !== USDC || text.length !== 2 + 8 + 128) return undefined
  if (!text.startsWith(`0x${SELECTOR.authorizationState}`)) return undefined
  return { authorizer: addressInWord(text.slice(10, 74)), nonce: `0x${text.slice(74)}` }
}

const isHash = (value: unknown): value is Hex => typeof value === 'string' && /^0x[0-9a-f]{64}$/i.test(value)
const isNumber = (value: unknown): value is Hex => typeof value === 'string' && /^0x[0-9a-f]{1,16}$/i.test(value)

function asBlock(kept: Awaited<ReturnType<ChainJournal['block']>>, full: unknown) {
  if (!kept) return null
  const { header, transactions } = kept
  return {
    ...header,
    transactions: full === true ? transactions : transactions.map((item: RpcTransaction) => item.hash),
  }
}

type LogFilter = { fromBlock?: unknown; toBlock?: unknown; blockHash?: unknown; address?: unknown; topics?: unknown }

/** The journal has every log there ever was, of this process and of those before it. */
async function logs(journal: ChainJournal, chain: Chain, filter: unknown): Promise<RpcLog[]> {
  const wanted = (typeof filter === 'object' && filter !== null ? filter : {}) as LogFilter
  const range = await blockRange(journal, chain, wanted)
  const topics = Array.isArray(wanted.topics) ? wanted.topics.slice(0, 4).map(oneOf) : []
  const addresses = oneOf(wanted.address)
  if (!range) return []
  const query: LogQuery = { ...range, limit: MAX_TRANSACTIONS, authorization: namedAuthorization(topics) }
  const receipts = await journal.receipts(query)
  if (receipts === 'too_many')
    throw new RpcError(-32005, `more than ${MAX_TRANSACTIONS} transactions in that range: ask for fewer blocks`)
  const found = receipts
    .flatMap((receipt) => receipt.logs)
    .filter(
      (log) =>
        (!addresses || addresses.includes(log.address.toLowerCase())) &&
        topics.every((options, index) => !options || options.includes(log.topics[index]?.toLowerCase() ?? '')),
    )
  if (found.length > MAX_LOGS) throw new RpcError(-32005, `more than ${MAX_LOGS} logs: ask for fewer blocks`)
  return found
}

/** Null or missing stands for anything; a value, or any value of a list. */
function oneOf(value: unknown): string[] | undefined {
  if (value === undefined || value === null) return undefined
  const list = (Array.isArray(value) ? value : [value]).filter((item): item is string => typeof item === 'string')
  return list.slice(0, 100).map((item) => item.toLowerCase())
}

async function blockRange(journal: ChainJournal, chain: Chain, filter: LogFilter) {
  if (filter.blockHash !== undefined) {
    const block = isHash(filter.blockHash) ? await journal.block({ hash: filter.blockHash }) : null
    return block ? { fromBlock: BigInt(block.header.number), toBlock: BigInt(block.header.number) } : undefined
  }
  const numberOf = (tag: unknown) => (isNumber(tag) ? BigInt(tag) : tag === 'earliest' ? 0n : chain.headNumber)
  return { fromBlock: numberOf(filter.fromBlock), toBlock: numberOf(filter.toBlock) }
}

/** The usual question, "where was this authorisation used?", has an index of its own. */
function namedAuthorization(topics: (string[] | undefined)[]): LogQuery['authorization'] {
  const [kinds, authorizers, nonces] = topics
  const ofAuthorizations = kinds?.every(
    (kind) => kind === TOPIC.authorizationUsed || kind === TOPIC.authorizationCanceled,
  )
  if (!ofAuthorizations || authorizers?.length !== 1 || nonces?.length !== 1) return undefined
  return { authorizer: addressInWord(authorizers[0]!), nonce: nonces[0] as Hex }
}
