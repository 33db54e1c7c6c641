import { AsyncLocalStorage } from 'node:async_hooks'
import { CompiledQuery, type DatabaseConnection } from 'kysely'
import pg from 'pg'

/**
 * Row-level security for reads: the second lock behind the tenant conditions of the stores. A tenant's GET request reads
 * under a role that owns nothing and sees only this tenant's rows, so that a forgotten condition shows nothing.
 */
export const READER_ROLE = 'countersign_reader'

const scope = new AsyncLocalStorage<string | undefined>()

/** Runs a tenant's reading request: its queries see this tenant's rows only. */
export const withTenantReads = <T>(tenantId: string, work: () => T): T => scope.run(tenantId, work)

/**
 * Work that several requests share, such as grouped reads, belongs to none of them. A request that was waiting behind
 * another on its connection may begin in the scope of that one, and must leave it.
 */
export const outsideTenantReads = <T>(work: () => T): T =>
  scope.getStore() === undefined ? work() : scope.run(undefined, work)

const OWN = `tenant_id = current_setting('countersign.tenant', true)`
const ACCOUNT = `account_id = current_setting('countersign.tenant', true)`

/** Which rows a tenant may read where its id is not in a column `tenant_id`, or not only there. */
const ROW_RULES: Record<string, string> = {
  tenants: `id = current_setting('countersign.tenant', true)`,
  escrows: `${OWN} or to_tenant_id = current_setting('countersign.tenant', true)`,
  approval_votes: 'exists (select from approvals where approvals.id = approval_id)',
  policy_versions: 'exists (select from policies where policies.id = policy_id)',
  rh_fills: 'exists (select from rh_runs where rh_runs.id = run_id)',
  limits: 'exists (select from limit_definitions definition where definition.scope = limits.scope)',
  limit_slices: 'exists (select from limit_definitions definition where definition.scope = limit_slices.scope)',
  spend_history: 'exists (select from limit_definitions definition where definition.scope = spend_history.scope)',
  paper_accounts: ACCOUNT,
  paper_orders: ACCOUNT,
  paper_journal: ACCOUNT,
}

/** Public by design, whoever asks: the log, receipts, prices, lanes and verification keys. */
const PUBLIC_TABLES = [
  'basis_assets',
  'basis_attestations',
  'basis_bodies',
  'basis_fetches',
  'basis_readings',
  'basis_turn',
  'benchmarks',
  'lane_hours',
  'lane_receipts',
  'lane_window',
  'lanes',
  'log_cosignatures',
  'log_entries',
  'log_head',
  'log_quorum',
  'log_tiles',
  'receipts',
  'retention',
  'routing_snapshots',
  'signing_keys',
  'spend_hours_begin',
]

/** Credentials, stored answers, and tables of the service itself: no read of a tenant needs them. */
const CLOSED_TABLES = [
  'approval_links',
  'benchmark_turns',
  'chain_accounts',
  'chain_allowances',
  'chain_authorizations',
  'chain_balances',
  'chain_blocks',
  'chain_head',
  'chain_permits',
  'chain_transactions',
  'embedded_chain_owner',
  'encryption_canary',
  'idempotency_answers',
  'instances',
  'log_witnesses',
  'migrations',
  'nonces',
  'rh_oauth_accounts',
  'rh_oauth_states',
  'rh_run_keys',
  'run_keys',
  'schema_versions',
  'sequencer_lease',
  'sessions',
  'unanswered_payments',
]

/** Whether tenants' reads are under the role, or why not. */
export type TenantReads = { ok: true } | { ok: false; reason: string }

type Client = Pick<pg.Client, 'query'>
type Relation = { name: string; kind: 'r' | 'p' | 'v'; has_tenant: boolean; secured: boolean; granted: boolean }

const RELATIONS = `
  select c.relname as name, c.relkind as kind,
         exists (select from pg_attribute where attrelid = c.oid and attname = 'tenant_id' and not attisdropped) as has_tenant,
         case when c.relkind = 'v' then coalesce('security_invoker=true' = any(c.reloptions), false)
              else c.relrowsecurity and exists (select from pg_policy where polrelid = c.oid and polname = 'tenant_reads') end as secured,
         has_table_privilege('${READER_ROLE}', c.oid, 'select') as granted
  from pg_class c
  where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p', 'v') and not c.relispartition
  order by c.relname`

