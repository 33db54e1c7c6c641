import type { TenantCaller } from '../../../platform/auth-context.ts'
import { canonicalJson, hashJson } from '../../../platform/canonical.ts'
import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db.ts'
import type { Idempotency, IdempotentResponse } from '../../../platform/idempotency.ts'
import type { Ids } from '../../../platform/ids.ts'
import type { Keys } from '../../../platform/keys.ts'
import { usdcFromMicro } from '../../../platform/money.ts'
import type { Outbox } from '../../../platform/outbox.ts'
import { readPage } from '../../../platform/paging.ts'
import { conflict, invalid, notFound } from '../../../platform/problem.ts'
import { defineLimit, markRulesChanged, readCounters } from '../counters/limit-counters.store.ts'
import { type CounterState, usedOf } from '../counters/limit-counters.ts'
import { endOf, periodOf } from '../counters/windows.ts'
import { findMandate, type MandateRow } from '../grants/grants.store.ts'
import { lockRules, requireChangesLeft, requireRoomForMandate } from '../rules/rule-limits.ts'
import { readKeys } from '../rules/rules-cache.store.ts'
import type { RulesCache } from '../rules/rules-cache.ts'
import { checkMandateConstraints, type MandateConstraint, mandateLimits } from './evaluate-mandate.ts'
import { insertMandate, leavesUnlimited, listMandates, readReportedMicro, revokeMandate } from './mandates.store.ts'

export type MandatesDeps = {
  db: Db
  clock: Clock
  ids: Ids
  keys: Pick<Keys, 'signer'>
  outbox: Outbox
  idempotency: Idempotency
  rulesCache: Pick<RulesCache, 'invalidate'>
}

export type MandateInput = {
  name: string
  agent_id?: string
  holder_key_id?: string
  constraints: MandateConstraint[]
  starts_at?: string
  expires_at?: string
  idempotency_key?: string
}

const DEFAULT_LIFE_MS = 365 * 86_400_000
const REMAINING_SCHEMA = 'mandate-remaining/v1'

const NO_CONSTRAINTS = 'This mandate has no constraints: it limits nothing, and every payment of its agents fits it.'

const describeUnlimited = ({ agent_id }: Pick<MandateRow, 'agent_id'>) =>
  `From now on no mandate limits ${agent_id === null ? 'every agent without a mandate of its own' : `the agent '${agent_id}'`}: policies and budgets alone apply. Create another mandate, or a policy with require_mandate.`

export type Mandates = ReturnType<typeof createMandates>

