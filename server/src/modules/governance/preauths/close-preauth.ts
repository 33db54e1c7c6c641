import type { TenantCaller } from '../../../platform/auth-context.ts'
import { callStepWithLocks, StepRefused } from '../../../platform/batch.ts'
import { hashJson } from '../../../platform/canonical.ts'
import type { Clock } from '../../../platform/clock.ts'
import type { Db, Tx } from '../../../platform/db.ts'
import type { Idempotency, IdempotentResponse } from '../../../platform/idempotency.ts'
import type { Ids } from '../../../platform/ids.ts'
import type { Keys } from '../../../platform/keys.ts'
import { microFromUsdc, usdcFromMicro } from '../../../platform/money.ts'
import { conflict, forbidden, invalid, notFound } from '../../../platform/problem.ts'
import type { ChainReader, Hex, MinedTransfer } from '../../payments/facilitator.ts'
import type { Receipts } from '../../receipts/receipts.ts'
import { isAddress } from '../assess/payment-facts.ts'
import { countedBy, type StoredHold } from '../counters/counted-by.ts'
import { type ClosePreauthItem, closePreauthStep, type settlementStatuses } from '../governance.steps.ts'
import { findPreauth, isSelfApproved, type PreauthRow } from '../grants/grants.store.ts'
import { isOwnMerchant } from '../rules/payee-names.ts'
import type { RuleResult } from '../rules/rule-result.ts'
import { policyIds } from '../rules/rule-result.ts'
import { readPreauthAccess } from './preauth-access.ts'
import { spenderOf } from './preauth-terms.ts'
import { readPreauthToken } from './preauth-token.ts'
import { findBookedRun, recordReportedTransaction } from './preauths.store.ts'

export type CloseDeps = {
  db: Db
  clock: Clock
  ids: Ids
  keys: Pick<Keys, 'signer'>
  idempotency: Idempotency
  receipts: Pick<Receipts, 'sign' | 'findPayerOwner'>
  /** Absent when no chain is configured: a close is then recorded as reported. */
  chain: ChainReader | undefined
  network: string
  /** Where runs are paid, which close their own pre-authorisations. */
  payTo: string
}

/** The chain is asked again about a reported payment after this time, then after twice as long each time. */
export const FIRST_CHECK_MS = 60_000

export type CloseInput = {
  preauth_id?: string
  token?: string
  outcome: 'settled' | 'failed' | 'voided'
  actual_amount?: string
  actual_amount_usdc?: number
  transaction?: string
  receipt?: unknown
  idempotency_key?: string
}

type Report = { outcome: CloseInput['outcome']; chargedMicro: bigint; transaction: string | null; receipt: unknown }

/** Closes a pre-authorisation with the reported outcome: the charged amount is spent, the rest of the hold released. */
export const createClosePreauth =
  (deps: CloseDeps) =>
  async (tenant: TenantCaller, input: CloseInput, idempotencyKey: string | undefined): Promise<IdempotentResponse> => {
    const id = readPreauthId(deps, input)
    const request = {
      scope: `tenant:${tenant.tenantId}`,
      route: 'POST /api/pre-auth/close',
      key: idempotencyKey,
      body: input,
    }
    const preauth = await findPreauth(deps.db, tenant.tenantId, id)
    if (!preauth) throw notFound('pre-authorisation')
    if (!(await readPreauthAccess(deps.db, tenant))(preauth))
      throw forbidden(
        'A pre-authorisation is closed by whoever opened it, a key bound to its spender, or a key with the scope control.',
      )
    const report = readReport(deps, preauth, input)
    const evidence = await readChainEvidence(deps, preauth, report)
    const contradiction = findContradiction(preauth, report, evidence)
    if (contradiction && report.transaction !== null) await recordReportedTransaction(deps.db, id, report.transaction)
    return deps.idempotency.once(request, async (tx) => {
      const row = (await findPreauth(tx, tenant.tenantId, id))!
      if (contradiction && canBeClosed(row)) throw conflict(contradiction)
      const { body } = await closePreauth(deps, tx, row, report, evidence, tenant.keyId)
      return { status: 200, body }
    })
  }

