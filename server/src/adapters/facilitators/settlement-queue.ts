/**
 * Puts authorisations on the chain, many in one transaction. Everything that is queued when the sender is free goes into
 * one batch, without delay. A failing payment does not fail the others; each is matched with its logs by its nonce.
 */
import type { Authorization, AuthorizationUse, ChainReader, Hex } from '../../modules/payments/facilitator.ts'
import { findAuthorizedTransfer } from '../chain/chain-reader.ts'
import { type Call3, decodeAggregate3, decodeRevertText, encodeAggregate3, toQuantity } from '../chain/codec.ts'
import { MULTICALL3 } from '../chain/edr.ts'
import { type ChainRequest, isExecutionFailure, type RpcReceipt } from '../chain/rpc.ts'
import { REASON, reasonFromRevert } from './reasons.ts'
import type { Sender } from './sender.ts'

export type SettlementOutcome =
  | { state: 'settled'; transaction: Hex; block: bigint | null }
  | { state: 'failed' | 'unknown'; reason: string; message: string }

export type SettlementJob = {
  asset: Hex
  authorization: Authorization
  /** The last call is the transfer. */
  calls: Call3[]
  /** A contract wallet runs its own code, which could use up the gas of a whole batch: it gets a separate transaction. */
  isolated: boolean
}

export type SettlementQueue = { settle(job: SettlementJob): Promise<SettlementOutcome> }

type QueuedJob = SettlementJob & { attempts: number; resolve(outcome: SettlementOutcome): void }

type Deps = { request: ChainRequest; reader: ChainReader; sender: Sender; maxBatch: number }

/** A transfer uses half of this on Base; the rest is for a payee that never held the token. */
const GAS_PER_TRANSFER = 130_000n
const GAS_ISOLATED = 1_000_000n
const MAX_QUEUE_LENGTH = 10_000
const MAX_ATTEMPTS = 2

export function createSettlementQueue({ request, reader, sender, maxBatch }: Deps): SettlementQueue {
  const waiting: QueuedJob[] = []
  let busy = false

  const drain = async () => {
    // Jobs of the same tick go into the first batch.
    await new Promise((resolve) => setImmediate(resolve))
    while (waiting.length > 0) await sendBatch(nextBatch())
    busy = false
  }

  const nextBatch = () => {
    const firstIsolated = waiting.findIndex((entry) => entry.isolated)
    const batchSize = firstIsolated < 0 ? maxBatch : Math.min(maxBatch, firstIsolated)
    return waiting.splice(0, Math.max(batchSize, 1))
  }

  const sendBatch = async (batch: QueuedJob[]) => {
    try {
      const data = encodeAggregate3(batch.flatMap((entry) => entry.calls))
      const sendResult = await sender.send({ to: MULTICALL3, data, gas: gasFor(batch) })
      if (sendResult.state === 'mined') return await resolveBatch(batch, sendResult.receipt)
      const { message } = sendResult
      const outcome: SettlementOutcome =
        sendResult.state === 'rejected'
          ? { state: 'failed', reason: REASON.transaction, message }
          : { state: 'unknown', reason: REASON.pending, message }
      for (const entry of batch) entry.resolve(outcome)
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      for (const entry of batch) entry.resolve({ state: 'unknown', reason: REASON.pending, message })
    }
  }

  const resolveBatch = async (batch: QueuedJob[], receipt: RpcReceipt) => {
    const transaction = receipt.transactionHash as Hex
    const missing = batch.filter((entry) => {
      const { from, to, value, nonce } = entry.authorization
      const transfer = findAuthorizedTransfer(receipt, entry.asset, from, nonce)
      if (!transfer || transfer.to !== to.toLowerCase() || transfer.value !== value) return true
      entry.resolve({ state: 'settled', transaction, block: transfer.block })
      return false
    })
    if (missing.length > 0) await resolveMissing(missing)
  }

  /** Finds out why these jobs made no transfer. The receipt carries no reason, so the chain's current state is read. */
  const resolveMissing = async (entries: QueuedJob[]) => {
    const unused: QueuedJob[] = []
    for (const entry of entries) {
      const { asset, authorization } = entry
      const use = await reader.authorization(asset, authorization.from, authorization.nonce)
      if (use.used) entry.resolve(outcomeFromUse(use, authorization))
      else unused.push(entry)
    }
    if (unused.length > 0) await resolveUnused(unused)
  }

  const resolveUnused = async (entries: QueuedJob[]): Promise<void> => {
    const calls = entries.flatMap((entry) => entry.calls)
    const call = { to: MULTICALL3, data: encodeAggregate3(calls), gas: toQuantity(gasFor(entries)) }
    const response = await request('eth_call', [call, 'latest']).catch((error: unknown) => {
      if (!isExecutionFailure(error)) throw error
    })
    if (response === undefined) {
      // One of the jobs uses up all the gas: simulate each of them separately.
      if (entries.length === 1) return entries[0]!.resolve(toRefusal('0x'))
      for (const entry of entries) await resolveUnused([entry])
      return
    }
    const results = decodeAggregate3(response as string, calls.length)
    let callCount = 0
    for (const entry of entries) {
      callCount += entry.calls.length
      const transfer = results[callCount - 1]!
      if (transfer.success && entry.attempts + 1 < MAX_ATTEMPTS) retryIsolated(entry)
      else entry.resolve(toRefusal(transfer.data))
    }
  }

  /** A job that failed for no visible reason is retried in a separate transaction. */
  const retryIsolated = (entry: QueuedJob) => {
    entry.attempts += 1
    entry.isolated = true
    waiting.push(entry)
  }

  return {
    settle: (job) =>
      new Promise((resolve) => {
        if (waiting.length >= MAX_QUEUE_LENGTH) {
          resolve({ state: 'unknown', reason: REASON.pending, message: 'Too many payments are waiting to be settled.' })
          return
        }
        waiting.push({ ...job, attempts: 0, resolve })
        if (busy) return
        busy = true
        void drain()
      }),
  }
}

const gasFor = (batch: QueuedJob[]) =>
  60_000n + batch.reduce((sum, entry) => sum + (entry.isolated ? GAS_ISOLATED : GAS_PER_TRANSFER), 0n)

/** The nonce is used: by this payment in another transaction, or by a different transfer or a cancellation. */
function outcomeFromUse(use: AuthorizationUse, { to, value }: Authorization): SettlementOutcome {
  if (!use.transaction) {
    const message = 'The authorisation is used, but the transaction is not known yet.'
    return { state: 'unknown', reason: REASON.pending, message }
  }
  if (use.transfer?.to === to.toLowerCase() && use.transfer.value === value) {
    return { state: 'settled', transaction: use.transaction, block: use.transfer.block }
  }
  const message = 'The authorisation was used for something else, or cancelled.'
  return { state: 'failed', reason: REASON.nonceUsed, message }
}

function toRefusal(data: string): SettlementOutcome {
  const text = decodeRevertText(data)
  return {
    state: 'failed',
    reason: reasonFromRevert(text) ?? REASON.transaction,
    message: text ?? 'The token refused the transfer.',
  }
}