export function createMandates(deps: MandatesDeps) {
  const signer = deps.keys.signer('statements')
  const requireMandate = async (tenant: TenantCaller, id: string) => {
    const row = await findMandate(deps.db, tenant.tenantId, id)
    if (!row) throw notFound('mandate')
    return row
  }

  return {
    async create(
      tenant: TenantCaller,
      input: MandateInput,
      idempotencyKey: string | undefined,
    ): Promise<IdempotentResponse> {
      const { tenantId } = tenant
      checkMandateConstraints(input.constraints)
      const request = { scope: `tenant:${tenantId}`, route: 'POST /api/mandates', key: idempotencyKey, body: input }
      const response = await deps.idempotency.once(request, async (tx) => {
        const at = deps.clock.now()
        await lockRules(tx, tenantId)
        await requireRoomForMandate(tx, tenantId, input.constraints, at)
        await requireChangesLeft(tx, tenantId, at)
        const { starts_at, expires_at } = readValidity(input, at)
        const holderKeyId = input.holder_key_id ?? null
        if (holderKeyId !== null && !(await readKeys(tx, tenantId)).some((key) => key.id === holderKeyId))
          throw invalid('body/holder_key_id is not a key of this tenant.')
        const id = deps.ids.next('man')
        const content = {
          name: input.name,
          agent_id: input.agent_id ?? null,
          constraints: input.constraints,
          starts_at,
          expires_at,
        }
        const row = await insertMandate(tx, {
          id,
          tenant_id: tenantId,
          ...content,
          holder_key_id: holderKeyId,
          content_hash: hashJson({
            ...content,
            starts_at: starts_at.toISOString(),
            expires_at: expires_at.toISOString(),
          }),
          created_by: tenant.keyId,
          created_at: at,
        })
        for (const { scope, limitMicro, rule } of mandateLimits(id, input.constraints))
          await defineLimit(tx, { scope, tenantId, limitMicro, enforced: true, subject: { mandate_id: id, rule } })
        // It binds payments from now on, also those that do not name it.
        await markRulesChanged(tx, tenantId)
        await deps.outbox.audit(tx, {
          tenantId,
          type: 'mandate.created',
          actor: tenant.keyId,
          subject: id,
          inputHash: row.content_hash,
          data: { name: row.name, agent_id: row.agent_id },
          at,
        })
        return {
          status: 201,
          body: { ...toMandateRecord(row), ...(input.constraints.length === 0 && { warning: NO_CONSTRAINTS }) },
        }
      })
      deps.rulesCache.invalidate(tenantId)
      return response
    },

    async list(tenant: TenantCaller, query: { limit?: number; cursor?: string; status?: string }) {
      const readRows = (limit: number, after: MandateRow | undefined) =>
        listMandates(deps.db, tenant.tenantId, { ...query, limit, cursor: after?.id ?? query.cursor })
      const { rows, ...paging } = await readPage(query.limit ?? 50, readRows, (row) => row.id)
      return { mandates: rows.map(toMandateRecord), ...paging }
    },

    get: async (tenant: TenantCaller, id: string) => toMandateRecord(await requireMandate(tenant, id)),

    /** Ends the mandate: nothing more is authorised under it, and tokens issued under it can no longer be used for runs. */
    async revoke(tenant: TenantCaller, id: string, reason: string | undefined) {
      const at = deps.clock.now()
      await requireMandate(tenant, id)
      const { row, isLast } = await deps.db.transaction().execute(async (tx) => {
        const revoked = await revokeMandate(tx, tenant.tenantId, id, at)
        if (!revoked) throw conflict('This mandate is already revoked.')
        await markRulesChanged(tx, tenant.tenantId)
        await deps.outbox.audit(tx, {
          tenantId: tenant.tenantId,
          type: 'mandate.revoked',
          actor: tenant.keyId,
          subject: id,
          data: { ...(reason !== undefined && { reason }) },
          at,
        })
        return { row: revoked, isLast: await leavesUnlimited(tx, revoked, at) }
      })
      deps.rulesCache.invalidate(tenant.tenantId)
      return { ...toMandateRecord(row), ...(isLast && { warning: describeUnlimited(row) }) }
    },

    /** The remaining budget across all merchants, as a signed statement that anyone can verify. */
    async remaining(tenant: TenantCaller, id: string) {
      const row = await requireMandate(tenant, id)
      const now = deps.clock.now()
      const limits = mandateLimits(id, row.constraints as MandateConstraint[])
      const states = await readCounters(
        deps.db,
        limits.map(({ scope, window }) => ({ scope, period: periodOf(window, now) })),
        now,
      )
      const findCounter = (rule: string) => {
        const limit = limits.find((candidate) => candidate.rule === rule)
        const state = limit && states.find((candidate) => candidate.scope === limit.scope)
        return limit && state && { limit, state }
      }
      const budget = findCounter('payment.budget')
      const occurrences = findCounter('payment.agent_recurrence.max_occurrences')
      const recurrence = findCounter('payment.agent_recurrence')
      const nextAllowedAt =
        recurrence && usedOf(recurrence.state) >= recurrence.limit.limitMicro
          ? endOf(recurrence.limit.window, now)
          : null
      const statement = {
        schema: REMAINING_SCHEMA,
        mandate_id: row.id,
        content_hash: row.content_hash,
        status: currentStatus(row, now),
        agent_id: row.agent_id,
        as_of: now.toISOString(),
        starts_at: row.starts_at.toISOString(),
        expires_at: row.expires_at.toISOString(),
        currency: 'USDC',
        ...toAmountFields(budget?.state),
        ...toReportedFields(budget && (await readReportedMicro(deps.db, tenant.tenantId, id))),
        occurrences: occurrences
          ? {
              limit: Number(occurrences.limit.limitMicro),
              used: Number(usedOf(occurrences.state)),
              remaining: Number(occurrences.limit.limitMicro - usedOf(occurrences.state)),
            }
          : null,
        next_allowed_at: nextAllowedAt?.toISOString() ?? null,
      }
      const value = signer.sign(canonicalJson(statement)).toString('base64')
      return { ...statement, signature: { alg: 'ed25519' as const, key_id: signer.keyId, value } }
    },
  }
}

function readValidity(input: MandateInput, now: Date): { starts_at: Date; expires_at: Date } {
  const starts_at = input.starts_at === undefined ? now : new Date(input.starts_at)
  const expires_at =
    input.expires_at === undefined ? new Date(starts_at.getTime() + DEFAULT_LIFE_MS) : new Date(input.expires_at)
  if (expires_at <= now) throw invalid('body/expires_at is in the past.')
  if (expires_at <= starts_at) throw invalid('body/expires_at is not after body/starts_at.')
  return { starts_at, expires_at }
}

/** Each amount in atomic units and in USDC; null when the mandate has no budget. */
function toAmountFields(state: CounterState | undefined) {
  const amountsMicro = {
    limit: state?.limitMicro ?? null,
    spent: state?.spentMicro ?? null,
    reserved: state?.reservedMicro ?? null,
    remaining: state ? state.limitMicro - usedOf(state) : null,
  }
  const entries = Object.entries(amountsMicro).flatMap(([name, micro]) => [
    [name, micro === null ? null : micro.toString()],
    [`${name}_usdc`, micro === null ? null : usdcFromMicro(micro)],
  ])
  return Object.fromEntries(entries) as Record<keyof typeof amountsMicro, string | null> &
    Record<`${keyof typeof amountsMicro}_usdc`, number | null>
}

/** The part of `spent` that nobody but the tenant has seen: the statement does not say that this money moved. */
const toReportedFields = (micro: bigint | undefined) => ({
  reported: micro?.toString() ?? null,
  reported_usdc: micro === undefined ? null : usdcFromMicro(micro),
})

function currentStatus(row: MandateRow, now: Date): string {
  if (row.status === 'revoked') return 'revoked'
  if (now < row.starts_at) return 'not_started'
  return now >= row.expires_at ? 'expired' : 'active'
}

const toMandateRecord = (row: MandateRow) => ({
  id: row.id,
  mandate_id: row.id,
  name: row.name,
  agent_id: row.agent_id,
  holder_key_id: row.holder_key_id,
  constraints: row.constraints,
  content_hash: row.content_hash,
  status: row.status,
  starts_at: row.starts_at.toISOString(),
  expires_at: row.expires_at.toISOString(),
  created_at: row.created_at.toISOString(),
  revoked_at: row.revoked_at?.toISOString() ?? null,
})
