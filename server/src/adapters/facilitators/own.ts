/**
 * Our own facilitator: checks a payment with one question to the chain, and settles many in one transaction. It works on
 * the embedded chain and on a real one alike; all it needs is a JSON-RPC face and keys that may send.
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
import { createChainReader } from '../chain/chain-reader.ts'
import {
  type Call3,
  type CallResult,
  decodeAggregate3,
  encodeAggregate3,
  encodeCall,
  hexOf,
  quantity,
  revertText,
  SELECTOR,
} from '../chain/codec.ts'
import { MULTICALL3 } from '../chain/edr.ts'
import { type ChainRequest, isExecutionFailure } from '../chain/rpc.ts'
import { authorizationDigest, parseSignature, recoverSigner, transferCall } from './authorization.ts'
import { checkTerms, type Refusal } from './checks.ts'
import { walletCalls } from './contract-wallets.ts'
import { REASON, reasonOfRevert } from './reasons.ts'
import { loadCurve } from './recover.ts'
import { createSender } from './sender.ts'
import { createSettleOnce } from './settle-once.ts'
import { createSettlementQueue, type Job } from './settlement-queue.ts'
import { chainIdOf, networkForVersion } from './wire.ts'

export type OwnFacilitatorDeps = {
  request: ChainRequest
  /** CAIP-2, for example `eip155:8453`. */
  network: string
  /** The one token that is settled here. */
  asset: Hex
  /** Every key is an account with a queue of its own; a payer always meets the same one. */
  privateKeys: Hex[]
  clock: Clock
  log?: { info(fields: object, message: string): void; warn(fields: object, message: string): void }
  receiptTimeoutMs?: number
  maxBatch?: number
  /** EIP-6492: factories through which a wallet that is not deployed yet may be. */
  allowedFactories?: string[]
}

const DEFAULT_RECEIPT_TIMEOUT_MS = 15_000
const DEFAULT_MAX_BATCH = 64
/** A key's payment takes a third of this. A wallet's check is code of its own, and gets as much as a passkey needs. */
const KEY_GAS = 300_000
const WALLET_GAS = 1_000_000