export const canBeClosed = (row: PreauthRow) =>
  row.status === 'open' || (row.status === 'escalated' && !row.taken_by_run)

function readPreauthId(deps: CloseDeps, { preauth_id, token }: CloseInput): string {
  if (token === undefined) {
    if (preauth_id === undefined) throw invalid('body must have preauth_id or token.')
    return preauth_id
  }
  const claims = readPreauthToken(deps.keys.signer('tokens'), token)
  if (!claims) throw invalid('body/token is not valid.')
  if (preauth_id !== undefined && preauth_id !== claims.jti)
    throw invalid('body/token belongs to another pre-authorisation than body/preauth_id.')
  return claims.jti
}

function readReport(deps: CloseDeps, row: PreauthRow, input: CloseInput): Report {
  const statedMicro =
    input.actual_amount === undefined && input.actual_amount_usdc === undefined ? undefined : readActualAmount(input)
  if (input.outcome !== 'settled' && statedMicro !== undefined && statedMicro > 0n)
    throw invalid(`body/actual_amount must be 0 when the outcome is '${input.outcome}'.`)
  const transaction = input.transaction ?? null
  if (transaction !== null && row.network === deps.network && !isHash(transaction))
    throw invalid('body/transaction is not a transaction hash.')
  return {
    outcome: input.outcome,
    chargedMicro: input.outcome === 'settled' ? (statedMicro ?? row.amount_micro) : 0n,
    transaction: transaction !== null && isHash(transaction) ? transaction.toLowerCase() : transaction,
    receipt: input.receipt,
  }
}

const isHash = (text: string) => /^0x[0-9a-fA-F]{64}$/.test(text)

function readActualAmount({ actual_amount, actual_amount_usdc }: CloseInput): bigint {
  const fromUsdc = actual_amount_usdc === undefined ? undefined : microFromUsdc(actual_amount_usdc)
  if (actual_amount_usdc !== undefined && fromUsdc === undefined)
    throw invalid('body/actual_amount_usdc must be a non-negative amount with at most six decimals.')
  const atomic = actual_amount === undefined ? fromUsdc! : BigInt(actual_amount)
  if (fromUsdc !== undefined && fromUsdc !== atomic)
    throw invalid('body/actual_amount and body/actual_amount_usdc differ.')
  return atomic
}

/**
 * The transfers of a reported transaction that can be this payment; null when the chain could not be read.
 * `otherPayers` made transfers that fit but for who paid; `exclusion` says why transfers that fit are another payment.
 * `paidRunId` is the run of the same tenant that a transfer paid for and that counts it.
 */
export type ChainEvidence = {
  transactionFound: boolean
  transfers: { from: string; value: bigint; paidRunId: string | null }[]
  otherPayers: string[]
  exclusion?: string
} | null

/** How far the time of a block may lie behind the service's clock. */
const CLOCK_DIFFERENCE_SECONDS = 15n

export async function readChainEvidence(
  deps: Pick<CloseDeps, 'db' | 'chain' | 'network' | 'receipts' | 'payTo'>,
  row: PreauthRow,
  { transaction }: Pick<Report, 'transaction'>,
): Promise<ChainEvidence> {
  if (!deps.chain || transaction === null || row.network !== deps.network) return null
  try {
    const transfers = await deps.chain.transfers(transaction as Hex)
    if (transfers === null) return { transactionFound: false, transfers: [], otherPayers: [] }
    const payTo = (row.merchant as { pay_to?: string }).pay_to?.toLowerCase()
    const matchingTransfers = transfers.filter(
      ({ asset, to }) =>
        asset.toLowerCase() === row.asset.toLowerCase() && (payTo === undefined || to.toLowerCase() === payTo),
    )
    const payers = [...new Set(matchingTransfers.map(({ from }) => from.toLowerCase()))]
    const fits = await Promise.all(payers.map((payer) => isPayerOf(deps, row, payer)))
    const ownPayers = payers.filter((_, index) => fits[index])
    const otherPayers = payers.filter((payer) => !ownPayers.includes(payer))
    const ownTransfers = matchingTransfers.filter(({ from }) => ownPayers.includes(from.toLowerCase()))
    const bookings = await Promise.all(ownTransfers.map((transfer) => findBooking(deps, row, transfer)))
    return {
      transactionFound: true,
      transfers: ownTransfers.flatMap(({ from, value }, index) => {
        const { exclusion, paidRunId = null } = bookings[index]!
        return exclusion === undefined ? [{ from, value, paidRunId }] : []
      }),
      otherPayers,
      exclusion: bookings.find(({ exclusion }) => exclusion !== undefined)?.exclusion,
    }
  } catch {
    return null
  }
}

