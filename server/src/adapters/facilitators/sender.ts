/**
 * One account that sends transactions, one after the other. The account's nonce is ours to count: a library that asks the
 * node for it loses transactions as soon as two are sent at once.
 */
import type { Hex } from '../../modules/payments/facilitator.ts'
import { bytesOf } from '../chain/codec.ts'
import { type ChainRequest, type RpcBlock, RpcError, type RpcReceipt } from '../chain/rpc.ts'
import type { Curve } from './recover.ts'
import { hashOfRaw, signTransaction } from './transaction.ts'

export type Sent =
  | { state: 'mined'; receipt: RpcReceipt }
  /** The node said no and cannot have taken it: nothing was sent. */
  | { state: 'rejected'; message: string }
  /** It may be mined yet, or, when it has no hash, the chain could not even be asked how to send it. */
  | { state: 'unknown'; hash: Hex | null; message: string }

export type Sender = {
  address: Hex
  /** Settles nothing by itself: whoever calls this waits for the call before. */
  send(call: { to: Hex; data: Hex; gas: bigint }): Promise<Sent>
}

type Deps = {
  request: ChainRequest
  curve: Curve
  privateKey: Hex
  chainId: number
  /** How long a transaction is waited for before its outcome counts as unknown. */
  receiptTimeoutMs: number
}

const ATTEMPTS = 3
const FIRST_POLL_MS = 20
const MAX_POLL_MS = 1_000
const FEES_KEPT_MS = 2_000

export function createSender({ request, curve, privateKey, chainId, receiptTimeoutMs }: Deps): Sender {
  const key = bytesOf(privateKey)
  const address = curve.addressOf(key)
  let nextNonce: number | undefined
  let fees: { maxPriorityFeePerGas: bigint; maxFeePerGas: bigint; until: number } | undefined
  /** Sent, and never seen again. It holds its nonce until it is mined, so it is offered to the node once more. */
  let lost: { hash: Hex; raw: Hex; nonce: number } | undefined

  const countSent = async (tag: 'latest' | 'pending') =>
    Number(BigInt((await request('eth_getTransactionCount', [address, tag])) as string))

  const currentFees = async () => {
    if (fees && fees.until > performance.now()) return fees
    const [head, tip] = await Promise.all([
      request('eth_getBlockByNumber', ['latest', false]) as Promise<RpcBlock & { baseFeePerGas: string }>,
      request('eth_maxPriorityFeePerGas') as Promise<string>,
    ])
    const maxPriorityFeePerGas = BigInt(tip)
    // Twice the base fee outlives six full blocks in a row; what is not needed is not paid.
    const maxFeePerGas = BigInt(head.baseFeePerGas) * 2n + maxPriorityFeePerGas
    fees = { maxPriorityFeePerGas, maxFeePerGas, until: performance.now() + FEES_KEPT_MS }
    return fees
  }

  const receiptOf = async (hash: Hex) => (await request('eth_getTransactionReceipt', [hash])) as RpcReceipt | null

  const waitForReceipt = async (hash: Hex): Promise<RpcReceipt | undefined> => {
    const deadline = performance.now() + receiptTimeoutMs
    for (let pause = FIRST_POLL_MS; ; pause = Math.min(pause * 2, MAX_POLL_MS)) {
      const receipt = await receiptOf(hash).catch(() => null)
      if (receipt) return receipt
      if (performance.now() + pause > deadline) return undefined
      await new Promise((resolve) => setTimeout(resolve, pause))
    }
  }

  const findLost = async () => {
    if (!lost) return
    if ((await receiptOf(lost.hash)) || (await countSent('latest')) > lost.nonce) {
      lost = undefined
      return
    }
    await request('eth_sendRawTransaction', [lost.raw]).catch((error: unknown) => {
      if (!(error instanceof RpcError)) throw error
    })
  }

  const readNonce = async () => {
    const pending = await countSent('pending')
    return lost ? Math.max(pending, lost.nonce + 1) : pending
  }

  return {
    address,
    async send({ to, data, gas }) {
      for (let attempt = 1; ; attempt++) {
        let raw: Hex
        let nonce: number
        try {
          await findLost()
          nonce = nextNonce ?? (await readNonce())
          const { maxFeePerGas, maxPriorityFeePerGas } = await currentFees()
          raw = signTransaction(curve, { chainId, nonce, maxFeePerGas, maxPriorityFeePerGas, gas, to, data }, key)
        } catch (error) {
          nextNonce = undefined
          const message = `The chain could not be asked before sending: ${textOf(error)}`
          return { state: 'unknown', hash: null, message }
        }
        const { answer, refusal } = await request('eth_sendRawTransaction', [raw]).then(
          (value) => ({ answer: value, refusal: undefined }),
          (error: unknown) => ({ answer: undefined, refusal: error }),
        )
        const kind = refusal === undefined ? 'taken' : kindOfRefusal(refusal)
        if (kind === 'stale' && attempt < ATTEMPTS) {
          nextNonce = undefined
          fees = undefined
          continue
        }
        if (kind === 'refused' || kind === 'stale') {
          nextNonce = undefined
          // Whoever asked may have asked before, and what was sent then may be mined yet.
          return lost
            ? { state: 'unknown', hash: lost.hash, message: textOf(refusal) }
            : { state: 'rejected', message: textOf(refusal) }
        }
        // Hashing a large batch takes longer than signing it, so the node's word is taken when there is one.
        const hash = isHash(answer) ? answer : hashOfRaw(raw)
        const receipt = await waitForReceipt(hash)
        if (receipt) {
          nextNonce = nonce + 1
          return { state: 'mined', receipt }
        }
        lost = { hash, raw, nonce }
        nextNonce = undefined
        const why = refusal === undefined ? 'it was not mined in time' : textOf(refusal)
        return { state: 'unknown', hash, message: `The transaction's outcome is not known: ${why}` }
      }
    },
  }
}

const isHash = (value: unknown): value is Hex => typeof value === 'string' && /^0x[0-9a-f]{64}$/i.test(value)

const textOf = (error: unknown) => (error instanceof Error ? error.message : String(error)).slice(0, 300)

/**
 * `taken`: the node has it already. `stale`: our nonce or fees were out of date. `refused`: the node looked at it and
 * will not take it. `unclear`: anything else, even a JSON-RPC error, since a proxy may answer so after passing it on.
 */
function kindOfRefusal(error: unknown): 'taken' | 'stale' | 'refused' | 'unclear' {
  if (!(error instanceof RpcError)) return 'unclear'
  if (/already known|already imported|known transaction/i.test(error.message)) return 'taken'
  if (/nonce.*too (low|high)|underpriced|(max )?fee.*(less|lower) than|below.*base fee/i.test(error.message))
    return 'stale'
  if (
    /insufficient funds|enough funds|exceeds (the )?(block )?gas limit|intrinsic gas|gas limit/i.test(error.message)
  ) {
    return 'refused'
  }
  return 'unclear'
}
