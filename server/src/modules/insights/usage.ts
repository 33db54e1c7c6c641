import { sql } from 'kysely'
import type { Db } from '../../platform/db.ts'
import { usdcFromMicro } from '../../platform/money.ts'

/** A tenant's usage since a point in time: completed runs, what they cost, and its live webhook subscriptions. */
export async function readTenantUsage(db: Db, tenantId: string, since: Date) {
  const { rows } = await sql<{ runs: bigint; spend_micro: bigint; webhook_subscriptions: bigint }>`
    select runs, spend_micro, webhook_subscriptions from tenant_usage(${tenantId}, ${since})
  `.execute(db)
  const { runs, spend_micro, webhook_subscriptions } = rows[0]!
  return {
    runs: Number(runs),
    spend_usdc: usdcFromMicro(spend_micro),
    webhook_subscriptions: Number(webhook_subscriptions),
  }
}
