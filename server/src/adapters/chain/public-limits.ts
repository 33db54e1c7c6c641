/**
 * What an anonymous caller may ask of the embedded chain. The EVM executes one call at a time and cannot be interrupted,
 * so a call that takes long delays every payment: its gas is bounded, and calls that take long must leave the chain free
 * for several times as long as they had it.
 */
import { minBigInt, toBytes, toQuantity } from './codec.ts'
import { type ChainRequest, RpcError } from './rpc.ts'

/** The worst code uses this in about 150 ms; a transfer takes a fifth of it. */
export const PUBLIC_GAS = 500_000n
/** With the bytes that a call carries paid for; enough to deploy a contract of 12 kB. */
export const MAX_PUBLIC_GAS = 3_000_000n
const GAS_PER_BYTE = 40n
const GAS_PER_BYTE_OF_CODE = 200n
const MAX_LOG_BLOCKS = 2_000n

/** Calls that take less are free: those of a client that reads balances and sends transfers. */
const FREE_MS = 25
const PAUSE_FACTOR = 4
const MAX_PAUSE_MS = 5_000
const MAX_WAITING = 64
const MAX_WAIT_MS = 10_000

const LIMIT_EXCEEDED = -32005
const sharedMethods = new Set(['eth_call', 'eth_estimateGas', 'eth_sendRawTransaction', 'eth_getLogs'])

export function limitPublicRequests(request: ChainRequest, timeShare = createTimeShare()): ChainRequest {
  return async (method, params = []) => {
    const limited = await limitRequest(request, method, params)
    return sharedMethods.has(method) ? timeShare(() => request(method, limited)) : request(method, limited)
  }
}

async function limitRequest(request: ChainRequest, method: string, params: readonly unknown[]) {
  if (method === 'eth_call' || method === 'eth_estimateGas') return limitCallGas(params)
  if (method === 'eth_sendRawTransaction') checkTransactionGas(params[0])
  if (method === 'eth_getLogs') await checkLogRange(request, params[0])
  return params
}

const gasAllowance = (bytes: number, createsContract: boolean) =>
  minBigInt(MAX_PUBLIC_GAS, PUBLIC_GAS + BigInt(bytes) * (GAS_PER_BYTE + (createsContract ? GAS_PER_BYTE_OF_CODE : 0n)))

function limitCallGas([call, ...otherParams]: readonly unknown[]): readonly unknown[] {
  if (typeof call !== 'object' || call === null) return [call, ...otherParams]
  const { gas, to, data, input } = call as Record<string, unknown>
  const allowance = gasAllowance(String(data ?? input ?? '').length / 2, to === undefined || to === null)
  const requested = typeof gas === 'string' && /^0x[0-9a-f]{1,64}$/i.test(gas) ? BigInt(gas) : allowance
  return [{ ...call, gas: toQuantity(minBigInt(requested, allowance)) }, ...otherParams]
}

function checkTransactionGas(raw: unknown) {
  const transaction = readGas(raw)
  if (!transaction) throw new RpcError(-32602, 'not a raw transaction')
  const allowance = gasAllowance(transaction.bytes, transaction.createsContract)
  if (transaction.gas > allowance)
    throw new RpcError(
      LIMIT_EXCEEDED,
      `a transaction of this size may have a gas limit of ${allowance} here, not ${transaction.gas}`,
    )
}

async function checkLogRange(request: ChainRequest, filter: unknown) {
  const { fromBlock, toBlock, blockHash } = (typeof filter === 'object' && filter !== null ? filter : {}) as Record<
    string,
    unknown
  >
  if (blockHash !== undefined) return
  const head = BigInt(String(await request('eth_blockNumber', [])))
  const toNumber = (tag: unknown) =>
    typeof tag === 'string' && /^0x[0-9a-f]{1,16}$/i.test(tag) ? BigInt(tag) : tag === 'earliest' ? 0n : head
  if (minBigInt(toNumber(toBlock), head) - toNumber(fromBlock) > MAX_LOG_BLOCKS)
    throw new RpcError(LIMIT_EXCEEDED, `more than ${MAX_LOG_BLOCKS} blocks: ask for fewer`)
}

/** The position of the gas limit among the fields of a transaction, by its type; the recipient is the next field. */
const gasPositions: Record<number, number> = { 1: 3, 2: 4, 3: 4, 4: 4 }
const LEGACY_GAS_POSITION = 2
const LEGACY_LIST = 0xc0

/** Undefined when the text is not an RLP list with those fields; what the transaction says is left to the EVM. */
export function readGas(raw: unknown): { gas: bigint; createsContract: boolean; bytes: number } | undefined {
  if (typeof raw !== 'string' || !/^0x([0-9a-f]{2})+$/i.test(raw)) return undefined
  const bytes = toBytes(raw)
  const isLegacy = bytes[0]! >= LEGACY_LIST
  const position = isLegacy ? LEGACY_GAS_POSITION : gasPositions[bytes[0]!]
  if (position === undefined) return undefined
  const list = readItem(bytes, isLegacy ? 0 : 1)
  if (!list?.isList) return undefined
  let offset = list.start
  const fields: Uint8Array[] = []
  while (fields.length <= position + 1) {
    const item = offset < list.end ? readItem(bytes, offset) : undefined
    if (!item) return undefined
    fields.push(bytes.subarray(item.start, item.end))
    offset = item.end
  }
  const gas = Buffer.from(fields[position]!).toString('hex')
  return { gas: BigInt(`0x${gas || '0'}`), createsContract: fields[position + 1]!.length === 0, bytes: bytes.length }
}

/** One item of RLP: a byte below 0x80 is itself; then come short and long strings, short and long lists. */
function readItem(bytes: Uint8Array, at: number): { start: number; end: number; isList: boolean } | undefined {
  const prefix = bytes[at]
  if (prefix === undefined) return undefined
  if (prefix < 0x80) return { start: at, end: at + 1, isList: false }
  const isList = prefix >= 0xc0
  const short = prefix - (isList ? 0xc0 : 0x80)
  const lengthBytes = short > 55 ? short - 55 : 0
  if (lengthBytes > 4) return undefined
  const start = at + 1 + lengthBytes
  const length =
    lengthBytes === 0 ? short : Number.parseInt(Buffer.from(bytes.subarray(at + 1, start)).toString('hex'), 16)
  return start + length <= bytes.length ? { start, end: start + length, isList } : undefined
}

export type TimeShare = <Result>(work: () => Promise<Result>) => Promise<Result>

/** One call at a time, in order; after a call that took long the next one waits, so that others have the chain meanwhile. */
export function createTimeShare(now: () => number = () => performance.now()): TimeShare {
  let last: Promise<unknown> = Promise.resolve()
  let waiting = 0
  let freeAt = 0
  const busy = () => new RpcError(LIMIT_EXCEEDED, 'the chain is busy with the calls of others; try again in a moment')

  return async (work) => {
    if (waiting >= MAX_WAITING) throw busy()
    waiting += 1
    const arrivedAt = now()
    const previous = last
    let finish = () => {}
    last = new Promise<void>((resolve) => {
      finish = resolve
    })
    try {
      await previous
      const delay = freeAt - now()
      if (delay > 0) await new Promise((resolve) => setTimeout(resolve, delay))
      if (now() - arrivedAt > MAX_WAIT_MS) throw busy()
      const startedAt = now()
      try {
        return await work()
      } finally {
        const duration = now() - startedAt
        if (duration > FREE_MS) freeAt = now() + Math.min(MAX_PAUSE_MS, duration * PAUSE_FACTOR)
      }
    } finally {
      waiting -= 1
      finish()
    }
  }
}
