/**
 * One account that sends transactions one after the other. It counts the account's nonce itself: a library that asks the
 * node for it loses transactions as soon as two are sent at once.
 */
import type { Hex } from '../../modules/payments/facilitator.ts'
import { toBytes } from '../chain/codec.ts'
import { type ChainRequest, type RpcBlock, RpcError, type RpcReceipt } from '../chain/rpc.ts'
import type { Curve } from './secp256k1.ts'
import { hashRawTransaction, signTransaction } from './transaction.ts'

export type SendResult =
  | { state: 'mined'; receipt: RpcReceipt }
  /** The node refused the transaction and cannot have accepted it: nothing was sent. */
  | { state: 'rejected'; message: string }
  /** It may still be mined. Without a hash, the chain could not be reached before sending. */
  | { state: 'unknown'; hash: Hex | null; message: string }

export type Sender = {
  address: Hex
  /** Not concurrent: the caller must wait for the previous call. */
  send(call: { to: Hex; data: Hex; gas: bigint }): Promise<SendResult>
}

type Deps = {
  request: ChainRequest
  curve: Curve
  privateKey: Hex
  chainId: number
  /** How long to wait for a receipt before the outcome counts as unknown. */
  receiptTimeoutMs: number
}

const MAX_ATTEMPTS = 3
const FIRST_POLL_MS = 20
const MAX_POLL_MS = 1_000
const FEES_TTL_MS = 2_000
/** Transactions that may wait for a block at once; nodes keep about this many of one account. */
const MAX_UNCONFIRMED = 16
/** A replacement is never dearer than this many times the current price, however often it was sent. */
const MAX_FEE_MULTIPLE = 3n

type Call = { to: Hex; data: Hex; gas: bigint }
type Fees = { maxPriorityFeePerGas: bigint; maxFeePerGas: bigint }
type Unconfirmed = { call: Call; fees: Fees; raw: Hex; hash: Hex }

export function createSender({ request, curve, privateKey, chainId, receiptTimeoutMs }: Deps): Sender {
  const key = toBytes(privateKey)
  const address = curve.addressOf(key)
  let nextNonce: number | undefined
  let cachedFees: (Fees & { until: number }) | undefined
  /** Sent without a receipt, by nonce. Each occupies its nonce until it is mined, and all later ones wait for it. */
  const unconfirmed = new Map<number, Unconfirmed>()

  const readTransactionCount = async (tag: 'latest' | 'pending') =>
    Number(BigInt((await request('eth_getTransactionCount', [address, tag])) as string))

  const readFees = async (): Promise<Fees> => {
    if (cachedFees && cachedFees.until > performance.now()) return cachedFees
    const [head, tip] = await Promise.all([
      request('eth_getBlockByNumber', ['latest', false]) as Promise<RpcBlock & { baseFeePerGas: string }>,
      request('eth_maxPriorityFeePerGas') as Promise<string>,
    ])
    const maxPriorityFeePerGas = BigInt(tip)
    // Twice the base fee covers six full blocks in a row; the unused part is not charged.
    const maxFeePerGas = BigInt(head.baseFeePerGas) * 2n + maxPriorityFeePerGas
    cachedFees = { maxPriorityFeePerGas, maxFeePerGas, until: performance.now() + FEES_TTL_MS }
    return cachedFees
  }

  const readReceipt = async (hash: Hex) => (await request('eth_getTransactionReceipt', [hash])) as RpcReceipt | null

  const waitForReceipt = async (hash: Hex): Promise<RpcReceipt | undefined> => {
    const deadline = performance.now() + receiptTimeoutMs
    for (let pause = FIRST_POLL_MS; ; pause = Math.min(pause * 2, MAX_POLL_MS)) {
      const receipt = await readReceipt(hash).catch(() => null)
      if (receipt) return receipt
      if (performance.now() + pause > deadline) return undefined
      await new Promise((resolve) => setTimeout(resolve, pause))
    }
  }

  const sign = (nonce: number, call: Call, { maxFeePerGas, maxPriorityFeePerGas }: Fees) =>
    signTransaction(curve, { chainId, nonce, maxFeePerGas, maxPriorityFeePerGas, ...call }, key)

  const forgetMinedBefore = (transactionCount: number) => {
    for (const nonce of unconfirmed.keys()) if (nonce < transactionCount) unconfirmed.delete(nonce)
  }

  /** Sends every unmined transaction to the node again, the lowest nonce first, with a higher fee where that may help. */
  const resendUnconfirmed = async (marketFees: Fees) => {
    for (const [nonce, transaction] of [...unconfirmed].sort(([a], [b]) => a - b)) {
      const fees = replacementFees(transaction.fees, marketFees)
      const raw = fees ? sign(nonce, transaction.call, fees) : transaction.raw
      try {
        await request('eth_sendRawTransaction', [raw])
        if (fees) unconfirmed.set(nonce, { ...transaction, fees, raw, hash: hashRawTransaction(raw) })
      } catch (error) {
        // A refusal changes nothing: the earlier version waits, or the nonce is used by now.
        if (!(error instanceof RpcError)) throw error
      }
    }
  }

  /** The nonce of a new transaction, and its fees; undefined when too many wait for a block. */
  const prepareNonce = async (attempt: number): Promise<{ nonce: number; fees: Fees } | undefined> => {
    if (unconfirmed.size > 0) forgetMinedBefore(await readTransactionCount('latest'))
    const fees = await readFees()
    if (unconfirmed.size === 0) {
      return { nonce: nextNonce ?? (await readTransactionCount('pending')), fees: raise(fees, attempt - 1) }
    }
    await resendUnconfirmed(fees)
    const mined = await readTransactionCount('latest')
    forgetMinedBefore(mined)
    if (unconfirmed.size >= MAX_UNCONFIRMED) return undefined
    // The first gap, not the node's pending count: a transaction of an earlier process may be stuck or lost there, and
    // ours wait behind it. Its payments are sent again when they are reconciled.
    let nonce = mined
    while (unconfirmed.has(nonce)) nonce += 1
    const isGap = [...unconfirmed.keys()].some((later) => later > nonce)
    return { nonce, fees: raise(fees, isGap ? attempt + 1 : attempt - 1) }
  }

  return {
    address,
    async send(call) {
      for (let attempt = 1; ; attempt++) {
        let raw: Hex
        let prepared: { nonce: number; fees: Fees } | undefined
        try {
          prepared = await prepareNonce(attempt)
          if (!prepared) {
            const message = `${unconfirmed.size} transactions wait to be mined; nothing more is sent before.`
            return { state: 'unknown', hash: null, message }
          }
          raw = sign(prepared.nonce, call, prepared.fees)
        } catch (error) {
          nextNonce = undefined
          const message = `The chain could not be asked before sending: ${errorMessage(error)}`
          return { state: 'unknown', hash: null, message }
        }
        const { nonce, fees } = prepared
        const { response, refusal } = await request('eth_sendRawTransaction', [raw]).then(
          (value) => ({ response: value, refusal: undefined }),
          (error: unknown) => ({ response: undefined, refusal: error }),
        )
        const outcome = refusal === undefined ? 'accepted' : classifySendError(refusal)
        if (outcome === 'stale' && attempt < MAX_ATTEMPTS) {
          nextNonce = undefined
          cachedFees = undefined
          continue
        }
        if (outcome === 'refused' || outcome === 'stale') {
          nextNonce = undefined
          // The same payment may be in an unconfirmed transaction, which may still be mined.
          const waiting = [...unconfirmed.values()].at(-1)
          return waiting
            ? { state: 'unknown', hash: waiting.hash, message: errorMessage(refusal) }
            : { state: 'rejected', message: errorMessage(refusal) }
        }
        // Hashing a large batch takes longer than signing it, so the node's hash is used when it returns one.
        const hash = isHash(response) ? response : hashRawTransaction(raw)
        const receipt = await waitForReceipt(hash)
        if (receipt) {
          // A nonce is mined after all lower ones.
          forgetMinedBefore(nonce + 1)
          nextNonce = unconfirmed.size === 0 ? nonce + 1 : undefined
          return { state: 'mined', receipt }
        }
        unconfirmed.set(nonce, { call, fees, raw, hash })
        nextNonce = undefined
        cachedFees = undefined
        const reason = refusal === undefined ? 'it was not mined in time' : errorMessage(refusal)
        return { state: 'unknown', hash, message: `The transaction's outcome is not known: ${reason}` }
      }
    },
  }
}

