/**
 * The local facilitator: verifies a payment with one call to the chain and settles many payments in one transaction. It
 * works on the embedded chain and on a real one; it needs JSON-RPC and the keys of accounts that send transactions.
 */
import type {
  ExactPayment,
  Facilitator,
  Hex,
  PaymentTerms,
  SettleResult,
  VerifyResult,
} from '../../modules/payments/facilitator.ts'
import { FacilitatorUnavailable } from '../../modules/payments/facilitator.ts'
import type { Clock } from '../../platform/clock.ts'
import { groupReads } from '../../platform/group-reads.ts'
import { networkForVersion, parseChainId } from '../../platform/x402-wire.ts'
import { createChainReader } from '../chain/chain-reader.ts'
import {
  type Call3,
  type CallResult,
  decodeAggregate3,
  decodeRevertText,
  encodeAggregate3,
  encodeCall,
  SELECTOR,
  toHex,
  toQuantity,
} from '../chain/codec.ts'
import { MULTICALL3 } from '../chain/edr.ts'
import { type ChainRequest, isExecutionFailure } from '../chain/rpc.ts'
import { authorizationDigest, encodeTransfer, parseSignature, recoverSigner } from './authorization.ts'
import { checkTerms, type Refusal } from './check-terms.ts'
import { buildWalletCalls } from './contract-wallets.ts'
import { REASON, reasonFromRevert } from './reasons.ts'
import { loadCurve } from './secp256k1.ts'
import { createSender } from './sender.ts'
import { createSettleOnce } from './settle-once.ts'
import { createSettlementQueue, type SettlementJob } from './settlement-queue.ts'

export type LocalFacilitatorDeps = {
  request: ChainRequest
  /** CAIP-2, for example `eip155:8453`. */
  network: string
  /** The only token that is settled. */
  asset: Hex
  /** Each key is an account with its own queue; all payments of one payer go through the same account. */
  privateKeys: Hex[]
  clock: Clock
  log?: { info(fields: object, message: string): void; warn(fields: object, message: string): void }
  receiptTimeoutMs?: number
  maxBatch?: number
  /** Whether a transaction can wait for a block: the embedded chain mines at once. */
  hasMempool?: boolean
  /** EIP-6492: factories that may deploy a wallet that does not exist yet. */
  allowedFactories?: string[]
}

const DEFAULT_RECEIPT_TIMEOUT_MS = 15_000
const DEFAULT_MAX_BATCH = 64
/** A payment signed by a key uses a third of this. A contract wallet's own code gets what a passkey check needs. */
const KEY_CALL_GAS = 300_000
const WALLET_CALL_GAS = 1_000_000
/** Payments simulated in one call; their gas stays far below what public nodes allow a call. */
const MAX_SIMULATED = 16

