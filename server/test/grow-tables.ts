type Query = <Row extends object>(text: string, values?: unknown[]) => Promise<Row[]>

/** Tables that grow with runs, in this version of the schema or the one before it. */
const GROWING = [
  ...['runs', 'ended_runs', 'settlements', 'settlement_records', 'nonces', 'receipts', 'decisions', 'holds', 'limits'],
  ...[
    'ledger',
    'ledger_transactions',
    'ledger_entries',
    'ledger_balances',
    'audit_events',
    'events',
    'run_hours',
    'spend_hours',
  ],
  ...[
    'run_keys',
    'idempotency_answers',
    'memories',
    'preauths',
    'approvals',
    'alerts',
    'sessions',
    'webhook_deliveries',
  ],
]

/** Copies that are older than the rows themselves: memories of other tenants, and hours of the month before. */
const OLDER: Record<string, string> = {
  'memories.id': `overlay(id placing '0190' from 5 for 4) || '-' || copy`,
  'memories.tenant_id': `tenant_id || '-' || copy`,
  'run_hours.hour': `hour - interval '30 days'`,
}

/**
 * Copies the rows of every growing table until it has `rowCount` rows. Columns of a unique index get a suffix, so that
 * copies differ; everything else is as the service wrote it, so copies of ended runs are ended runs.
 */
export async function growTables(query: Query, rowCount: number): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  await query('set session_replication_role = replica')
  for (const table of GROWING) {
    const columns = await query<{ name: string; type: string; is_unique: boolean }>(
      `select attribute.attname as name, format_type(attribute.atttypid, null) as type,
         exists (select 1 from pg_index where indrelid = attribute.attrelid and indisunique and attribute.attnum = any(indkey)) as is_unique
       from pg_attribute attribute join pg_class class on class.oid = attribute.attrelid
       where class.oid = to_regclass($1) and class.relkind in ('r', 'p') and attnum > 0 and not attisdropped and attgenerated = ''`,
      [table],
    )
    if (columns.length === 0) continue
    const [existing] = await query<{ count: string }>(`select count(*) from ${table}`)
    const count = Number(existing!.count)
    if (count === 0) continue
    const copies = Math.ceil((rowCount - count) / count)
    const names = columns.map(({ name }) => `"${name}"`).join(', ')
    const values = columns.map(({ name, type, is_unique }) => {
      const older = OLDER[`${table}.${name}`]
      if (older) return older
      if (is_unique && type === 'text') return `"${name}" || '-' || copy`
      if (is_unique && (type === 'bigint' || type === 'integer')) return `"${name}" + copy * 1000`
      return `"${name}"`
    })
    if (copies > 0)
      await query(
        `insert into ${table} (${names}) select ${values.join(', ')} from ${table}, generate_series(1, ${copies}) copy on conflict do nothing`,
      )
    const [grown] = await query<{ count: string }>(`select count(*) from ${table}`)
    counts[table] = Number(grown!.count)
  }
  await query('set session_replication_role = origin')
  await query('vacuum analyze')
  return counts
}
