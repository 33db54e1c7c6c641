import { type Selectable, sql } from 'kysely'
import type { Tx } from '../../../platform/db.ts'
import type { Approvals, Mandates, Overrides, Preauths } from '../../../platform/generated/db.ts'
import type { Mandate } from '../mandates/evaluate-mandate.ts'
import { readKeys, toMandate } from '../rules/rules-cache.store.ts'

export type ApprovalRow = Selectable<Approvals>
/**
 * `denied_merchant` is the merchant of the denied pre-authorisation, null when a run was denied; `asked_by` is the key that
 * was denied.
 */
export type OverrideRow = Selectable<Overrides> & { denied_merchant: unknown; asked_by: string }
export type PreauthRow = Selectable<Preauths>
export type MandateRow = Selectable<Mandates>

/** Rows of other tenants are not found. */
export const findApproval = (tx: Tx, tenantId: string, id: string): Promise<ApprovalRow | undefined> =>
  tx.selectFrom('approvals').selectAll().where('id', '=', id).where('tenant_id', '=', tenantId).executeTakeFirst()

export const readVotes = (tx: Tx, approvalIds: readonly string[]) =>
  approvalIds.length === 0
    ? Promise.resolve([])
    : tx
        .selectFrom('approval_votes')
        .selectAll()
        .where('approval_id', 'in', approvalIds)
        .orderBy('created_at')
        .execute()

export const findOverride = (
  tx: Tx,
  tenantId: string,
  key: { hash: string } | { id: string },
): Promise<OverrideRow | undefined> =>
  tx
    .selectFrom('overrides')
    .innerJoin('decisions', 'decisions.id', 'overrides.decision_id')
    .leftJoin('preauths', 'preauths.id', 'decisions.preauth_id')
    .selectAll('overrides')
    .select(['preauths.merchant as denied_merchant', 'decisions.asked_by'])
    .where('id' in key ? 'overrides.id' : 'overrides.hash', '=', 'id' in key ? key.id : key.hash)
    .where('overrides.tenant_id', '=', tenantId)
    .executeTakeFirst()

export const findPreauth = (tx: Tx, tenantId: string, id: string): Promise<PreauthRow | undefined> =>
  tx.selectFrom('preauths').selectAll().where('id', '=', id).where('tenant_id', '=', tenantId).executeTakeFirst()

export const findMandate = (tx: Tx, tenantId: string, id: string): Promise<MandateRow | undefined> =>
  tx.selectFrom('mandates').selectAll().where('id', '=', id).where('tenant_id', '=', tenantId).executeTakeFirst()

/** Which of these ids are mandates of the tenant. */
export async function findMandateIds(tx: Tx, tenantId: string, ids: readonly string[]): Promise<string[]> {
  if (ids.length === 0) return []
  const rows = await tx
    .selectFrom('mandates')
    .select('id')
    .where('tenant_id', '=', tenantId)
    .where('id', 'in', ids)
    .execute()
  return rows.map((row) => row.id)
}

/** The active mandates that bind an agent: its own, and those of the whole tenant. */
export async function findMandatesOfAgent(
  tx: Tx,
  tenantId: string,
  names: readonly (string | null)[],
): Promise<string[]> {
  const rows = await tx
    .selectFrom('mandates')
    .select('id')
    .where('tenant_id', '=', tenantId)
    .where('status', '=', 'active')
    .where((on) =>
      on.or([
        on('agent_id', 'is', null),
        on(
          'agent_id',
          'in',
          names.filter((name) => name !== null),
        ),
      ]),
    )
    .execute()
  return rows.map((row) => row.id)
}

/** Whether the approval or the override that a pre-authorisation used was given by the identity that asked. */
export async function isSelfApproved(
  tx: Tx,
  { approval_id, override_id }: Pick<PreauthRow, 'approval_id' | 'override_id'>,
): Promise<boolean> {
  if (approval_id === null && override_id === null) return false
  const { rows } = await sql<{ self_approved: boolean }>`
    select exists (select from approvals where id = ${approval_id} and self_approved)
        or exists (select from overrides where id = ${override_id} and self_approved) as self_approved
  `.execute(tx)
  return rows[0]!.self_approved
}

/** A mandate that is named; it may be revoked or expired. */
export async function readMandate(tx: Tx, tenantId: string, id: string): Promise<Mandate | undefined> {
  const row = await findMandate(tx, tenantId, id)
  return row && toMandate(row, await readKeys(tx, tenantId))
}

/** The scopes of the counters in which an open pre-authorisation holds its amount. */
export const heldScopes = (preauth: PreauthRow): Set<string> =>
  new Set((preauth.holds as { scope: string }[]).map((hold) => hold.scope))

/** Whether the approved run has not been executed yet. */
export async function isWaitingToRun(tx: Tx, runId: string): Promise<boolean> {
  const row = await tx.selectFrom('runs').select('state').where('id', '=', runId).executeTakeFirst()
  return row?.state === 'approved'
}
