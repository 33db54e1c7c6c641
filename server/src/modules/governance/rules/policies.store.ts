import type { Selectable } from 'kysely'
import type { Tx } from '../../../platform/db.ts'
import type { Policies } from '../../../platform/generated/db.ts'
import type { PolicyContent } from './evaluate-policy.ts'

export type PolicyRow = Selectable<Policies>

export const findPolicy = (tx: Tx, tenantId: string, id: string): Promise<PolicyRow | undefined> =>
  tx
    .selectFrom('policies')
    .selectAll()
    .where('id', '=', id)
    .where('tenant_id', '=', tenantId)
    .where('status', '<>', 'deleted')
    .executeTakeFirst()

export const lockPolicy = (tx: Tx, tenantId: string, id: string): Promise<PolicyRow | undefined> =>
  tx
    .selectFrom('policies')
    .selectAll()
    .where('id', '=', id)
    .where('tenant_id', '=', tenantId)
    .where('status', '<>', 'deleted')
    .forUpdate()
    .executeTakeFirst()

export async function listPolicies(
  tx: Tx,
  tenantId: string,
  page: { limit: number; cursor?: string },
): Promise<PolicyRow[]> {
  let query = tx.selectFrom('policies').selectAll().where('tenant_id', '=', tenantId).where('status', '<>', 'deleted')
  if (page.cursor !== undefined) query = query.where('id', '<', page.cursor)
  return query.orderBy('id', 'desc').limit(page.limit).execute()
}

type PolicyVersion = {
  id: string
  tenantId: string
  version: number
  status: string
  content: PolicyContent
  hash: string
  by: string
  at: Date
}

/** Writes the policy, and its content as a new version that is kept. */
export async function writePolicy(
  tx: Tx,
  { id, tenantId, version, status, content, hash, by: changedBy, at }: PolicyVersion,
): Promise<PolicyRow> {
  const columns = {
    ...content,
    constraints: JSON.stringify(content.constraints),
    rules: JSON.stringify(content.rules),
    selectable: content.selectable ?? false,
    version,
    status,
    content_hash: hash,
    updated_at: at,
  }
  const row = await tx
    .insertInto('policies')
    .values({ id, tenant_id: tenantId, created_at: at, ...columns })
    .onConflict((on) => on.column('id').doUpdateSet(columns))
    .returningAll()
    .executeTakeFirstOrThrow()
  await tx
    .insertInto('policy_versions')
    .values({
      policy_id: id,
      version,
      content: JSON.stringify({ ...content, status }),
      content_hash: hash,
      changed_by: changedBy,
      created_at: at,
    })
    .execute()
  return row
}

/** The versions of a policy, newest first. */
export async function listVersions(tx: Tx, policyId: string, page: { limit: number; before?: number }) {
  let query = tx.selectFrom('policy_versions').selectAll().where('policy_id', '=', policyId)
  if (page.before !== undefined) query = query.where('version', '<', page.before)
  return query.orderBy('version', 'desc').limit(page.limit).execute()
}