/**
 * Why a transfer that fits is another payment: it was mined before the pre-authorisation was issued, or it paid for a run or
 * a top-up. A pre-authorisation for this service is paid by runs, of its own tenant or of nobody; one of its own tenant
 * counts the money itself.
 */
async function findBooking(
  { db, chain, payTo }: Pick<CloseDeps, 'db' | 'chain' | 'payTo'>,
  row: PreauthRow,
  transfer: MinedTransfer,
): Promise<{ exclusion?: string; paidRunId?: string }> {
  const issuedAt = BigInt(Math.floor((row.issued_at ?? row.created_at).getTime() / 1000))
  if ((await chain!.blockTime(transfer.block)) + CLOCK_DIFFERENCE_SECONDS < issuedAt)
    return {
      exclusion: 'This transaction was mined before the pre-authorisation was issued, so it is another payment.',
    }
  const run =
    transfer.nonce === null ? undefined : await findBookedRun(db, row.network, { ...transfer, nonce: transfer.nonce })
  if (run === undefined || run.id === row.run_id) return {}
  if (!isOwnMerchant(row.merchant_id) && payToOf(row) !== payTo.toLowerCase())
    return {
      exclusion: 'This transaction paid for a run or a top-up, so it is not the payment of this pre-authorisation.',
    }
  if (run.tenantId === null) return {}
  if (run.tenantId !== row.tenant_id)
    return { exclusion: 'This transaction paid for a run or a top-up of another tenant.' }
  return run.isCounted ? { paidRunId: run.id } : {}
}

const NO_ADDRESS = `0x${'0'.repeat(40)}`

/**
 * Whether a transfer from this address can be the payment of a pre-authorisation: it comes from the named payer, if there
 * is one, and not from an address whose payments were signed for other tenants only. A token mints from the zero address,
 * which pays for nobody.
 */
async function isPayerOf(deps: Pick<CloseDeps, 'receipts'>, row: PreauthRow, from: string): Promise<boolean> {
  if (from === NO_ADDRESS || (row.payer !== null && row.payer !== from)) return false
  return (await deps.receipts.findPayerOwner(row.tenant_id, from)) !== 'other'
}

/** Why the report contradicts the authorisation or the chain; undefined when it does not. */
function findContradiction(row: PreauthRow, report: Report, evidence: ChainEvidence): string | undefined {
  if (report.chargedMicro > row.amount_micro)
    return `${usdcFromMicro(report.chargedMicro)} USDC is more than the ${usdcFromMicro(row.amount_micro)} that were authorised.`
  if (evidence?.transactionFound === false && report.outcome === 'settled')
    return 'The chain does not know this transaction. Close again once it is mined; the payment is then checked.'
  if (!evidence?.transactionFound) return undefined
  const isPaid = evidence.transfers.some((transfer) => transfer.value === report.chargedMicro)
  if (report.outcome === 'settled' && !isPaid && evidence.exclusion !== undefined) return evidence.exclusion
  if (report.outcome === 'settled' && !isPaid)
    return evidence.otherPayers.length > 0
      ? describeOtherPayer(row, evidence.otherPayers[0]!)
      : 'The chain shows another payment, or none, in this transaction.'
  if (report.outcome !== 'settled' && evidence.transfers.length > 0)
    return `The chain shows a payment in this transaction; it is not '${report.outcome}'.`
  return undefined
}

