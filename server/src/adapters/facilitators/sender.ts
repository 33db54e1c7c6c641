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

export function createSender({ request, curve, privateKey, chainId, receiptTimeoutMs }: Deps): Sender {
  const key = toBytes(privateKey)
  const address = curve.addressOf(key)
  let nextNonce: number | undefined
  let fees: { maxPriorityFeePerGas: bigint; maxFeePerGas: bigint; until: number } | undefined
  /** Sent without a receipt. It occupies its nonce until it is mined, so it is sent to the node again. */
  let unconfirmed: { hash: Hex; raw: Hex; nonce: number } | undefined

  const readTransactionCount = async (tag: 'latest' | 'pending') =>
    Number(BigInt((await request('eth_getTransactionCount', [address, tag])) as string))

  const readFees = async () => {
    if (fees && fees.until > performance.now()) return fees
    const [head, tip] = await Promise.all([
      request('eth_getBlockByNumber', ['latest', false]) as Promise<RpcBlock & { baseFeePerGas: string }>,
      request('eth_maxPriorityFeePerGas') as Promise<string>,
    ])
    const maxPriorityFeePerGas = BigInt(tip)
    // Twice the base fee covers six full blocks in a row; the unused part is not charged.
    const maxFeePerGas = BigInt(head.baseFeePerGas) * 2n + maxPriorityFeePerGas
    fees = { maxPriorityFeePerGas, maxFeePerGas, until: performance.now() + FEES_TTL_MS }
    return fees
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

  const resendUnconfirmed = async () => {
    if (!unconfirmed) return
    if ((await readReceipt(unconfirmed.hash)) || (await readTransactionCount('latest')) > unconfirmed.nonce) {
      unconfirmed = undefined
      return
    }
    await request('eth_sendRawTransaction', [unconfirmed.raw]).catch((error: unknown) => {
      if (!(error instanceof RpcError)) throw error
    })
  }

  const readNonce = async () => {
    const pending = await readTransactionCount('pending')
    return unconfirmed ? Math.max(pending, unconfirmed.nonce + 1) : pending
  }

  return {
    address,
    async send({ to, data, gas }) {
      for (let attempt = 1; ; attempt++) {
        let raw: Hex
        let nonce: number
        try {
          await resendUnconfirmed()
          nonce = nextNonce ?? (await readNonce())
          const { maxFeePerGas, maxPriorityFeePerGas } = await readFees()
          raw = signTransaction(curve, { chainId, nonce, maxFeePerGas, maxPriorityFeePerGas, gas, to, data }, key)
        } catch (error) {
          nextNonce = undefined
          const message = `The chain could not be asked before sending: ${errorMessage(error)}`
          return { state: 'unknown', hash: null, message }
        }
        const { response, refusal } = await request('eth_sendRawTransaction', [raw]).then(
          (value) => ({ response: value, refusal: undefined }),
          (error: unknown) => ({ response: undefined, refusal: error }),
        )
        const outcome = refusal === undefined ? 'accepted' : classifySendError(refusal)
        if (outcome === 'stale' && attempt < MAX_ATTEMPTS) {
          nextNonce = undefined
          fees = undefined
          continue
        }
        if (outcome === 'refused' || outcome === 'stale') {
          nextNonce = undefined
          // The same payment may be in the unconfirmed transaction, which may still be mined.
          return unconfirmed
            ? { state: 'unknown', hash: unconfirmed.hash, message: errorMessage(refusal) }
            : { state: 'rejected', message: errorMessage(refusal) }
        }
        // Hashing a large batch takes longer than signing it, so the node's hash is used when it returns one.
        const hash = isHash(response) ? response : hashRawTransaction(raw)
        const receipt = await waitForReceipt(hash)
        if (receipt) {
          nextNonce = nonce + 1
          return { state: 'mined', receipt }
        }
        unconfirmed = { hash, raw, nonce }
        nextNonce = undefined
        const reason = refusal === undefined ? 'it was not mined in time' : errorMessage(refusal)
        return { state: 'unknown', hash, message: `The transaction's outcome is not known: ${reason}` }
      }
    },
  }
}

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
