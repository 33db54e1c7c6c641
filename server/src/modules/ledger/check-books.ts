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
      select guard as subject, 'enabled' as expected, coalesce('state ' || guard_trigger.tgenabled::text, 'missing') as found
      from unnest(array['ledger_entries_immutable', 'ledger_transactions_immutable', 'ledger_entries_balance', 'receipts_immutable', 'audit_events_immutable']) as guard
      left join pg_trigger guard_trigger on guard_trigger.tgname = guard where guard_trigger.tgenabled is distinct from 'O'`,
  },
  {
    name: 'transactions',
    holds: 'every transaction has entries, and they sum to zero in each asset and layer',
    examined: sql`select count(*) from ledger_transactions`,
    differences: sql`
      select transaction_id || ' in ' || asset || ' (' || layer || ')' as subject, '0' as expected, sum(amount_micro)::text as found
      from ledger_entries group by transaction_id, asset, layer having sum(amount_micro) <> 0
      union all
      select ledger_transaction.id, 'entries', 'none' from ledger_transactions ledger_transaction where not exists (select 1 from ledger_entries entry where entry.transaction_id = ledger_transaction.id)`,
  },
  {
    name: 'resolutions',
    holds: 'every posting and voiding reverses exactly the pending entries, and a posting writes them again as posted',
    examined: sql`select count(*) from ledger_transactions where pending_id is not null`,
    differences: sql`
      with expected as (
        select resolution.id, pending_entry.account, pending_entry.asset, 'pending' as layer, sum(-pending_entry.amount_micro) as amount
        from ledger_transactions resolution join ledger_entries pending_entry on pending_entry.transaction_id = resolution.pending_id group by 1, 2, 3
        union all
        select resolution.id, pending_entry.account, pending_entry.asset, 'posted', sum(pending_entry.amount_micro)
        from ledger_transactions resolution join ledger_entries pending_entry on pending_entry.transaction_id = resolution.pending_id where resolution.kind = 'post' group by 1, 2, 3
      ), found as (
        select resolution.id, entry.account, entry.asset, entry.layer, sum(entry.amount_micro) as amount
        from ledger_transactions resolution join ledger_entries entry on entry.transaction_id = resolution.id where resolution.pending_id is not null group by 1, 2, 3, 4
      )
      select coalesce(expected.id, found.id) || ' on ' || coalesce(expected.account, found.account) as subject, coalesce(expected.amount, 0)::text as expected, coalesce(found.amount, 0)::text as found
      from expected full join found on found.id = expected.id and found.account = expected.account and found.asset = expected.asset and found.layer = expected.layer
      where coalesce(expected.amount, 0) <> coalesce(found.amount, 0)`,
  },
  {
    name: 'runs',
    holds: 'every finished run is posted or voided once, for its price, and every open one is pending',
    examined: sql`select count(*) from runs where admission is not null`,
    differences: sql`
      select run.id as subject, case run.state when 'completed' then 'posted ' || run.price_micro when 'failed' then 'voided ' || run.price_micro else 'pending ' || run.price_micro end as expected,
        case when pending.id is null then 'nothing' when resolution.kind = 'post' then 'posted ' when resolution.kind = 'void' then 'voided ' else 'pending ' end
          || coalesce((select sum(entry.amount_micro)::text from ledger_entries entry where entry.transaction_id = pending.id and entry.amount_micro > 0), '') as found
      from runs run
      left join ledger_transactions pending on pending.id = run.terms->>'pending_id' and pending.ref = run.id and pending.kind = 'pend'
      left join ledger_transactions resolution on resolution.pending_id = pending.id
      where run.admission is not null and (
        pending.id is null
        or resolution.kind is distinct from (case run.state when 'completed' then 'post' when 'failed' then 'void' end)
        or run.price_micro <> (select coalesce(sum(entry.amount_micro), 0) from ledger_entries entry where entry.transaction_id = pending.id and entry.amount_micro > 0))`,
  },
  {
    name: 'settlements',
    holds: 'every run has one settlement of its price, in the state that matches the state of the run',
    examined: sql`select count(*) from settlements`,
    differences: sql`
      select run.id as subject, run.state || ' ' || run.price_micro as expected, coalesce(settlement.state || ' ' || settlement.amount_micro, 'no settlement') as found
      from runs run left join settlements settlement on settlement.run_id = run.id left join payouts payout on payout.settlement_id = settlement.id
      where run.admission is not null and (settlement.id is null or settlement.amount_micro <> run.price_micro or (case run.state
        when 'completed' then settlement.state = 'settled' and payout.id is null
        when 'failed' then settlement.state = 'failed' and payout.id is null or settlement.state = 'settled' and payout.state = 'pending' or settlement.state = 'refunded' and payout.state = 'paid'
        else settlement.state in ('pending', 'unknown') end) is not true)`,
  },
  {
    name: 'receipts',
    holds: 'every finished run has each of its receipts exactly once, unaltered and chained',
    examined: sql`select count(*) from receipts`,
    differences: sql`
      with owed as (
        select run.id as run_id, case run.state when 'completed' then run.kind else 'failure' end as kind from runs run where run.state in ('completed', 'failed') and run.admission is not null
        union all
        select settlement.run_id, 'correction' from payouts payout join settlements settlement on settlement.id = payout.settlement_id
        union all
        select settlement.run_id, 'refund' from payouts payout join settlements settlement on settlement.id = payout.settlement_id where payout.state = 'paid'
      ), issued as (
        select receipt.run_id, receipt.kind, count(*) as copies from receipts receipt where receipt.kind in ('run', 'loop', 'topup', 'failure', 'correction', 'refund') group by 1, 2
      )
      select coalesce(owed.run_id, issued.run_id) as subject, case when owed.run_id is null then 'no ' || issued.kind else 'one ' || owed.kind end as expected, coalesce(issued.copies, 0)::text as found
      from owed full join issued on issued.run_id = owed.run_id and issued.kind = owed.kind where owed.run_id is null or issued.copies is distinct from 1
      union all
      select receipt.id, receipt.hash, 'sha256:' || encode(sha256(convert_to(receipt.body, 'UTF8')), 'hex') from receipts receipt
      where receipt.hash <> 'sha256:' || encode(sha256(convert_to(receipt.body, 'UTF8')), 'hex')
      union all
      select receipt.id, run.price_micro::text, coalesce(receipt.body::jsonb#>>'{settlement,amount}', 'none') from receipts receipt join runs run on run.id = receipt.run_id
      where receipt.kind in ('run', 'loop', 'topup', 'correction', 'refund') and receipt.body::jsonb#>>'{settlement,amount}' is distinct from run.price_micro::text
      union all
      select receipt.id, coalesce(settlement.transaction, 'none'), coalesce(receipt.body::jsonb#>>'{settlement,transaction}', 'none') from receipts receipt join settlements settlement on settlement.run_id = receipt.run_id
      where receipt.kind in ('run', 'loop', 'topup', 'correction', 'refund') and receipt.body::jsonb#>>'{settlement,transaction}' is distinct from settlement.transaction
      union all
      select receipt.id, 'the hash of an earlier receipt of ' || receipt.run_id, receipt.prev_hash from receipts receipt
      where receipt.kind in ('correction', 'refund') and not exists (select 1 from receipts earlier_receipt where earlier_receipt.run_id = receipt.run_id and earlier_receipt.hash = receipt.prev_hash)`,
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
        select wallet.id, 'available and reserved' as figure, (wallet.available_micro + wallet.reserved_micro)::numeric as found,
          -coalesce((select amount from entries where account = 'liabilities:wallet:' || wallet.id and layer = 'posted'), 0) as expected from wallets wallet
        union all
        select wallet.id, 'escrowed', wallet.escrowed_micro, -coalesce((select amount from entries where account = 'liabilities:escrow:' || wallet.id and layer = 'posted'), 0) from wallets wallet
        union all
        select wallet.id, 'escrowed, by its escrows', wallet.escrowed_micro, coalesce((select sum(amount_micro) from escrows where wallet_id = wallet.id and state in ('held', 'disputed')), 0) from wallets wallet
        union all
        select wallet.id, 'reserved', wallet.reserved_micro,
          coalesce((select sum(settlement.amount_micro) from settlements settlement join runs run on run.id = settlement.run_id
                    where settlement.wallet_id = wallet.id and settlement.method = 'wallet' and settlement.state = 'pending' and run.terms->>'escrow_id' is null), 0)
          + coalesce((select sum(amount_micro) from payouts where wallet_id = wallet.id and state = 'pending'), 0) from wallets wallet
        union all
        select wallet.id, 'incoming', wallet.incoming_micro, coalesce((select sum(amount_micro) from settlements where wallet_id = wallet.id and method = 'x402' and state in ('pending', 'unknown')), 0) from wallets wallet
        union all
        select wallet.id, 'below zero', least(wallet.available_micro, wallet.reserved_micro, wallet.incoming_micro, wallet.escrowed_micro, 0), 0 from wallets wallet
      )
      select id || ': ' || figure as subject, expected::text, found::text from figures where expected <> found`,
  },
  {
    name: 'payouts',
    holds: 'every payout is pending, posted or voided as its state says, and refunds owe what they will pay',
    examined: sql`select count(*) from payouts`,
    differences: sql`
      select payout.id as subject, payout.state as expected, coalesce(resolution.kind, 'pending') as found from payouts payout
      left join ledger_transactions resolution on resolution.pending_id = payout.pending_id
      where resolution.kind is distinct from (case payout.state when 'paid' then 'post' when 'cancelled' then 'void' end)
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
      select counter.scope || ' ' || counter.period as subject, coalesce(open_holds.amount, 0)::text as expected, counter.reserved_micro::text as found from limits counter
      left join (select scope, period, sum(amount_micro) as amount from holds where state = 'open' group by 1, 2) open_holds on open_holds.scope = counter.scope and open_holds.period = counter.period
      where counter.reserved_micro <> coalesce(open_holds.amount, 0)`,
  },
  {
    name: 'balances',
    holds: 'every stored balance and snapshot is the sum of its entries',
    examined: sql`select (select count(*) from ledger_balances) + (select count(*) from ledger_snapshots)`,
    differences: sql`
      with counted as (
        select entry.* from ledger_entries entry where entry.tenant_id is not null and entry.layer = 'posted'
          and not exists (select 1 from ledger_queue queued where queued.transaction_id = entry.transaction_id)
      ), sums as (
        select tenant_id, account, asset, transaction_id, sum(sum(amount_micro)) over (partition by tenant_id, account, asset order by transaction_id) as balance
        from counted group by 1, 2, 3, 4
      )
      select coalesce(stored.account, computed.account) as subject, coalesce(computed.balance, 0)::text as expected, coalesce(stored.balance_micro::text, 'none') as found
      from ledger_balances stored
      full join (select tenant_id, account, asset, sum(amount_micro) as balance from counted group by 1, 2, 3) computed
        on computed.tenant_id = stored.tenant_id and computed.account = stored.account and computed.asset = stored.asset
      where stored.balance_micro is distinct from computed.balance
      union all
      select snapshot.account || ' at ' || snapshot.transaction_id, coalesce(sums.balance, 0)::text, snapshot.balance_micro::text from ledger_snapshots snapshot
      left join sums on sums.tenant_id = snapshot.tenant_id and sums.account = snapshot.account and sums.asset = snapshot.asset and sums.transaction_id = snapshot.transaction_id
      where sums.balance is distinct from snapshot.balance_micro`,
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
