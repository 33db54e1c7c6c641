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

/** False for a run that may have been dropped because it is kept no longer. */
const isKept = (runId: RawBuilder<unknown>) =>
  sql`(${runId} >= coalesce((select dropped_below from retention where table_name = 'ended_runs'), '') or exists (select 1 from ended_runs kept where kept.id = ${runId}))`

type BookCheck = { name: string; holds: string; examined: RawBuilder<unknown>; differences: RawBuilder<unknown> }

/**
 * Recomputes the books from their entries alone and compares them with runs, settlements, receipts, wallets and limits.
 * Stored balances are not trusted; everything is summed again.
 */
const bookChecks: BookCheck[] = [
  {
    name: 'guards',
    holds: 'the triggers that make ledger, receipts and audit events immutable are enabled',
    examined: sql`select 3`,
    differences: sql`
      select guard as subject, 'enabled' as expected, coalesce('state ' || guard_trigger.tgenabled::text, 'missing') as found
      from unnest(array['ledger_immutable', 'receipts_immutable', 'audit_events_immutable']) as guard
      left join pg_trigger guard_trigger on guard_trigger.tgname = guard and guard_trigger.tgparentid = 0 where guard_trigger.tgenabled is distinct from 'O'`,
  },
  {
    name: 'transactions',
    holds: 'the entries of every transaction, posted, voided or pending, sum to zero',
    examined: sql`select count(*) from ledger`,
    differences: sql`
      select transaction_id || ' in ' || asset || ' (' || status || ')' as subject, '0' as expected, sum(amount_micro)::text as found
      from ledger_entries group by transaction_id, asset, status having sum(amount_micro) <> 0`,
  },
  {
    name: 'runs',
    holds: 'every finished run is posted or voided once, for its price and its lane, and every open one is pending',
    examined: sql`select count(*) from runs where admission is not null`,
    differences: sql`
      with entries as (
        select ref, min(status) as status, count(distinct transaction_id) as transactions, sum(amount_micro) filter (where amount_micro > 0) as amount
        from ledger_entries where code in ('run', 'loop', 'topup') and ${isKept(sql`ref`)} group by ref
      )
      select coalesce(run.id, entries.ref) as subject, coalesce(case run.state when 'completed' then 'posted ' when 'failed' then 'voided ' else 'pending ' end || run.price_micro, 'no run') as expected,
        coalesce(entries.status || ' ' || entries.amount || case when entries.transactions > 1 then ' in ' || entries.transactions || ' transactions' else '' end, 'nothing') as found
      from (select * from runs where admission is not null) run full join entries on entries.ref = run.id
      where run.id is null or entries.ref is null or entries.transactions <> 1 or entries.amount <> run.price_micro
        or entries.status <> case run.state when 'completed' then 'posted' when 'failed' then 'voided' else 'pending' end
      union all
      select run.id, 'revenue of the lane ' || run.agent_id, entry.account from runs run join ledger_entries entry on entry.ref = run.id and entry.code = run.kind
      where run.admission is not null and run.kind <> 'topup' and entry.account like 'revenue:%' and entry.account not in ('revenue:orchestration', 'revenue:lane:' || run.agent_id)`,
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
        else settlement.state in ('pending', 'unknown') end) is not true)
      union all
      select run_id, 'one settlement', count(*) || ' settlements' from settlements group by run_id having count(*) <> 1
      union all
      select settlement.id, 'its nonce is reserved for ' || settlement.run_id, coalesce(reservation.run_id, 'nothing') from settlements settlement
      left join nonces reservation on reservation.payer = settlement.payer and reservation.nonce = settlement.nonce and reservation.network = settlement.network and reservation.asset = settlement.asset
      where settlement.method = 'x402' and reservation.run_id is distinct from settlement.run_id
      union all
      select reservation.run_id, 'one settlement for its nonce', 'none' from nonces reservation where not exists (select 1 from settlements settlement where settlement.run_id = reservation.run_id and settlement.method = 'x402')`,
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
        select receipt.run_id, receipt.kind, count(*) as copies from receipts receipt
        where receipt.kind in ('run', 'loop', 'topup', 'failure', 'correction', 'refund') and ${isKept(sql`receipt.run_id`)} group by 1, 2
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
        select account, status, sum(amount_micro) as amount from ledger_entries where asset = 'USDC' and account ~ '^liabilities:(wallet|escrow):' group by 1, 2
      ), figures as (
        select wallet.id, 'available and reserved' as figure, (wallet.available_micro + wallet.reserved_micro)::numeric as found,
          -coalesce((select amount from entries where account = 'liabilities:wallet:' || wallet.id and status = 'posted'), 0) as expected from wallets wallet
        union all
        select wallet.id, 'escrowed', wallet.escrowed_micro, -coalesce((select amount from entries where account = 'liabilities:escrow:' || wallet.id and status = 'posted'), 0) from wallets wallet
        union all
        select wallet.id, 'escrowed, by its escrows', wallet.escrowed_micro, coalesce((select sum(amount_micro) from escrows where wallet_id = wallet.id and state in ('held', 'disputed')), 0) from wallets wallet
        union all
        select wallet.id, 'reserved', wallet.reserved_micro,
          coalesce((select sum(run.price_micro) from open_runs run where run.wallet_id = wallet.id and run.kind <> 'topup' and run.terms->>'escrow_id' is null), 0)
          + coalesce((select sum(amount_micro) from payouts where wallet_id = wallet.id and state = 'pending'), 0) from wallets wallet
        union all
        select wallet.id, 'incoming', wallet.incoming_micro, coalesce((select sum(price_micro) from open_runs where wallet_id = wallet.id and kind = 'topup'), 0) from wallets wallet
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
      select payout.id as subject, payout.state || ' ' || payout.amount_micro as expected, coalesce(entries.status || ' ' || entries.amount, 'nothing') as found from payouts payout
      left join (
        select ref, min(status) as status, sum(amount_micro) filter (where amount_micro > 0) as amount from ledger_entries where code in ('withdrawal', 'refund') group by ref
      ) entries on entries.ref = payout.id
      where entries.amount is distinct from payout.amount_micro or entries.status is distinct from (case payout.state when 'paid' then 'posted' when 'cancelled' then 'voided' when 'failed' then 'voided' else 'pending' end)
      union all
      select 'liabilities:refunds', coalesce((select sum(amount_micro) from payouts where kind = 'refund' and state = 'pending'), 0)::text,
        (-coalesce(sum(amount_micro), 0))::text from ledger_entries where account = 'liabilities:refunds' and status = 'posted'
      having -coalesce(sum(amount_micro), 0) <> coalesce((select sum(amount_micro) from payouts where kind = 'refund' and state = 'pending'), 0)
      union all
      select 'liabilities:transfers', '0', sum(amount_micro)::text from ledger_entries where account = 'liabilities:transfers' and status = 'posted' having sum(amount_micro) <> 0`,
  },
  {
    name: 'limits',
    holds: 'the reserved amount of every limit is the sum of its open holds',
    examined: sql`select count(*) from limits`,
    differences: sql`
      select counter.scope || ' ' || counter.period as subject, coalesce(held.amount, 0)::text as expected, counter.reserved_micro::text as found from limits counter
      left join (select scope, period, sum(amount_micro) as amount from open_holds group by 1, 2) held on held.scope = counter.scope and held.period = counter.period
      where counter.reserved_micro <> coalesce(held.amount, 0)`,
  },
  {
    name: 'balances',
    holds: 'every stored balance and snapshot is the sum of its entries',
    examined: sql`select (select count(*) from ledger_balances) + (select count(*) from ledger_snapshots)`,
    differences: sql`
      with counted as (
        select entry.* from ledger_entries entry where entry.tenant_id is not null and entry.status = 'posted'
          and not exists (select 1 from journal where journal.ledger_id = entry.transaction_id)
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
    // Materialized, because a plan made for the first few rows would look up each run in a view instead of joining all.
    const { rows } = await sql<Difference>`
      with difference as materialized (${differences}) select * from difference limit ${MAX_DIFFERENCES}`.execute(tx)
    checks.push({ name, holds, examined: count.rows[0]!.n, differences: rows })
  }
  return checks
}

/** The balance of our address according to the ledger. */
export async function chainAccountMicro(db: Db): Promise<bigint> {
  const { rows } = await sql<{ total: bigint }>`
    select coalesce(sum(amount_micro), 0)::bigint as total from ledger_entries where account = 'assets:chain:usdc' and asset = 'USDC' and status = 'posted'`.execute(
    db,
  )
  return rows[0]!.total
}
