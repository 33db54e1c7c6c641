import { randomBytes } from 'node:crypto'
import type { TenantCaller } from '../../platform/auth-context.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Tx } from '../../platform/db.ts'
import type { Idempotency, IdempotentResponse } from '../../platform/idempotency.ts'
import type { Ids } from '../../platform/ids.ts'
import type { Keys } from '../../platform/keys.ts'
import { microFromUsdc, usdcFromMicro } from '../../platform/money.ts'
import type { Outbox } from '../../platform/outbox.ts'
import { invalid } from '../../platform/problem.ts'
import { overrideHash } from './check-grants.ts'

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

const DEFAULT_LIFE_SECONDS = 900
const DENIAL_AGE_MS = 24 * 3_600_000

/** One payment past a policy that denied it: once, in time, for exactly this agent, amount and merchant. */
export const createAuthorize =
  (d: OverridesDeps) =>
  async (
    tenant: TenantCaller,
    input: AuthorizeInput,
    idempotencyKey: string | undefined,
  ): Promise<IdempotentResponse> => {
    const { tenantId } = tenant
    const amountMicro = microFromUsdc(input.amount_usdc)
    if (amountMicro === undefined)
      throw invalid('body/amount_usdc must be a non-negative amount with at most six decimals.')
    const asked = { scope: `tenant:${tenantId}`, route: 'POST /api/authorize', key: idempotencyKey, body: input }
    return d.idempotency.once(asked, async (tx) => {
      const at = d.clock.now()
      const denial = await findDenial(tx, tenantId, { ...input, amountMicro }, at)
      const token = `ovt_${randomBytes(32).toString('base64url')}`
      const id = d.ids.next('ovr')
      const expiresAt = new Date(at.getTime() + (input.expires_in_seconds ?? DEFAULT_LIFE_SECONDS) * 1000)
      await tx
        .insertInto('overrides')
        .values({
          id,
          tenant_id: tenantId,
          hash: overrideHash(d.keys, token),
          agent_id: input.agent_id,
          amount_micro: amountMicro,
          merchant: input.merchant,
          reason: input.reason,
          decision_id: denial,
          issued_by: tenant.keyId,
          created_at: at,
          expires_at: expiresAt,
        })
        .execute()
      const scope = { agent_id: input.agent_id, amount_usdc: usdcFromMicro(amountMicro), merchant: input.merchant }
      const data = { ...scope, reason: input.reason, denied_decision_id: denial, expires_at: expiresAt.toISOString() }
      await d.outbox.audit(tx, {
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
          denied_decision_id: denial,
          expires_at: expiresAt.toISOString(),
          issued_by: tenant.keyId,
        },
      }
    })
  }

type Asked = Pick<AuthorizeInput, 'agent_id' | 'merchant' | 'denied_decision_id'> & { amountMicro: bigint }

/** The denial it is against: the one named, or the newest that fits. Without one there is nothing to override. */
async function findDenial(tx: Tx, tenantId: string, asked: Asked, now: Date): Promise<string> {
  const { denied_decision_id: named } = asked
  if (named !== undefined) {
    const row = await tx
      .selectFrom('decisions')
      .selectAll()
      .where('id', '=', named)
      .where('tenant_id', '=', tenantId)
      .executeTakeFirst()
    if (!row) throw invalid(`There is no decision '${named}'.`)
    if (row.outcome !== 'blocked') throw invalid(`The decision '${named}' is not a denial.`)
    if (!row.overridable)
      throw invalid(
        `The decision '${named}' was taken by a hard limit or a freeze, which cannot be overridden; raise the limit, or unfreeze the agent.`,
      )
    if (row.agent_id !== asked.agent_id || row.merchant !== asked.merchant || row.amount_micro !== asked.amountMicro)
      throw invalid(`The decision '${named}' denied another agent, amount or merchant.`)
    return row.id
  }
  const row = await tx
    .selectFrom('decisions')
    .select('id')
    .where('tenant_id', '=', tenantId)
    .where('agent_id', '=', asked.agent_id)
    .where('merchant', '=', asked.merchant)
    .where('amount_micro', '=', asked.amountMicro)
    .where('overridable', '=', true)
    .where('outcome', '=', 'blocked')
    .where('created_at', '>', new Date(now.getTime() - DENIAL_AGE_MS))
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst()
  if (!row)
    throw invalid('No policy has denied this agent, amount and merchant within 24 hours: there is nothing to override.')
  return row.id
}
