import type { TenantCaller } from '../../platform/auth-context.ts'
import { hashJson } from '../../platform/canonical.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db.ts'
import { microFromUsdc } from '../../platform/money.ts'
import type { AuditEvent } from '../../platform/outbox.ts'
import { invalid } from '../../platform/problem.ts'
import { INSTRUMENT_TYPES, type InstrumentType } from './broker.ts'
import { findTenantDefaults, insertTenantDefault, lockTenant, type TenantDefaultRow } from './brokerage.store.ts'
import { type DefaultConstraints, type DefaultPolicies, type DefaultPolicy, toTenantDefault } from './trade-policies.ts'

export type DefaultPoliciesDeps = {
  db: Db
  clock: Clock
  policies: DefaultPolicies
  audit(tx: Tx, event: AuditEvent): Promise<void>
}

/** The default trade policies of a tenant: its own of an instrument type, or the shipped one. */
export const createDefaultPolicies = (deps: DefaultPoliciesDeps) => {
  const toRecord = (type: InstrumentType, row: TenantDefaultRow | undefined) => {
    const shipped = deps.policies[type]
    const own = row && toOwnDefault(deps.policies, type, row)
    return {
      instrument_type: type,
      source: own ? 'tenant' : 'shipped',
      version: row?.version ?? 0,
      constraints: (own ?? shipped).constraints,
      tenant_constraints: own ? row.constraints : null,
      content_hash: own ? row.contentHash : null,
      changed_by: row?.changedBy ?? null,
      updated_at: row?.createdAt.toISOString() ?? null,
    }
  }
  const findRow = async (tx: Tx, tenantId: string, type: InstrumentType) =>
    (await findTenantDefaults(tx, tenantId)).find((row) => row.type === type)

  return {
    async list(caller: TenantCaller) {
      const rows = await findTenantDefaults(deps.db, caller.tenantId)
      return {
        policies: INSTRUMENT_TYPES.map((type) =>
          toRecord(
            type,
            rows.find((row) => row.type === type),
          ),
        ),
      }
    },

    get: async (caller: TenantCaller, type: InstrumentType) =>
      toRecord(type, await findRow(deps.db, caller.tenantId, type)),

    /** Replaces the tenant's default. Without any constraint the tenant has none of its own again. */
    async put(caller: TenantCaller, type: InstrumentType, constraints: DefaultConstraints) {
      requireMoney(constraints)
      return deps.db.transaction().execute(async (tx) => {
        await lockTenant(tx, caller.tenantId)
        const current = await findRow(tx, caller.tenantId, type)
        const contentHash = hashJson({ instrument_type: type, constraints })
        if (current?.contentHash === contentHash) return toRecord(type, current)
        const row = {
          type,
          version: (current?.version ?? 0) + 1,
          constraints,
          contentHash,
          changedBy: caller.keyId,
          createdAt: deps.clock.now(),
        }
        await insertTenantDefault(tx, caller.tenantId, row)
        await deps.audit(tx, {
          tenantId: caller.tenantId,
          type: 'rh_policy.updated',
          actor: caller.keyId,
          subject: `default-${type}`,
          at: row.createdAt,
          inputHash: contentHash,
          data: { instrument_type: type, version: row.version, constraints },
        })
        return toRecord(type, row)
      })
    },
  }
}

/** The tenant's own default of a type; undefined when it has none. */
export async function readTenantDefault(
  tx: Tx,
  policies: DefaultPolicies,
  tenantId: string,
  type: InstrumentType,
): Promise<DefaultPolicy | undefined> {
  const row = (await findTenantDefaults(tx, tenantId)).find((candidate) => candidate.type === type)
  return row && toOwnDefault(policies, type, row)
}

const toOwnDefault = (policies: DefaultPolicies, type: InstrumentType, row: TenantDefaultRow) =>
  Object.keys(row.constraints).length === 0 ? undefined : toTenantDefault(policies[type], type, row)

/** JSON schema cannot express at most six decimals. */
function requireMoney(constraints: DefaultConstraints): void {
  for (const [name, value] of Object.entries(constraints)) {
    if (name.endsWith('_usdc') && microFromUsdc(value as number) === undefined)
      throw invalid(`body/constraints/${name} must be an amount with at most six decimals.`)
  }
}
