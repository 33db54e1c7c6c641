import { type RawBuilder, sql } from 'kysely'
import type { Db, Tx } from '../../platform/db.ts'

/** One place where the books do not agree: what was expected and what is stored. */
export type Difference = { subject: string; expected: string; found: string }

export type Check = {
  name: string
  /** The statement that is true when there are no differences. */
  holds: string
  examined: bigint
  differences: Difference[]
}

const MAX_DIFFERENCES = 100

type BookCheck = { name: string; holds: string; examined: RawBuilder<unknown>; differences: RawBuilder<unknown> }

/**
 * Recomputes the books from their entries alone and compares them with runs, settlements, receipts, wallets and limits.
 * Stored balances are not trusted; everything is summed again.
 */
const bookChecks: BookCheck[] = [
  {
    name: 'guards',
    holds: 'the triggers that make ledger, receipts and audit events immutable are enabled',
    examined: sql`select 5`,
    differences: sql`
      select guard as subject, 'enabled' as expected, coalesce('state ' || t.tgenabled::text, 'missing') as found
      from unnest(array['ledger_entries_immutable', 'ledger_transactions_immutable', 'ledger_entries_balance', 'receipts_immutable', 'audit_events_immutable']) as guard
      left join pg_trigger t on t.tgname = guard where t.tgenabled is distinct from 'O'`,
  },
  {
    name: 'transactions',
    holds: 'every transaction has entries, and they sum to zero in each asset and layer',
    examined: sql`select count(*) from ledger_transactions`,
    differences: sql`
      select transaction_id || ' in ' || asset || ' (' || layer || ')' as subject, '0' as expected, sum(amount_micro)::text as found
      from ledger_entries group by transaction_id, asset, layer having sum(amount_micro) <> 0
      union all
      select t.id, 'entries', 'none' from ledger_transactions t where not exists (select 1 from ledger_entries e where e.transaction_id = t.id)`,
  },
  {
    name: 'resolutions',
    holds: 'every posting and voiding reverses exactly the pending entries, and a posting writes them again as posted',
    examined: sql`select count(*) from ledger_transactions where pending_id is not null`,
    differences: sql`
      with expected as (
        select r.id, p.account, p.asset, 'pending' as layer, sum(-p.amount_micro) as amount
        from ledger_transactions r join ledger_entries p on p.transaction_id = r.pending_id group by 1, 2, 3
        union all
        select r.id, p.account, p.asset, 'posted', sum(p.amount_micro)
        from ledger_transactions r join ledger_entries p on p.transaction_id = r.pending_id where r.kind = 'post' group by 1, 2, 3
      ), found as (
        select r.id, e.account, e.asset, e.layer, sum(e.amount_micro) as amount
        from ledger_transactions r join ledger_entries e on e.transaction_id = r.id where r.pending_id is not null group by 1, 2, 3, 4
      )
      select coalesce(x.id, f.id) || ' on ' || coalesce(x.account, f.account) as subject, coalesce(x.amount, 0)::text as expected, coalesce(f.amount, 0)::text as found
      from expected x full join found f on f.id = x.id and f.account = x.account and f.asset = x.asset and f.layer = x.layer
      where coalesce(x.amount, 0) <> coalesce(f.amount, 0)`,
  },
  {
    name: 'runs',
    holds: 'every finished run is posted or voided once, for its price, and every open one is pending',
    examined: sql`select count(*) from runs where admission is not null`,
    differences: sql`
      select r.id as subject, case r.state when 'completed' then 'posted ' || r.price_micro when 'failed' then 'voided ' || r.price_micro else 'pending ' || r.price_micro end as expected,
        case when p.id is null then 'nothing' when z.kind = 'post' then 'posted ' when z.kind = 'void' then 'voided ' else 'pending ' end
          || coalesce((select sum(e.amount_micro)::text from ledger_entries e where e.transaction_id = p.id and e.amount_micro > 0), '') as found
      from runs r
      left join ledger_transactions p on p.id = r.terms->>'pending_id' and p.ref = r.id and p.kind = 'pend'
      left join ledger_transactions z on z.pending_id = p.id
      where r.admission is not null and (
        p.id is null
        or z.kind is distinct from (case r.state when 'completed' then 'post' when 'failed' then 'void' end)
        or r.price_micro <> (select coalesce(sum(e.amount_micro), 0) from ledger_entries e where e.transaction_id = p.id and e.amount_micro > 0))`,
  },
  {
    name: 'settlements',
    holds: 'every run has one settlement of its price, in the state that matches the state of the run',
    examined: sql`select count(*) from settlements`,
    differences: sql`
      select r.id as subject, r.state || ' ' || r.price_micro as expected, coalesce(s.state || ' ' || s.amount_micro, 'no settlement') as found
      from runs r left join settlements s on s.run_id = r.id left join payouts o on o.settlement_id = s.id
      where r.admission is not null and (s.id is null or s.amount_micro <> r.price_micro or (case r.state
        when 'completed' then s.state = 'settled' and o.id is null
        when 'failed' then s.state = 'failed' and o.id is null or s.state = 'settled' and o.state = 'pending' or s.state = 'refunded' and o.state = 'paid'
        else s.state in ('pending', 'unknown') end) is not true)`,
  },
  {
    name: 'receipts',
    holds: 'every finished run has each of its receipts exactly once, unaltered and chained',
    examined: sql`select count(*) from receipts`,
    differences: sql`
      with owed as (
        select r.id as run_id, case r.state when 'completed' then r.kind else 'failure' end as kind from runs r where r.state in ('completed', 'failed') and r.admission is not null
        union all
        select s.run_id, 'correction' from payouts o join settlements s on s.id = o.settlement_id
        union all
        select s.run_id, 'refund' from payouts o join settlements s on s.id = o.settlement_id where o.state = 'paid'
      ), issued as (
        select c.run_id, c.kind, count(*) as n from receipts c where c.kind in ('run', 'loop', 'topup', 'failure', 'correction', 'refund') group by 1, 2
      )
      select coalesce(o.run_id, i.run_id) as subject, case when o.run_id is null then 'no ' || i.kind else 'one ' || o.kind end as expected, coalesce(i.n, 0)::text as found
      from owed o full join issued i on i.run_id = o.run_id and i.kind = o.kind where o.run_id is null or i.n is distinct from 1
      union all
      select c.id, c.hash, 'sha256:' || encode(sha256(convert_to(c.body, 'UTF8')), 'hex') from receipts c
      where c.hash <> 'sha256:' || encode(sha256(convert_to(c.body, 'UTF8')), 'hex')
      union all
      select c.id, r.price_micro::text, coalesce(c.body::jsonb#>>'{settlement,amount}', 'none') from receipts c join runs r on r.id = c.run_id
      where c.kind in ('run', 'loop', 'topup', 'correction', 'refund') and c.body::jsonb#>>'{settlement,amount}' is distinct from r.price_micro::text
      union all
      select c.id, coalesce(s.transaction, 'none'), coalesce(c.body::jsonb#>>'{settlement,transaction}', 'none') from receipts c join settlements s on s.run_id = c.run_id
      where c.kind in ('run', 'loop', 'topup', 'correction', 'refund') and c.body::jsonb#>>'{settlement,transaction}' is distinct from s.transaction
      union all
      select c.id, 'the hash of an earlier receipt of ' || c.run_id, c.prev_hash from receipts c
      where c.kind in ('correction', 'refund') and not exists (select 1 from receipts e where e.run_id = c.run_id and e.hash = c.prev_hash)`,
  },
  {
    name: 'wallets',
    holds:
      'the figures of every wallet equal the sums of its entries, escrows, runs and payouts, and none is below zero',
    examined: sql`select count(*) from wallets`,
    differences: sql`
      with entries as (
        select account, layer, sum(amount_micro) as amount from ledger_entries where asset = 'USDC' and account ~ '^liabilities:(wallet|escrow):' group by 1, 2
      ), figures as (
        select w.id, 'available and reserved' as figure, (w.available_micro + w.reserved_micro)::numeric as found,
          -coalesce((select amount from entries where account = 'liabilities:wallet:' || w.id and layer = 'posted'), 0) as expected from wallets w
        union all
        select w.id, 'escrowed', w.escrowed_micro, -coalesce((select amount from entries where account = 'liabilities:escrow:' || w.id and layer = 'posted'), 0) from wallets w
        union all
        select w.id, 'escrowed, by its escrows', w.escrowed_micro, coalesce((select sum(amount_micro) from escrows where wallet_id = w.id and state in ('held', 'disputed')), 0) from wallets w
        union all
        select w.id, 'reserved', w.reserved_micro,
          coalesce((select sum(s.amount_micro) from settlements s join runs r on r.id = s.run_id
                    where s.wallet_id = w.id and s.method = 'wallet' and s.state = 'pending' and r.terms->>'escrow_id' is null), 0)
          + coalesce((select sum(amount_micro) from payouts where wallet_id = w.id and state = 'pending'), 0) from wallets w
        union all
        select w.id, 'incoming', w.incoming_micro, coalesce((select sum(amount_micro) from settlements where wallet_id = w.id and method = 'x402' and state in ('pending', 'unknown')), 0) from wallets w
        union all
        select w.id, 'below zero', least(w.available_micro, w.reserved_micro, w.incoming_micro, w.escrowed_micro, 0), 0 from wallets w
      )
      select id || ': ' || figure as subject, expected::text, found::text from figures where expected <> found`,
  },
  {
    name: 'payouts',
    holds: 'every payout is pending, posted or voided as its state says, and refunds owe what they will pay',
    examined: sql`select count(*) from payouts`,
    differences: sql`
      select o.id as subject, o.state as expected, coalesce(z.kind, 'pending') as found from payouts o
      left join ledger_transactions z on z.pending_id = o.pending_id
      where z.kind is distinct from (case o.state when 'paid' then 'post' when 'cancelled' then 'void' end)
      union all
      select 'liabilities:refunds', coalesce((select sum(amount_micro) from payouts where kind = 'refund' and state = 'pending'), 0)::text,
        (-coalesce(sum(amount_micro), 0))::text from ledger_entries where account = 'liabilities:refunds' and layer = 'posted'
      having -coalesce(sum(amount_micro), 0) <> coalesce((select sum(amount_micro) from payouts where kind = 'refund' and state = 'pending'), 0)
      union all
      select 'liabilities:transfers', '0', sum(amount_micro)::text from ledger_entries where account = 'liabilities:transfers' having sum(amount_micro) <> 0`,
  },
  {
    name: 'limits',
    holds: 'the reserved amount of every limit is the sum of its open holds',
    examined: sql`select count(*) from limits`,
    differences: sql`
      select l.scope || ' ' || l.period as subject, coalesce(h.amount, 0)::text as expected, l.reserved_micro::text as found from limits l
      left join (select scope, period, sum(amount_micro) as amount from holds where state = 'open' group by 1, 2) h on h.scope = l.scope and h.period = l.period
      where l.reserved_micro <> coalesce(h.amount, 0)`,
  },
  {
    name: 'balances',
    holds: 'every stored balance and snapshot is the sum of its entries',
    examined: sql`select (select count(*) from ledger_balances) + (select count(*) from ledger_snapshots)`,
    differences: sql`
      with counted as (
        select e.* from ledger_entries e where e.tenant_id is not null and e.layer = 'posted'
          and not exists (select 1 from ledger_queue q where q.transaction_id = e.transaction_id)
      ), sums as (
        select tenant_id, account, asset, transaction_id, sum(sum(amount_micro)) over (partition by tenant_id, account, asset order by transaction_id) as balance
        from counted group by 1, 2, 3, 4
      )
      select coalesce(b.account, s.account) as subject, coalesce(s.balance, 0)::text as expected, coalesce(b.balance_micro::text, 'none') as found
      from ledger_balances b
      full join (select tenant_id, account, asset, sum(amount_micro) as balance from counted group by 1, 2, 3) s
        on s.tenant_id = b.tenant_id and s.account = b.account and s.asset = b.asset
      where b.balance_micro is distinct from s.balance
      union all
      select k.account || ' at ' || k.transaction_id, coalesce(s.balance, 0)::text, k.balance_micro::text from ledger_snapshots k
      left join sums s on s.tenant_id = k.tenant_id and s.account = k.account and s.asset = k.asset and s.transaction_id = k.transaction_id
      where s.balance is distinct from k.balance_micro`,
  },
]

/** All checks read one snapshot, so a running service does not disturb them. */
export const checkBooks = (db: Db): Promise<Check[]> =>
  db.transaction().setIsolationLevel('repeatable read').execute(checkBooksIn)

export async function checkBooksIn(tx: Tx): Promise<Check[]> {
  // Summing ten million entries takes longer than the time limit of a request.
  await sql`set local statement_timeout = '30min'`.execute(tx)
  const checks: Check[] = []
  for (const { name, holds, examined, differences } of bookChecks) {
    const count = await sql<{ n: bigint }>`select (${examined})::bigint as n`.execute(tx)
    const { rows } = await sql<Difference>`select * from (${differences}) difference limit ${MAX_DIFFERENCES}`.execute(
      tx,
    )
    checks.push({ name, holds, examined: count.rows[0]!.n, differences: rows })
  }
  return checks
}

/** The balance of our address according to the ledger. */
export async function chainAccountMicro(db: Db): Promise<bigint> {
  const { rows } = await sql<{ total: bigint }>`
    select coalesce(sum(amount_micro), 0)::bigint as total from ledger_entries where account = 'assets:chain:usdc' and asset = 'USDC' and layer = 'posted'`.execute(
    db,
  )
  return rows[0]!.total
}