/** Nodes take a replacement only when both fees rise by a tenth; undefined when the fees are high enough already. */
function replacementFees(sent: Fees, market: Fees): Fees | undefined {
  const raised = raise(sent, 1)
  const fees = {
    maxFeePerGas: max(raised.maxFeePerGas, market.maxFeePerGas),
    maxPriorityFeePerGas: max(raised.maxPriorityFeePerGas, market.maxPriorityFeePerGas),
  }
  return fees.maxFeePerGas <= market.maxFeePerGas * MAX_FEE_MULTIPLE ? fees : undefined
}

/** Fees that are an eighth higher, this many times over. */
function raise({ maxFeePerGas, maxPriorityFeePerGas }: Fees, times: number): Fees {
  // Where gas costs nothing the account need not have any money.
  if (times <= 0 || maxFeePerGas === 0n) return { maxFeePerGas, maxPriorityFeePerGas }
  return raise(
    { maxFeePerGas: addEighth(maxFeePerGas), maxPriorityFeePerGas: addEighth(maxPriorityFeePerGas) },
    times - 1,
  )
}

const addEighth = (fee: bigint) => fee + fee / 8n + 1n
const max = (a: bigint, b: bigint) => (a > b ? a : b)

const isHash = (value: unknown): value is Hex => typeof value === 'string' && /^0x[0-9a-f]{64}$/i.test(value)

const errorMessage = (error: unknown) => (error instanceof Error ? error.message : String(error)).slice(0, 300)

/**
 * `accepted`: the node already has the transaction. `stale`: our nonce or fees were out of date. `refused`: the node
 * rejected it. `unclear`: anything else, even a JSON-RPC error, since a proxy may return one after forwarding it.
 */
function classifySendError(error: unknown): 'accepted' | 'stale' | 'refused' | 'unclear' {
  if (!(error instanceof RpcError)) return 'unclear'
  if (/already known|already imported|known transaction/i.test(error.message)) return 'accepted'
  if (/nonce.*too (low|high)|underpriced|(max )?fee.*(less|lower) than|below.*base fee/i.test(error.message))
    return 'stale'
  if (
    /insufficient funds|enough funds|exceeds (the )?(block )?gas limit|intrinsic gas|gas limit/i.test(error.message)
  ) {
    return 'refused'
  }
  return 'unclear'
}