/**
 * Creates the role, its grants and the policies where they are missing; migrations call it at every start.
 * Returns why it could not: the database's user may lack the right to create roles.
 */
export async function secureTenantReads(client: Client): Promise<TenantReads> {
  const { rows: version } = await client.query(`select current_setting('server_version_num')::int as number`)
  if (version[0].number < 160_000) return { ok: false, reason: 'PostgreSQL is older than 16' }
  try {
    await client.query(`
      do $$ begin
        if not exists (select from pg_roles where rolname = '${READER_ROLE}') then create role ${READER_ROLE} nologin; end if;
        if not pg_has_role(current_user, '${READER_ROLE}', 'set') then execute format('grant ${READER_ROLE} to %I', current_user); end if;
        if not has_schema_privilege('${READER_ROLE}', current_schema(), 'usage') then
          execute format('grant usage on schema %I to ${READER_ROLE}', current_schema());
        end if;
      end $$`)
  } catch (error) {
    // 23505 and 42710: another service on this server created the role at the same moment; the next start finds it.
    if (!['42501', '23505', '42710'].includes((error as { code?: string }).code ?? '')) throw error
    return { ok: false, reason: (error as Error).message }
  }
  const { rows } = await client.query<Relation>(RELATIONS)
  for (const relation of rows) await secureRelation(client, relation)
  return { ok: true }
}

async function secureRelation(client: Client, { name, kind, has_tenant, secured, granted }: Relation) {
  if (CLOSED_TABLES.includes(name)) return
  if (kind === 'v') {
    if (!secured) await client.query(`alter view ${name} set (security_invoker = true)`)
  } else {
    const rule = PUBLIC_TABLES.includes(name) ? undefined : (ROW_RULES[name] ?? (has_tenant ? OWN : undefined))
    // An unknown table stays closed until somebody says whose rows it holds.
    if (!rule && !PUBLIC_TABLES.includes(name)) return
    if (rule && !secured) {
      await client.query(`
        alter table ${name} enable row level security;
        create policy tenant_reads on ${name} for select to ${READER_ROLE} using (${rule})`)
    }
  }
  if (!granted) await client.query(`grant select on ${name} to ${READER_ROLE}`)
}

/** Tables and views that no list above decides about; a test keeps it empty. */
export async function findUndecidedTables(client: Client): Promise<string[]> {
  const { rows } = await client.query<Relation>(RELATIONS)
  return rows
    .filter(({ name, kind, has_tenant }) => kind !== 'v' && !has_tenant && !ROW_RULES[name])
    .map(({ name }) => name)
    .filter((name) => !PUBLIC_TABLES.includes(name) && !CLOSED_TABLES.includes(name))
}

/** Runs the reads of a connection under the role, while the request that asks for them is a tenant's. */
export function scopeConnection(connection: DatabaseConnection, isEnabled: () => boolean) {
  const execute = connection.executeQuery.bind(connection) as DatabaseConnection['executeQuery']
  let inTransaction = false
  const becomeReader = (tenantId: string) =>
    `set local role ${READER_ROLE}; set local countersign.tenant = ${pg.escapeLiteral(tenantId)}`

  connection.executeQuery = async <R>(query: CompiledQuery, options?: Parameters<typeof execute>[1]) => {
    const tenantId = isEnabled() ? scope.getStore() : undefined
    const statement = query.sql
    if (/^\s*(begin|start transaction)\b/i.test(statement)) {
      const result = await execute<R>(query, options)
      inTransaction = true
      if (tenantId !== undefined) await execute(CompiledQuery.raw(becomeReader(tenantId)))
      return result
    }
    if (/^\s*(commit|rollback(?! to))\b/i.test(statement)) {
      inTransaction = false
      return execute<R>(query, options)
    }
    if (inTransaction || tenantId === undefined || !/^[\s(]*(select|with)\b/i.test(statement))
      return execute<R>(query, options)
    await execute(CompiledQuery.raw(`begin read only; ${becomeReader(tenantId)}`))
    try {
      const result = await execute<R>(query, options)
      await execute(CompiledQuery.raw('commit'))
      return result
    } catch (error) {
      await execute(CompiledQuery.raw('rollback'))
      throw error
    }
  }
}