function describeOtherPayer(row: PreauthRow, from: string): string {
  if (from === NO_ADDRESS) return 'The token minted the transfer in this transaction, which is the payment of nobody.'
  return row.payer === null || row.payer === from
    ? `The payment in this transaction came from ${from}, which has signed payments for other tenants only.`
    : `The payment in this transaction came from ${from}, which is not the payer of this pre-authorisation.`
}

/** Closes the pre-authorisation and signs its receipt. Called by the endpoint and by the sweep of orphaned pre-authorisations. */
export async function closePreauth(
  deps: Omit<CloseDeps, 'idempotency' | 'db'>,
  tx: Tx,
  row: PreauthRow,
  report: Report,
  evidence: ChainEvidence,
  actor: string,
) {
  const at = deps.clock.now()
  const verified = evidence === null ? null : evidence.transactionFound && report.outcome === 'settled'
  const matching = verified ? evidence!.transfers.filter(({ value }) => value === report.chargedMicro) : null
  // A transfer that nothing else counts may be the payment, so all of them must be of runs.
  const paidRunId = matching?.every((transfer) => transfer.paidRunId !== null) ? (matching[0]?.paidRunId ?? null) : null
  const { chargedMicro, transaction, outcome } = report
  // Without a request there is nothing to hide.
  const salt = row.request_hash === null ? null : deps.ids.salt()
  const payer = evidence?.transfers.find((transfer) => transfer.value === chargedMicro)?.from.toLowerCase() ?? row.payer
  const statement = statementOf(report, verified)
  const holds = row.holds as StoredHold[]
  const draft = draftReceipt(row, { ...report, ...statement, payer, selfApproved: await isSelfApproved(tx, row) }, at)
  const receipt = deps.receipts.sign({
    ...draft,
    receipt_id: deps.ids.next('rcpt'),
    verification: { verified_onchain: verified, late: at >= row.close_by! },
    salt,
    counters: {
      secret: deps.ids.salt(),
      counted: outcome === 'settled' && paidRunId === null ? countedBy(holds, chargedMicro) : [],
    },
  })
  const eventData = {
    preauth_id: row.id,
    run_id: row.run_id,
    agent_id: row.agent_id,
    ...spenderOf(row),
    merchant: row.merchant_id,
    outcome: statement.status,
    asserted_by: statement.assertedBy,
    charged: chargedMicro.toString(),
    transaction,
    verified_onchain: verified,
    receipt_id: receipt.row.id,
  }
  const event = (type: string, data: Record<string, unknown>) => ({
    id: deps.ids.next('evt'),
    tenant_id: row.tenant_id,
    type,
    data,
    created_at: at.toISOString(),
  })
  const canBeChecked = row.network === deps.network && (transaction !== null || isSearchable(deps, row, chargedMicro))
  const item: ClosePreauthItem = {
    preauth_id: row.id,
    tenant_id: row.tenant_id,
    at: at.toISOString(),
    outcome,
    charged_micro: chargedMicro.toString(),
    transaction,
    verified_onchain: verified,
    matching: matching?.length ?? null,
    settlement_status: statement.status,
    asserted_by: statement.assertedBy,
    check_at:
      statement.status === 'reported' && canBeChecked ? new Date(at.getTime() + FIRST_CHECK_MS).toISOString() : null,
    receipt: receipt.row,
    receipt_salt: salt,
    receipt_counters: receipt.evidence.counters!,
    holds,
    paid_run_id: paidRunId,
    audit: {
      id: deps.ids.next('aud'),
      tenant_id: row.tenant_id,
      type: 'preauth.closed',
      occurred_at: at.toISOString(),
      actor,
      subject: row.id,
      decision: statement.status,
      policy_ids: policyIds(row.policy_results as RuleResult[]),
      input_hash: row.action_hash,
      data: { ...eventData, ...(report.receipt !== undefined && { evidence_hash: hashJson(report.receipt) }) },
    },
    events: [
      event('preauth.closed', eventData),
      event('receipt.issued', { receipt_id: receipt.row.id, run_id: row.run_id, kind: 'preauth' }),
    ],
  }
  const locks = [`preauth:${row.id}`, ...row.locks, ...(transaction === null ? [] : [`transaction:${transaction}`])]
  try {
    const closeResult = await callStepWithLocks(tx, closePreauthStep, item, locks)
    return {
      body: {
        preauth_id: row.id,
        run_id: row.run_id,
        status: 'closed',
        outcome: statement.status,
        ...closeResult,
        verified_onchain: verified,
        transaction,
        settlement: {
          status: statement.status,
          asserted_by: statement.assertedBy,
          transaction,
          amount: chargedMicro.toString(),
          reason: null,
          receipt_url: `/api/receipts/${receipt.row.id}`,
        },
        evidence: receipt.evidence,
        receipt_url: `/api/receipts/${receipt.row.id}`,
        receipt: receipt.receipt,
      },
    }
  } catch (error) {
    if (!(error instanceof StepRefused)) throw error
    if (error.message === 'transaction_used')
      throw conflict('This transaction has been reported for another pre-authorisation.')
    if (error.message === 'holds_changed')
      throw conflict('This pre-authorisation has changed just now. Close it again.')
    throw conflict(
      `This pre-authorisation is ${error.message.replace('preauth_', '').replaceAll('_', ' ')}; it cannot be closed.`,
    )
  }
}

