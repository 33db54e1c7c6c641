/**
 * Puts authorisations on the chain, many in one transaction. Whatever is waiting when the sender is free goes together;
 * nothing waits for company. One that fails does not sink the others, and each finds its own logs by its nonce.
 */
import type { Authorization, ChainReader, Hex } from '../../modules/payments/facilitator.ts'
import { authorizedTransfer } from '../chain/chain-reader.ts'
import { type Call3, decodeAggregate3, encodeAggregate3, quantity, revertText } from '../chain/codec.ts'
import { MULTICALL3 } from '../chain/edr.ts'
import { type ChainRequest, isExecutionFailure, type RpcReceipt } from '../chain/rpc.ts'
import { REASON, reasonOfRevert } from './reasons.ts'
import type { Sender } from './sender.ts'

export type Outcome =
  | { state: 'settled'; transaction: Hex; block: bigint | null }
  | { state: 'failed' | 'unknown'; reason: string; message: string }

export type Job = {
  asset: Hex
  authorization: Authorization
  /** The last one is the transfer. */
  calls: Call3[]
  /** A contract wallet runs code of its own, which could burn the gas of a whole batch: it travels alone. */
  alone: boolean
}

export type SettlementQueue = { settle(job: Job): Promise<Outcome> }

type Entry = Job & { tries: number; resolve(outcome: Outcome): void }

type Deps = { request: ChainRequest; reader: ChainReader; sender: Sender; maxBatch: number }

/** A transfer takes half of this on Base; the rest is room for a payee that never held the token. */
const GAS_PER_TRANSFER = 130_000n
const GAS_ALONE = 1_000_000n
const MAX_WAITING = 10_000
const MAX_TRIES = 2

export function createSettlementQueue({ request, reader, sender, maxBatch }: Deps): SettlementQueue {
  const waiting: Entry[] = []
  let busy = false

  const drain = async () => {
    // What the same tick brings goes into the first batch already.
    await new Promise((resolve) => setImmediate(resolve))
    while (waiting.length > 0) await run(nextBatch())
    busy = false
  }

  const nextBatch = () => {
    const firstAlone = waiting.findIndex((entry) => entry.alone)
    const together = firstAlone < 0 ? maxBatch : Math.min(maxBatch, firstAlone)
    return waiting.splice(0, Math.max(together, 1))
  }

  const run = async (batch: Entry[]) => {
    try {
      const data = encodeAggregate3(batch.flatMap((entry) => entry.calls))
      const sent = await sender.send({ to: MULTICALL3, data, gas: gasFor(batch) })
      if (sent.state === 'mined') return await answer(batch, sent.receipt)
      const { message } = sent
      const outcome: Outcome =
        sent.state === 'rejected'
          ? { state: 'failed', reason: REASON.transaction, message }
          : { state: 'unknown', reason: REASON.pending, message }
      for (const entry of batch) entry.resolve(outcome)
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      for (const entry of batch) entry.resolve({ state: 'unknown', reason: REASON.pending, message })
    }
  }

  const answer = async (batch: Entry[], receipt: RpcReceipt) => {
    const transaction = receipt.transactionHash as Hex
    const missing = batch.filter((entry) => {
      const { from, to, value, nonce } = entry.authorization
      const transfer = authorizedTransfer(receipt, entry.asset, from, nonce)
      if (!transfer || transfer.to !== to.toLowerCase() || transfer.value !== value) return true
      entry.resolve({ state: 'settled', transaction, block: transfer.block })
      return false
    })
    if (missing.length > 0) await explain(missing)
  }

  /** Why they made no transfer: asked of the chain as it is now, since a receipt does not carry the reason. */
  const explain = async (entries: Entry[]) => {
    const unused: Entry[] = []
    for (const entry of entries) {
      const { asset, authorization } = entry
      const use = await reader.authorization(asset, authorization.from, authorization.nonce)
      if (use.used) entry.resolve(outcomeOf(use, authorization))
      else unused.push(entry)
    }
    if (unused.length > 0) await tryOut(unused)
  }

  const tryOut = async (entries: Entry[]): Promise<void> => {
    const calls = entries.flatMap((entry) => entry.calls)
    const call = { to: MULTICALL3, data: encodeAggregate3(calls), gas: quantity(gasFor(entries)) }
    const answered = await request('eth_call', [call, 'latest']).catch((error: unknown) => {
      if (!isExecutionFailure(error)) throw error
    })
    if (answered === undefined) {
      // Somebody among them burns all the gas. Alone, it can only spoil its own explanation.
      if (entries.length === 1) return entries[0]!.resolve(refused('0x'))
      for (const entry of entries) await tryOut([entry])
      return
    }
    const results = decodeAggregate3(answered as string, calls.length)
    let place = 0
    for (const entry of entries) {
      place += entry.calls.length
      const transfer = results[place - 1]!
      if (transfer.success && entry.tries + 1 < MAX_TRIES) again(entry)
      else entry.resolve(refused(transfer.data))
    }
  }

  /** One that failed for no visible reason is tried once more, alone, so that no neighbour can spoil it again. */
  const again = (entry: Entry) => {
    entry.tries += 1
    entry.alone = true
    waiting.push(entry)
  }

  return {
    settle: (job) =>
      new Promise((resolve) => {
        if (waiting.length >= MAX_WAITING) {
          resolve({ state: 'unknown', reason: REASON.pending, message: 'Too many payments are waiting to be settled.' })
          return
        }
        waiting.push({ ...job, tries: 0, resolve })
        if (busy) return
        busy = true
        void drain()
      }),
  }
}

const gasFor = (batch: Entry[]) =>
  60_000n + batch.reduce((sum, entry) => sum + (entry.alone ? GAS_ALONE : GAS_PER_TRANSFER), 0n)

type Use = Extract<Awaited<ReturnType<ChainReader['authorization']>>, { used: true }>

/** The nonce is used: by this very payment, earlier or through somebody else, or by something that is not this payment. */
function outcomeOf(use: Use, { to, value }: Authorization): Outcome {
  if (!use.transaction) {
    const message = 'The authorisation is used, but by what is not known yet.'
    return { state: 'unknown', reason: REASON.pending, message }
  }
  if (use.transfer?.to === to.toLowerCase() && use.transfer.value === value) {
    return { state: 'settled', transaction: use.transaction, block: use.transfer.block }
  }
  const message = 'The authorisation was used for something else, or cancelled.'
  return { state: 'failed', reason: REASON.nonceUsed, message }
}

function refused(data: string): Outcome {
  const text = revertText(data)
  return {
    state: 'failed',
    reason: reasonOfRevert(text) ?? REASON.transaction,
    message: text ?? 'The token refused the transfer.',
  }
}