export function createOwnFacilitator(deps: OwnFacilitatorDeps): Facilitator {
  const { request, network, asset, privateKeys, clock, allowedFactories = [] } = deps
  const { receiptTimeoutMs = DEFAULT_RECEIPT_TIMEOUT_MS, maxBatch = DEFAULT_MAX_BATCH } = deps
  const chainId = chainIdOf(network)
  if (chainId === undefined) throw new Error(`${network} is not an EVM network.`)
  if (privateKeys.length === 0) throw new Error('A facilitator needs at least one key to send with.')
  const curve = loadCurve(deps.log)
  const reader = createChainReader({ request })
  const senders = privateKeys.map((privateKey) =>
    createSender({ request, curve, privateKey, chainId, receiptTimeoutMs }),
  )
  const queues = senders.map((sender) => createSettlementQueue({ request, reader, sender, maxBatch }))
  const once = createSettleOnce({ remember: true })

  const hasCode = async (address: Hex) => (await request('eth_getCode', [address, 'latest'])) !== '0x'

  /** What this payment would do on the chain, or why it will not be tried. */
  const prepare = async (
    payment: ExactPayment,
    terms: PaymentTerms,
  ): Promise<{ job: Job; digest: string } | { refusal: Refusal }> => {
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
    const key = parseSignature(signature)
    const common = { asset, authorization }
    if (key && recoverSigner(curve, digest, key) === authorization.from.toLowerCase()) {
      const calls = [{ target: asset, callData: transferCall(authorization, key) }]
      return { digest: hexOf(digest), job: { ...common, calls, alone: false } }
    }
    const wallet = await walletCalls(asset, authorization, signature, { hasCode, allowedFactories })
    return 'refusal' in wallet
      ? wallet
      : { digest: hexOf(digest), job: { ...common, calls: wallet.calls, alone: true } }
  }

  const verify = async (payment: ExactPayment, terms: PaymentTerms): Promise<VerifyResult> => {
    try {
      const prepared = await prepare(payment, terms)
      return 'refusal' in prepared ? { valid: false, ...prepared.refusal } : await simulate(prepared.job)
    } catch (cause) {
      throw new FacilitatorUnavailable('The chain cannot be asked about this payment.', { cause })
    }
  }

  /** One question: what the payer holds, whether the nonce is used, and whether the transfer would go through. */
  const simulate = async ({ authorization, calls, alone }: Job): Promise<VerifyResult> => {
    const { from, nonce, value } = authorization
    const questions: Call3[] = [
      { target: asset, callData: encodeCall(SELECTOR.balanceOf, from) },
      { target: asset, callData: encodeCall(SELECTOR.authorizationState, from, nonce) },
      ...calls,
    ]
    const call = { to: MULTICALL3, data: encodeAggregate3(questions), gas: quantity(alone ? WALLET_GAS : KEY_GAS) }
    const answer = await request('eth_call', [call, 'latest']).catch((error: unknown) => {
      // A wallet can burn all the gas of the question: that is its answer, and not the chain's absence.
      if (!isExecutionFailure(error)) throw error
    })
    if (answer === undefined)
      return { valid: false, reason: REASON.simulation, message: 'The transfer took all the gas.' }
    const results = decodeAggregate3(answer as string, questions.length)
    const [balance, used, transfer] = [results[0]!, results[1]!, results.at(-1)!]
    if (transfer.success) return { valid: true, payer: lower(from) }
    return { valid: false, ...whyNot(balance, used, transfer, value) }
  }

  const settle = async (payment: ExactPayment, terms: PaymentTerms): Promise<SettleResult> => {
    try {
      const prepared = await prepare(payment, terms)
      if (!('refusal' in prepared)) return await once(prepared.digest, () => put(prepared.job, payment, terms))
      const { refusal } = prepared
      return refusal.reason === REASON.validBefore
        ? await settleTooLate(payment, refusal)
        : { state: 'failed', ...refusal }
    } catch (error) {
      return {
        state: 'unknown',
        reason: REASON.pending,
        message: error instanceof Error ? error.message : String(error),
      }
    }
  }

  const put = async (job: Job, payment: ExactPayment, terms: PaymentTerms): Promise<SettleResult> => {
    const { from, value } = payment.authorization
    const outcome = await queueOf(from).settle(job)
    if (outcome.state !== 'settled') return outcome
    const { transaction, block } = outcome
    return {
      state: 'settled',
      transaction,
      payer: lower(from),
      network: terms.network,
      amountMicro: value,
      block,
    }
  }

  /** Too late to send; but an earlier attempt may have been in time, and while the chain's own clock allows it, may be yet. */
  const settleTooLate = async (payment: ExactPayment, refusal: Refusal): Promise<SettleResult> => {
    const { from, to, value, nonce, validBefore } = payment.authorization
    const headTime = await reader.headTime()
    const use = await reader.authorization(asset, from, nonce)
    if (!use.used) return { state: validBefore <= headTime ? 'failed' : 'unknown', ...refusal }
    if (!use.transaction) return { state: 'unknown', ...refusal }
    if (use.transfer?.to !== to.toLowerCase() || use.transfer.value !== value) return { state: 'failed', ...refusal }
    const { block } = use.transfer
    return { state: 'settled', transaction: use.transaction, payer: lower(from), network, amountMicro: value, block }
  }

  /** A payer's payments go through one account, so a later attempt is mined after an earlier one, never before it. */
  const queueOf = (payer: Hex) => queues[Number(BigInt(payer) % BigInt(queues.length))]!

  return {
    name: 'own',
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

const lower = (address: Hex) => address.toLowerCase() as Hex

function whyNot(balance: CallResult, used: CallResult, transfer: CallResult, value: bigint): Refusal {
  const text = revertText(transfer.data)
  if (used.success && BigInt(used.data) === 1n) {
    return { reason: REASON.nonceUsed, message: 'The authorisation was used before, or cancelled.' }
  }
  const said = reasonOfRevert(text)
  if (said && said !== REASON.balance) return { reason: said, message: text! }
  if (balance.success && BigInt(balance.data) < value) {
    return { reason: REASON.balance, message: `The payer holds ${BigInt(balance.data)} and the price is ${value}.` }
  }
  return { reason: said ?? REASON.simulation, message: text ?? 'The token would refuse this transfer.' }
}
