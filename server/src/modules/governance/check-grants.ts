import type { TenantCaller } from '../../platform/auth-context.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import type { Keys } from '../../platform/keys.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import { conflict, expired, invalid, notFound } from '../../platform/problem.ts'
import {
  type ApprovalRow,
  findApproval,
  findHeldScopes,
  findMandate,
  findOverride,
  findPreauth,
  type OverrideRow,
  type PreauthRow,
  readVotes,
  toMandate,
} from './grants.store.ts'
import type { Mandate } from './mandate.ts'
import { type Merchant, merchantNames, OWN_MERCHANT, type PaymentFacts } from './payment-facts.ts'
import { readPreauthToken } from './preauth-token.ts'

type Deps = { db: Db; clock: Clock; keys: Pick<Keys, 'signer' | 'fingerprint'> }

/** What a request brings along to be let through: each is looked up, none is used yet. */
export type Grants = {
  approval?: ApprovalRow & { votes: number }
  override?: OverrideRow
  preauth?: PreauthRow & { held: Set<string>; mandate: Mandate | null }
}

export type GrantReferences = { approvalId?: string; overrideToken?: string; preauthToken?: string }

export async function readGrants(d: Deps, tenant: TenantCaller, brought: GrantReferences): Promise<Grants> {
  const { approvalId, overrideToken, preauthToken } = brought
  return {
    ...(approvalId !== undefined && { approval: await readApproval(d, tenant, approvalId) }),
    ...(overrideToken !== undefined && { override: await findUsableOverride(d, tenant, overrideToken) }),
    ...(preauthToken !== undefined && { preauth: await readPreauth(d, tenant, preauthToken) }),
  }
}

async function readApproval(d: Deps, tenant: TenantCaller, id: string) {
  const row = await findApproval(d.db, tenant.tenantId, id)
  if (!row) throw notFound('approval')
  if (row.consumed_by !== null) throw conflict('This approval has been used: what it approved was executed once.')
  if (row.status === 'approved' && row.expires_at <= d.clock.now())
    throw expired(`This approval had to be used before ${row.expires_at.toISOString()}.`)
  const votes = await readVotes(d.db, [row.id])
  return { ...row, votes: votes.filter((vote) => vote.decision === 'approve').length }
}

export const overrideHash = (keys: Pick<Keys, 'fingerprint'>, token: string) => keys.fingerprint(`override:${token}`)

export async function findUsableOverride(d: Deps, tenant: TenantCaller, token: string) {
  const row = await findOverride(d.db, tenant.tenantId, { hash: overrideHash(d.keys, token) })
  if (!row) throw invalid('override_token is not valid.')
  if (row.used_by !== null) throw conflict('This override has been used; it works once.')
  if (row.expires_at <= d.clock.now()) throw expired(`This override ended at ${row.expires_at.toISOString()}.`)
  return row
}

async function readPreauth(d: Deps, tenant: TenantCaller, token: string) {
  const claims = readPreauthToken(d.keys.signer('tokens'), token)
  const row = claims && (await findPreauth(d.db, tenant.tenantId, claims.jti))
  if (!row) throw invalid('preauth_token is not valid.')
  if (row.status !== 'open')
    throw conflict(`This pre-authorisation is ${row.status.replaceAll('_', ' ')}; its token works once.`)
  if (row.expires_at! <= d.clock.now())
    throw expired(`This pre-authorisation had to be used before ${row.expires_at!.toISOString()}.`)
  const mandateRow = row.mandate_id === null ? undefined : await findMandate(d.db, tenant.tenantId, row.mandate_id)
  return {
    ...row,
    held: await findHeldScopes(d.db, row.id),
    mandate: mandateRow ? await toMandate(d.db, mandateRow) : null,
  }
}

/** An override is for exactly one agent, amount and merchant. */
export function requireOverrideMatches(override: OverrideRow, facts: PaymentFacts): void {
  const differs = (what: string, has: unknown, wants: unknown) =>
    invalid(`This override is for the ${what} '${has}', not '${wants}'.`)
  if (override.agent_id !== facts.agentId) throw differs('agent', override.agent_id, facts.agentId)
  if (override.merchant !== facts.merchants[0]) throw differs('merchant', override.merchant, facts.merchants[0])
  // The same id paid at another address, or under another host, is not what a person allowed.
  const denied = override.denied_merchant === null ? undefined : merchantNames(override.denied_merchant as Merchant)
  if (denied && override.merchant !== OWN_MERCHANT && denied.join() !== facts.merchants.join())
    throw differs('merchant', denied.join(', '), facts.merchants.join(', '))
  if (override.amount_micro !== facts.amountMicro)
    throw differs('amount', usdcFromMicro(override.amount_micro), usdcFromMicro(facts.amountMicro))
}

/** A run spends a pre-authorisation that was given for it: our merchant, its lane, its request, at most its amount. */
export function requirePreauthMatches(
  preauth: PreauthRow,
  facts: PaymentFacts,
  own: { requestHash: string; payTo: string; network: string },
): void {
  if (preauth.merchant_id !== OWN_MERCHANT)
    throw invalid(`This pre-authorisation is for the merchant '${preauth.merchant_id}', not '${OWN_MERCHANT}'.`)
  if (preauth.agent_id !== facts.agentId)
    throw invalid(`This pre-authorisation is for the agent '${preauth.agent_id}', not '${facts.agentId}'.`)
  if (preauth.network !== own.network) throw invalid(`This pre-authorisation is for the network '${preauth.network}'.`)
  const payTo = (preauth.merchant as { pay_to?: string }).pay_to
  if (payTo !== undefined && payTo.toLowerCase() !== own.payTo.toLowerCase())
    throw invalid(`This pre-authorisation is for payments to ${payTo}.`)
  if (preauth.request_hash !== null && preauth.request_hash !== own.requestHash)
    throw invalid('This pre-authorisation is for another request.')
  if (preauth.amount_micro < facts.amountMicro)
    throw invalid(
      `This pre-authorisation covers ${usdcFromMicro(preauth.amount_micro)} USDC; the run costs ${usdcFromMicro(facts.amountMicro)}.`,
    )
}
