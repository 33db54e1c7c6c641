import type { TenantCaller } from '../../../platform/auth-context.ts'
import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db.ts'
import type { Keys } from '../../../platform/keys.ts'
import { usdcFromMicro } from '../../../platform/money.ts'
import { conflict, expired, forbidden, invalid, notFound } from '../../../platform/problem.ts'
import { OWN_MERCHANT, type PaymentFacts } from '../assess/payment-facts.ts'
import type { Mandate } from '../mandates/evaluate-mandate.ts'
import { readPreauthToken } from '../preauths/preauth-token.ts'
import { findUsableOverride } from './authorize.ts'
import {
  type ApprovalRow,
  findApproval,
  findPreauth,
  heldScopes,
  isSelfApproved,
  type OverrideRow,
  type PreauthRow,
  readMandate,
  readVotes,
} from './grants.store.ts'
import { requireAsker } from './self-decision.ts'

type GrantsDeps = { db: Db; clock: Clock; keys: Pick<Keys, 'signer' | 'fingerprint'> }

/** The approval, override and pre-authorisation named in a request: found and checked, not consumed yet. */
export type Grants = {
  approval?: ApprovalRow & { votes: number }
  override?: OverrideRow
  preauth?: PreauthRow & { heldScopes: Set<string>; mandate: Mandate | null; selfApproved: boolean }
}

export type GrantReferences = { approvalId?: string; overrideToken?: string; preauthToken?: string }

export async function readGrants(deps: GrantsDeps, tenant: TenantCaller, references: GrantReferences): Promise<Grants> {
  const { approvalId, overrideToken, preauthToken } = references
  return {
    ...(approvalId !== undefined && { approval: await readApproval(deps, tenant, approvalId) }),
    ...(overrideToken !== undefined && { override: await findUsableOverride(deps, tenant, overrideToken) }),
    ...(preauthToken !== undefined && { preauth: await readPreauth(deps, tenant, preauthToken) }),
  }
}

async function readApproval(deps: GrantsDeps, tenant: TenantCaller, id: string) {
  const row = await findApproval(deps.db, tenant.tenantId, id)
  if (!row) throw notFound('approval')
  await requireAsker(deps.db, tenant, 'approval', row.requested_by)
  if (row.consumed_by !== null) throw conflict('This approval has been used; it works once.')
  if (row.lapse_reason !== null && row.lapsed_at !== null)
    throw conflict(`This approval has lapsed: the run was refused when it was to start. ${row.lapse_reason}`)
  if (row.status === 'approved' && row.expires_at <= deps.clock.now())
    throw expired(`This approval expired at ${row.expires_at.toISOString()}.`)
  const votes = await readVotes(deps.db, [row.id])
  return { ...row, votes: votes.filter((vote) => vote.decision === 'approve').length }
}

async function readPreauth(deps: GrantsDeps, tenant: TenantCaller, token: string) {
  const claims = readPreauthToken(deps.keys.signer('tokens'), token)
  const row = claims && (await findPreauth(deps.db, tenant.tenantId, claims.jti))
  if (!row) throw invalid('preauth_token is not valid.')
  const spender = preauthSpender(row)
  if (tenant.spender !== null && spender !== null) requireSameSpender(spender, tenant.spender)
  if (row.status !== 'open')
    throw conflict(`This pre-authorisation is ${row.status.replaceAll('_', ' ')}; its token works once.`)
  if (row.expires_at! <= deps.clock.now())
    throw expired(`This pre-authorisation expired at ${row.expires_at!.toISOString()}.`)
  return {
    ...row,
    heldScopes: heldScopes(row),
    mandate: row.mandate_id === null ? null : ((await readMandate(deps.db, tenant.tenantId, row.mandate_id)) ?? null),
    selfApproved: await isSelfApproved(deps.db, row),
  }
}

/** The spender that a pre-authorisation names; null for one that names only the lane of the run. */
export const preauthSpender = ({ spender, agent_id }: PreauthRow): string | null =>
  spender === agent_id ? null : spender

/** The spender of a run with a token is the token's, so that its freeze, rules and budgets bind the run. */
export function requireSameSpender(preauthSpender: string, runSpender: string): void {
  if (preauthSpender !== runSpender)
    throw forbidden(`This pre-authorisation is for the spender '${preauthSpender}', not '${runSpender}'.`)
}

/** A run can use a pre-authorisation for this service, its lane, its request and at least its price. */
export function requirePreauthMatches(
  preauth: PreauthRow,
  facts: PaymentFacts,
  run: { requestHash: string; payTo: string; network: string },
): void {
  if (preauth.merchant_id !== OWN_MERCHANT)
    throw invalid(`This pre-authorisation is for the merchant '${preauth.merchant_id}', not '${OWN_MERCHANT}'.`)
  if (preauth.agent_id !== facts.agentId)
    throw invalid(`This pre-authorisation is for the agent '${preauth.agent_id}', not '${facts.agentId}'.`)
  if (preauth.network !== run.network) throw invalid(`This pre-authorisation is for the network '${preauth.network}'.`)
  const payTo = (preauth.merchant as { pay_to?: string }).pay_to
  if (payTo !== undefined && payTo.toLowerCase() !== run.payTo.toLowerCase())
    throw invalid(`This pre-authorisation is for payments to ${payTo}.`)
  if (preauth.request_hash !== null && preauth.request_hash !== run.requestHash)
    throw invalid('This pre-authorisation is for another request.')
  if (preauth.amount_micro < facts.amountMicro)
    throw invalid(
      `This pre-authorisation covers ${usdcFromMicro(preauth.amount_micro)} USDC; the run costs ${usdcFromMicro(facts.amountMicro)}.`,
    )
}
