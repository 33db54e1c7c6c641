import { randomBytes } from 'node:crypto'
import type { Selectable } from 'kysely'
import type { TenantCaller } from '../../../platform/auth-context.ts'
import type { Clock } from '../../../platform/clock.ts'
import type { Tx } from '../../../platform/db.ts'
import type { Decisions } from '../../../platform/generated/db.ts'
import type { Idempotency, IdempotentResponse } from '../../../platform/idempotency.ts'
import type { Ids } from '../../../platform/ids.ts'
import type { Keys } from '../../../platform/keys.ts'
import { microFromUsdc, usdcFromMicro } from '../../../platform/money.ts'
import type { Outbox } from '../../../platform/outbox.ts'
import { conflict, expired, forbidden, invalid } from '../../../platform/problem.ts'
import { type Merchant, merchantNames, OWN_MERCHANT, type PaymentFacts } from '../assess/payment-facts.ts'
import { findMandatesOfAgent, findOverride, findPreauth, type OverrideRow } from './grants.store.ts'
import { readDecider, requireAsker, requireMayDecide } from './self-decision.ts'

export type OverridesDeps = {
  clock: Clock
  ids: Ids
  keys: Pick<Keys, 'fingerprint'>
  outbox: Outbox
  idempotency: Idempotency
}

export type AuthorizeInput = {
  agent_id: string
  amount_usdc: number
  merchant: string
  reason: string
  denied_decision_id?: string
  expires_in_seconds?: number
  idempotency_key?: string
}

const DEFAULT_TTL_SECONDS = 900
const MAX_DENIAL_AGE_MS = 24 * 3_600_000

/** Issues an override of a policy's denial: single use, time-limited, for one agent, amount and merchant. */
export const createAuthorize =
  (deps: OverridesDeps) =>
  async (
    tenant: TenantCaller,
    input: AuthorizeInput,
    idempotencyKey: string | undefined,
  ): Promise<IdempotentResponse> => {
    const { tenantId } = tenant
    const amountMicro = microFromUsdc(input.amount_usdc)
    if (amountMicro === undefined)
      throw invalid('body/amount_usdc must be a non-negative amount with at most six decimals.')
    const request = { scope: `tenant:${tenantId}`, route: 'POST /api/authorize', key: idempotencyKey, body: input }
    return deps.idempotency.once(request, async (tx) => {
      const at = deps.clock.now()
      const denial = await findDenial(tx, tenantId, { ...input, amountMicro }, at)
      const deniedDecisionId = denial.id
      const selfApproved = requireMayDecide(await readDecider(tx, tenant, at), denial.asked_by)
      await requireMandateOf(tx, tenant, denial)
      const token = `ovt_${randomBytes(32).toString('base64url')}`
      const id = deps.ids.next('ovr')
      const expiresAt = new Date(at.getTime() + (input.expires_in_seconds ?? DEFAULT_TTL_SECONDS) * 1000)
      await tx
        .insertInto('overrides')
        .values({
          id,
          tenant_id: tenantId,
          hash: overrideHash(deps.keys, token),
          agent_id: input.agent_id,
          amount_micro: amountMicro,
          merchant: input.merchant,
          reason: input.reason,
          decision_id: deniedDecisionId,
          issued_by: tenant.keyId,
          self_approved: selfApproved,
          created_at: at,
          expires_at: expiresAt,
        })
        .execute()
      const scope = { agent_id: input.agent_id, amount_usdc: usdcFromMicro(amountMicro), merchant: input.merchant }
      const data = {
        ...scope,
        reason: input.reason,
        denied_decision_id: deniedDecisionId,
        expires_at: expiresAt.toISOString(),
        ...(selfApproved && { self_approved: true }),
      }
      await deps.outbox.audit(tx, {
        tenantId,
        type: 'override.issued',
        actor: tenant.keyId,
        subject: id,
        decision: 'issued',
        data,
        at,
      })
      return {
        status: 200,
        body: {
          authorization_id: id,
          token,
          status: 'issued',
          scope,
          single_use: true,
          denied_decision_id: deniedDecisionId,
          expires_at: expiresAt.toISOString(),
          issued_by: tenant.keyId,
          self_approved: selfApproved,
        },
      }
    })
  }

const denialColumns = ['id', 'agent_id', 'spender', 'preauth_id', 'asked_by'] as const
type Denial = Pick<Selectable<Decisions>, (typeof denialColumns)[number]>
type DenialQuery = Pick<AuthorizeInput, 'agent_id' | 'merchant' | 'denied_decision_id'> & { amountMicro: bigint }