export function createLocalFacilitator(deps: LocalFacilitatorDeps): Facilitator {
  const { request, network, asset, privateKeys, clock, allowedFactories = [] } = deps
  const { receiptTimeoutMs = DEFAULT_RECEIPT_TIMEOUT_MS, maxBatch = DEFAULT_MAX_BATCH, hasMempool = true } = deps
  const chainId = parseChainId(network)
  if (chainId === undefined) throw new Error(`${network} is not an EVM network.`)
  if (privateKeys.length === 0) throw new Error('A facilitator needs at least one key to send with.')
  const curve = loadCurve(deps.log)
  const reader = createChainReader({ request })
  const senders = privateKeys.map((privateKey) =>
    createSender({ request, curve, privateKey, chainId, receiptTimeoutMs }),
  )
  const queues = senders.map((sender) => createSettlementQueue({ request, reader, sender, maxBatch }))
  const settleOnce = createSettleOnce({ remember: true })

  const hasCode = async (address: Hex) => (await request('eth_getCode', [address, 'latest'])) !== '0x'

  /** The calls that make this payment, or the reason why it is refused. */
  const prepare = async (
    payment: ExactPayment,
    terms: PaymentTerms,
  ): Promise<{ job: SettlementJob; digest: string } | { refusal: Refusal }> => {
    const refusal = checkTerms(payment, terms, clock.now())
    if (refusal) return { refusal }
    if (terms.network !== network)
      return { refusal: { reason: REASON.network, message: `Only ${network} is settled here.` } }
    if (terms.asset.toLowerCase() !== asset.toLowerCase()) {
      return { refusal: { reason: REASON.asset, message: `Only ${asset} is settled here.` } }
    }
    const { authorization, signature } = payment
    const domain = { name: terms.extra.name, version: terms.extra.version, chainId, asset }
    const digest = authorizationDigest(authorization, domain)
    const keySignature = parseSignature(signature)
    const common = { asset, authorization }
    if (keySignature && recoverSigner(curve, digest, keySignature) === authorization.from.toLowerCase()) {
      const calls = [{ target: asset, callData: encodeTransfer(authorization, keySignature) }]
      return { digest: toHex(digest), job: { ...common, calls, isolated: false } }
    }
    const wallet = await buildWalletCalls(asset, authorization, signature, { hasCode, allowedFactories })
    return 'refusal' in wallet
      ? wallet
      : { digest: toHex(digest), job: { ...common, calls: wallet.calls, isolated: true } }
  }

  const verify = async (payment: ExactPayment, terms: PaymentTerms): Promise<VerifyResult> => {
    try {
      const preparedPayment = await prepare(payment, terms)
      return 'refusal' in preparedPayment
        ? { valid: false, ...preparedPayment.refusal }
        : await simulate(preparedPayment.job)
    } catch (cause) {
      throw new FacilitatorUnavailable('The chain could not be reached to check this payment.', { cause })
    }
  }

  /** The payer's balance, whether the nonce is used, and whether the transfer would succeed. */
  const simulate = async (job: SettlementJob): Promise<VerifyResult> =>
    job.isolated ? (await simulateTogether([job], WALLET_CALL_GAS))[0]! : (await simulateGrouped(job))!

  /** Payments that arrive together are simulated in one call; each call has one payment of a payer, so that none spends the balance of another. */
  const simulateGrouped = groupReads(
    async (jobs: readonly SettlementJob[]) => {
      const calls: SettlementJob[][] = []
      for (const job of jobs) {
        const call = calls.find((candidate) => candidate.every((other) => areIndependent(job, other)))
        if (call) call.push(job)
        else calls.push([job])
      }
      const results = new Map<SettlementJob, VerifyResult>()
      await Promise.all(
        calls.map(async (call) => {
          const verdicts = await simulateTogether(call, KEY_CALL_GAS)
          for (const [index, job] of call.entries()) results.set(job, verdicts[index]!)
        }),
      )
      return jobs.map((job) => results.get(job))
    },
    { maxKeys: MAX_SIMULATED, maxInFlight: 2 },
  )

  const simulateTogether = async (jobs: readonly SettlementJob[], gasPerJob: number): Promise<VerifyResult[]> => {
    const callsOf = jobs.map(({ authorization: { from, nonce }, calls }): Call3[] => [
      { target: asset, callData: encodeCall(SELECTOR.balanceOf, from) },
      { target: asset, callData: encodeCall(SELECTOR.authorizationState, from, nonce) },
      ...calls,
    ])
    const multicall = callsOf.flat()
    const call = { to: MULTICALL3, data: encodeAggregate3(multicall), gas: toQuantity(gasPerJob * jobs.length) }
    const returnData = await request('eth_call', [call, 'latest']).catch((error: unknown) => {
      // A contract wallet can use up all the gas of the call: the payment is refused, and the chain has not failed.
      if (!isExecutionFailure(error)) throw error
    })
    if (returnData === undefined) {
      if (jobs.length > 1) return (await Promise.all(jobs.map((job) => simulateTogether([job], gasPerJob)))).flat()
      return [{ valid: false, reason: REASON.simulation, message: 'The transfer used up all the gas of the call.' }]
    }
    const results = decodeAggregate3(returnData as string, multicall.length)
    let position = 0
    return jobs.map(({ authorization: { from, value } }, index) => {
      const own = results.slice(position, position + callsOf[index]!.length)
      position += own.length
      const [balance, nonceState, transfer] = [own[0]!, own[1]!, own.at(-1)!]
      if (transfer.success)
        return { valid: true, payer: toLowerHex(from), ...(balance.success && { balanceMicro: BigInt(balance.data) }) }
      return { valid: false, ...explainRefusal(balance, nonceState, transfer, value) }
    })
  }

  const settle = async (payment: ExactPayment, terms: PaymentTerms, isRetry = false): Promise<SettleResult> => {
    try {
      const preparedPayment = await prepare(payment, terms)
      if (!('refusal' in preparedPayment)) {
        const { job, digest } = preparedPayment
        const result = await settleOnce(digest, () => submit(job, payment, terms))
        return isRetry && hasMempool ? keepOpen(result) : result
      }
      const { refusal } = preparedPayment
      return refusal.reason === REASON.validBefore
        ? await settleExpired(payment, refusal)
        : { state: 'failed', ...refusal }
    } catch (error) {
      return {
        state: 'unknown',
        reason: REASON.pending,
        message: error instanceof Error ? error.message : String(error),
      }
    }
  }

  const submit = async (job: SettlementJob, payment: ExactPayment, terms: PaymentTerms): Promise<SettleResult> => {
    const { from, value } = payment.authorization
    const outcome = await queueFor(from).settle(job)
    if (outcome.state !== 'settled') return outcome
    const { transaction, block } = outcome
    return {
      state: 'settled',
      transaction,
      payer: toLowerHex(from),
      network: terms.network,
      amountMicro: value,
      block,
    }
  }

  /** An earlier attempt, perhaps of another account, may wait for a block: a refusal of this one proves nothing. */
  const keepOpen = (result: SettleResult): SettleResult =>
    result.state === 'failed' && result.reason !== REASON.nonceUsed ? { ...result, state: 'unknown' } : result

  /** Too late to send. An earlier attempt may have been in time, or may still be mined until the chain's clock passes. */
  const settleExpired = async (payment: ExactPayment, refusal: Refusal): Promise<SettleResult> => {
    const { from, to, value, nonce, validBefore } = payment.authorization
    const headTime = await reader.headTime()
    const use = await reader.authorization(asset, from, nonce)
    if (!use.used) return { state: validBefore <= headTime ? 'failed' : 'unknown', ...refusal }
    if (!use.transaction) return { state: 'unknown', ...refusal }
    if (use.transfer?.to !== to.toLowerCase() || use.transfer.value !== value) return { state: 'failed', ...refusal }
    const { block } = use.transfer
    return {
      state: 'settled',
      transaction: use.transaction,
      payer: toLowerHex(from),
      network,
      amountMicro: value,
      block,
    }
  }

  /** A payer's payments go through one account, so a later attempt is mined after an earlier one, never before it. */
  const queueFor = (payer: Hex) => queues[Number(BigInt(payer) % BigInt(queues.length))]!

  return {
    name: 'local',
    sharesTransactions: true,
    verify,
    settle,
    supported: async () => ({
      kinds: [
        { x402Version: 2, scheme: 'exact', network },
        { x402Version: 1, scheme: 'exact', network: networkForVersion(network, 1) },
      ],
      extensions: [],
      signers: { 'eip155:*': senders.map((sender) => sender.address) },
    }),
  }
}

/** Neither payment changes the balance that the other is paid from. */
const areIndependent = ({ authorization: a }: SettlementJob, { authorization: b }: SettlementJob) =>
  !isSame(a.from, b.from) && !isSame(a.from, b.to) && !isSame(a.to, b.from)

const isSame = (a: Hex, b: Hex) => a === b || a.toLowerCase() === b.toLowerCase()

const toLowerHex = (address: Hex) => address.toLowerCase() as Hex

function explainRefusal(balance: CallResult, nonceState: CallResult, transfer: CallResult, value: bigint): Refusal {
  const text = decodeRevertText(transfer.data)
  if (nonceState.success && BigInt(nonceState.data) === 1n) {
    return { reason: REASON.nonceUsed, message: 'The authorisation was used before, or cancelled.' }
  }
  const revertReason = reasonFromRevert(text)
  if (revertReason && revertReason !== REASON.balance) return { reason: revertReason, message: text! }
  if (balance.success && BigInt(balance.data) < value) {
    return { reason: REASON.balance, message: `The payer holds ${BigInt(balance.data)} and the price is ${value}.` }
  }
  return { reason: revertReason ?? REASON.simulation, message: text ?? 'The token would refuse this transfer.' }
}