/**
 * Whether the payment of a close without a transaction can be looked for: its payer, address and amount are known. What
 * is paid to our own address is paid by runs.
 */
function isSearchable({ payTo }: Pick<CloseDeps, 'payTo'>, row: PreauthRow, chargedMicro: bigint): boolean {
  const address = payToOf(row)
  return row.payer !== null && address !== null && address !== payTo.toLowerCase() && chargedMicro > 0n
}

/** The address of the merchant, when it is one. */
export function payToOf({ merchant }: PreauthRow): string | null {
  const address = (merchant as { pay_to?: string }).pay_to?.toLowerCase()
  return address !== undefined && isAddress(address) ? address : null
}

/** What a close may state: that the payment was seen on the chain, or what its tenant reported. */
function statementOf(
  { outcome }: Pick<Report, 'outcome'>,
  verified: boolean | null,
): { status: 'settled' | 'reported' | 'failed' | 'voided'; assertedBy: 'chain' | 'reported' } {
  if (outcome !== 'settled') return { status: outcome, assertedBy: 'reported' }
  return verified ? { status: 'settled', assertedBy: 'chain' } : { status: 'reported', assertedBy: 'reported' }
}

type Statement = {
  status: (typeof settlementStatuses)[number]
  assertedBy: 'chain' | 'reported'
  chargedMicro: bigint
  transaction: string | null
  payer: string | null
  selfApproved: boolean
}

/** The receipt of a close. It says that money moved, or that none did, only when somebody saw it or the tenant reported none. */
export const draftReceipt = (
  row: PreauthRow,
  { status, assertedBy, chargedMicro, transaction, payer, selfApproved }: Statement,
  at: Date,
) => ({
  run_id: row.run_id,
  loop_id: null,
  issued_at: at.toISOString(),
  kind: 'preauth' as const,
  agent_id: row.agent_id,
  route: null,
  pricing: {
    amount: row.amount_micro.toString(),
    authorised_usdc: usdcFromMicro(row.amount_micro),
    charged: chargedMicro.toString(),
    charged_usdc: usdcFromMicro(chargedMicro),
  },
  governance: {
    decision: 'approved',
    policy_hash: row.policy_hash,
    mandate_id: row.mandate_id,
    preauth_id: row.id,
    override_id: row.override_id,
    approval_id: row.approval_id,
    ...(selfApproved && { self_approved: true as const }),
  },
  request_hash: row.request_hash,
  input_hash: null,
  output_hash: null,
  settlement: {
    status,
    transaction,
    network: row.network,
    asset: row.asset,
    pay_to: (row.merchant as { pay_to?: string }).pay_to ?? null,
    amount: chargedMicro.toString(),
    payer,
    asserted_by: assertedBy,
  },
  prev_hash: null,
  ...(status !== 'reported' && { charged: status === 'settled' && chargedMicro > 0n }),
  tenant_id: row.tenant_id,
  payer: null,
})