/** The denial to override: the named decision, or the newest that matches agent, amount and merchant. */
async function findDenial(tx: Tx, tenantId: string, request: DenialQuery, now: Date): Promise<Denial> {
  const { denied_decision_id: decisionId } = request
  if (decisionId !== undefined) {
    const row = await tx
      .selectFrom('decisions')
      .select([...denialColumns, 'kind', 'outcome', 'overridable', 'merchant', 'amount_micro'])
      .where('id', '=', decisionId)
      .where('tenant_id', '=', tenantId)
      .executeTakeFirst()
    if (!row) throw invalid(`There is no decision '${decisionId}'.`)
    if (row.outcome !== 'blocked') throw invalid(`The decision '${decisionId}' is not a denial.`)
    if (row.kind === 'trade')
      throw invalid(
        `The decision '${decisionId}' denied a trade, and no override applies to trades; change the policy, or let the trade be approved.`,
      )
    if (!row.overridable)
      throw invalid(
        `The decision '${decisionId}' was taken by a hard limit or a freeze, which cannot be overridden; raise the limit, or unfreeze the agent.`,
      )
    if (
      row.agent_id !== request.agent_id ||
      row.merchant !== request.merchant ||
      row.amount_micro !== request.amountMicro
    )
      throw invalid(`The decision '${decisionId}' denied another agent, amount or merchant.`)
    return row
  }
  const row = await tx
    .selectFrom('decisions')
    .select(denialColumns)
    .where('tenant_id', '=', tenantId)
    .where('agent_id', '=', request.agent_id)
    .where('merchant', '=', request.merchant)
    .where('amount_micro', '=', request.amountMicro)
    .where('overridable', '=', true)
    .where('outcome', '=', 'blocked')
    .where('created_at', '>', new Date(now.getTime() - MAX_DENIAL_AGE_MS))
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst()
  if (!row)
    throw invalid('No policy has denied this agent, amount and merchant within 24 hours: there is nothing to override.')
  return row
}

/** A key with `mandate_ids` overrides only what was denied under one of them: the named mandate, else one of the agent's. */
async function requireMandateOf(tx: Tx, { tenantId, mandateIds }: TenantCaller, denial: Denial): Promise<void> {
  if (mandateIds === null) return
  const preauth = denial.preauth_id === null ? undefined : await findPreauth(tx, tenantId, denial.preauth_id)
  const named = preauth?.named_mandate_id ?? preauth?.mandate_id
  const deniedUnder = named ? [named] : await findMandatesOfAgent(tx, tenantId, [denial.agent_id, denial.spender])
  if (!deniedUnder.some((id) => mandateIds.includes(id)))
    throw forbidden(
      'This key overrides only denials under its own mandates, and this was not denied under one of them.',
    )
}

const overrideHash = (keys: Pick<Keys, 'fingerprint'>, token: string) => keys.fingerprint(`override:${token}`)

/** Finds the override of a token; throws when it is unknown, used or expired. */
export async function findUsableOverride(
  deps: { db: Tx; clock: Clock; keys: Pick<Keys, 'fingerprint'> },
  tenant: TenantCaller,
  token: string,
) {
  const row = await findOverride(deps.db, tenant.tenantId, { hash: overrideHash(deps.keys, token) })
  if (!row) throw invalid('override_token is not valid.')
  await requireAsker(deps.db, tenant, 'override', row.asked_by)
  if (row.used_by !== null) throw conflict('This override has been used; it works once.')
  const now = deps.clock.now()
  if (row.expires_at <= now) throw expired(`This override expired at ${row.expires_at.toISOString()}.`)
  // The maker of both keys is the same identity as whoever was denied and as whoever issued it.
  if (!row.self_approved && (await readDecider(deps.db, tenant, now)).identity.has(row.issued_by))
    throw forbidden('Whoever issued an override cannot use it: it is for whoever was denied.')
  return row
}

/** An override is bound to one agent, amount and merchant. */
export function requireOverrideMatches(override: OverrideRow, facts: PaymentFacts): void {
  const mismatch = (field: string, grantedValue: unknown, requestedValue: unknown) =>
    invalid(`This override is for the ${field} '${grantedValue}', not '${requestedValue}'.`)
  if (override.agent_id !== facts.agentId) throw mismatch('agent', override.agent_id, facts.agentId)
  if (override.merchant !== facts.merchants[0]) throw mismatch('merchant', override.merchant, facts.merchants[0])
  // The same merchant id at another address or host is not the payment that was authorised.
  const deniedNames =
    override.denied_merchant === null ? undefined : merchantNames(override.denied_merchant as Merchant)
  if (deniedNames && override.merchant !== OWN_MERCHANT && deniedNames.join() !== facts.merchants.join())
    throw mismatch('merchant', deniedNames.join(', '), facts.merchants.join(', '))
  if (override.amount_micro !== facts.amountMicro)
    throw mismatch('amount', usdcFromMicro(override.amount_micro), usdcFromMicro(facts.amountMicro))
}
