-- A run is written twice: once while it is open, in a small table whose rows are deleted at its end, and once when it has
-- ended. Everything that is not final (holds, pending ledger entries, the state of its payment) is a value in the open row.

drop view if exists run_history, lane_stats;

create table open_runs (
  id text primary key,
  kind text not null check (kind in ('run', 'loop', 'topup')),
  tenant_id text,
  payer text,
  agent_id text not null,
  session_id text not null,
  loop_id text not null,
  action text not null,
  state text not null check (state in ('pending_approval', 'approved', 'executing', 'settling')),
  outcome text not null check (outcome in ('pending', 'approved', 'escalated')),
  request_hash text not null,
  request jsonb not null,
  terms jsonb not null,
  price_micro bigint not null check (price_micro >= 0),
  -- Stored before a payment is settled, so that the reconciler can finish the run.
  result jsonb,
  instance text,
  admission text,
  created_at timestamptz not null,
  deadline_at timestamptz not null,
  decided_seq bigint,
  -- What the run holds in counters: [{scope, period, amount_micro, on_success, measure}].
  holds jsonb not null default '[]',
  -- The wallet that pays, or that a top-up fills.
  wallet_id text,
  -- The ledger entries that are pending: posted when the run completes, voided when it fails. Null before admission.
  accounts text[],
  amounts bigint[],
  -- An x402 payment and its state. Null for a run paid from a wallet.
  payment jsonb,
  payment_state text check (payment_state in ('pending', 'unknown')),
  reason text,
  attempts int not null default 0,
  next_attempt_at timestamptz,
  updated_at timestamptz not null,
  check ((payment is null) = (payment_state is null)),
  check ((accounts is null) = (state in ('pending_approval', 'approved')))
) with (
  fillfactor = 70, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0,
  -- A row lives for seconds, so compressing it or moving parts of it out of line is not worth the work.
  toast_tuple_target = 8160
);

create index open_runs_of_tenant on open_runs (tenant_id, id);
-- Payments that are due for a check, so that asking for them costs the same however many runs are open.
create index open_runs_due on open_runs (next_attempt_at) where payment_state is not null and next_attempt_at is not null;

insert into open_runs
select run.id, run.kind, run.tenant_id, run.payer, run.agent_id, run.session_id, run.loop_id, run.action, run.state, run.outcome, run.request_hash, run.request,
       case when settlement.method = 'wallet' then run.terms || jsonb_build_object('settlement_id', 'stl_' || substr(run.id, 5)) else run.terms end,
       run.price_micro, run.result, run.instance, run.admission, run.created_at, run.deadline_at, run.decided_seq,
       coalesce((select jsonb_agg(jsonb_build_object('scope', hold.scope, 'period', hold.period, 'amount_micro', hold.amount_micro::text, 'on_success', hold.on_success, 'measure', hold.measure))
                 from holds hold where hold.holder = run.id and hold.state = 'open'), '[]'),
       settlement.wallet_id,
       case when run.state in ('executing', 'settling') then array(select entry.account from ledger_entries entry where entry.transaction_id = run.terms->>'pending_id' order by entry.line) end,
       case when run.state in ('executing', 'settling') then array(select entry.amount_micro from ledger_entries entry where entry.transaction_id = run.terms->>'pending_id' order by entry.line) end,
       -- The payment of a wallet was stored as a JSON null.
       case when settlement.method = 'x402' then settlement.payment end, case when settlement.method = 'x402' then settlement.state end, settlement.reason, coalesce(settlement.attempts, 0), settlement.next_attempt_at,
       coalesce(settlement.updated_at, run.created_at)
from runs run left join settlements settlement on settlement.run_id = run.id
where run.state in ('pending_approval', 'approved', 'executing', 'settling');

-- What the steps that end a run still need of its open row.
create type ended_run as (
  id text,
  kind text,
  tenant_id text,
  agent_id text,
  created_at timestamptz,
  price_micro bigint,
  holds jsonb,
  wallet_id text,
  accounts text[],
  amounts bigint[],
  payer text,
  payment jsonb,
  attempts int,
  settlement_id text,
  escrow_id text,
  grants jsonb
);

-- The nonce of a payment is kept for good: one (network, asset, payer, nonce) buys one run.
create table nonces (
  payer text not null,
  nonce text not null,
  network text not null,
  asset text not null,
  run_id text not null,
  primary key (payer, nonce, network, asset)
);
insert into nonces (payer, nonce, network, asset, run_id) select payer, nonce, network, asset, run_id from settlements where method = 'x402';

-- Settlements are written when they are final. A payment from a wallet needs none: its run tells everything.
alter table memories drop constraint memories_run_id_fkey;
delete from settlements settlement using open_runs run where run.id = settlement.run_id;
alter table settlements rename to settlement_records;
alter table settlement_records
  drop constraint settlements_run_id_fkey,
  drop constraint settlements_tenant_id_fkey,
  drop constraint settlements_network_asset_payer_nonce_key,
  drop constraint settlements_wallet_id_fkey;
drop index settlements_due, settlements_unknown, settlements_by_payer;

-- The table of ended runs is partitioned by id, which begins with the time. The rows so far become its first partition.
delete from runs where state in ('pending_approval', 'approved', 'executing', 'settling');
alter table runs rename to ended_runs_before;
alter table ended_runs_before
  drop constraint runs_tenant_id_fkey,
  drop constraint runs_loop_id_key,
  add column receipt_id text,
  -- The text of the answer without its receipt, compressed, and where the receipt belongs in it. Rows of earlier releases
  -- have the whole text in answer_body.
  add column answer bytea,
  add column answer_receipt_at int,
  add column wallet_id text;
drop index runs_unfinished, runs_by_agent, runs_by_tenant_outcome, runs_by_tenant, runs_by_session;
-- A row of usual size stays in one piece: a part that is moved out of line costs a row and an index entry of its own.
alter table ended_runs_before set (toast_tuple_target = 8160);
create table ended_runs (like ended_runs_before including defaults including constraints) partition by range (id);
alter table ended_runs add primary key (id);
-- Ascending, although lists begin with the newest: a new id then goes to the end of its index, where pages are filled, not split.
create index ended_runs_of_tenant on ended_runs (tenant_id, id) where tenant_id is not null;
-- A run that was given no session has one of its own, which has the run's id.
create index ended_runs_of_session on ended_runs (tenant_id, session_id, id) where tenant_id is not null and session_id <> 'ses_' || substr(id, 5);
-- Most runs complete, and those are found in the order of all; this index is for the others.
create index ended_runs_by_outcome on ended_runs (tenant_id, outcome, id) where tenant_id is not null and outcome <> 'completed';
create table ended_runs_default partition of ended_runs default with (toast_tuple_target = 8160);
do $$
declare
  next_month text := lpad(to_hex((extract(epoch from date_trunc('month', now(), 'UTC') + interval '1 month') * 1000)::bigint), 12, '0');
  -- Above every id so far, and not before the next month.
  bound text := greatest((select max(id) || '~' from ended_runs_before), 'run_' || left(next_month, 8) || '-' || right(next_month, 4));
begin
  execute format('alter table ended_runs attach partition ended_runs_before for values from (minvalue) to (%L)', bound);
end $$;

-- What a pre-authorisation holds is a value in its row, as with runs.
alter table preauths add column holds jsonb not null default '[]';
update preauths preauth set holds = held.holds
from (
  select hold.holder, jsonb_agg(jsonb_build_object('scope', hold.scope, 'period', hold.period, 'amount_micro', hold.amount_micro::text, 'on_success', hold.on_success, 'measure', hold.measure)) as holds
  from holds hold where hold.state = 'open' group by hold.holder
) held
where held.holder = preauth.id;
drop table holds;

-- Double entry in one row: the accounts of a transaction and their amounts, which sum to zero. Debits are positive.
-- Entries that are pending belong to an open run or a pending payout and stand in its row.
create table ledger (
  id text not null,
  tenant_id text,
  -- A voided transaction is listed and counts nowhere.
  status text not null check (status in ('posted', 'voided')),
  code text not null,
  ref text not null,
  asset text not null,
  accounts text[] not null,
  amounts bigint[] not null,
  created_at timestamptz not null,
  primary key (id),
  check (cardinality(accounts) between 2 and 4 and cardinality(amounts) = cardinality(accounts)),
  check (array_position(accounts, null) is null and array_position(amounts, null) is null and 0 <> all (amounts)),
  -- A check that is null passes, and so would an array that does not begin at 1.
  check ((amounts[1] + amounts[2] + coalesce(amounts[3], 0) + coalesce(amounts[4], 0) = 0) is true)
) partition by range (id);
create table ledger_default partition of ledger default;
do $$
declare
  next_month text := lpad(to_hex((extract(epoch from date_trunc('month', now(), 'UTC') + interval '1 month') * 1000)::bigint), 12, '0');
  bound text := greatest((select max(id) || '~' from ledger_transactions), 'ltx_' || left(next_month, 8) || '-' || right(next_month, 4));
begin
  execute format('create table ledger_before partition of ledger for values from (minvalue) to (%L)', bound);
end $$;
-- A tenant's entries are found by account and read in order; a guest's belong to nobody who could ask.
create index ledger_of_tenant on ledger (tenant_id, id) where tenant_id is not null;
create index ledger_by_account_1 on ledger (tenant_id, (accounts[1]), id) where tenant_id is not null;
create index ledger_by_account_2 on ledger (tenant_id, (accounts[2]), id) where tenant_id is not null;
create index ledger_by_account_3 on ledger (tenant_id, (accounts[3]), id) where tenant_id is not null and accounts[3] is not null;
create index ledger_by_account_4 on ledger (tenant_id, (accounts[4]), id) where tenant_id is not null and accounts[4] is not null;
create index ledger_by_ref on ledger (ref);

insert into ledger (id, tenant_id, status, code, ref, asset, accounts, amounts, created_at)
select parent.id, parent.tenant_id, 'posted', parent.code, parent.ref, min(entry.asset), array_agg(entry.account order by entry.line), array_agg(entry.amount_micro order by entry.line), parent.created_at
from ledger_transactions parent join ledger_entries entry on entry.transaction_id = parent.id and entry.layer = 'posted'
group by parent.id
union all
select parent.id, parent.tenant_id, 'voided', parent.code, parent.ref, min(entry.asset), array_agg(entry.account order by entry.line), array_agg(entry.amount_micro order by entry.line), parent.created_at
from ledger_transactions parent
join ledger_transactions resolution on resolution.pending_id = parent.id and resolution.kind = 'void'
join ledger_entries entry on entry.transaction_id = parent.id
group by parent.id;

create trigger ledger_immutable before update or delete on ledger for each row execute function ledger_refuse_change();

alter table payouts drop constraint payouts_pending_id_fkey, add column accounts text[], add column amounts bigint[];
update payouts set
  accounts = array(select entry.account from ledger_entries entry where entry.transaction_id = payouts.pending_id order by entry.line),
  amounts = array(select entry.amount_micro from ledger_entries entry where entry.transaction_id = payouts.pending_id order by entry.line);
alter table payouts alter column accounts set not null, alter column amounts set not null;

drop table ledger_entries, ledger_transactions;
drop function ledger_check_balance;

-- The time of the next snapshot is in no index, so that counting a balance rewrites no index entry.
drop index ledger_balances_due;
-- A transaction waits in the journal until the sequencer has added it to the balances.
alter table journal add column ledger_id text;
insert into journal (tenant_id, at, ledger_id)
select parent.tenant_id, parent.created_at, parent.id from ledger_queue queued join ledger parent on parent.id = queued.transaction_id order by parent.id;
drop table ledger_queue;
create index preauths_holding on preauths (id) where holds <> '[]';

-- All runs: those that are open and those that have ended.
create view runs as
select id, kind, tenant_id, payer, agent_id, session_id, loop_id, action, state, outcome, request_hash, request, terms, price_micro, result,
       answer_status, answer_body, answer, answer_receipt_at, receipt_id, instance, admission, created_at, deadline_at, finished_at, decided_seq, ended_seq, wallet_id
from ended_runs
union all
select id, kind, tenant_id, payer, agent_id, session_id, loop_id, action, state, outcome, request_hash, request, terms, price_micro, result,
       null::int, null::text, null::bytea, null::int, null::text, instance, admission, created_at, deadline_at, null::timestamptz, decided_seq, null::bigint, wallet_id
from open_runs;

-- Every settlement. One that is final has a record; one that is under way stands in its open run; a payment from a wallet is
-- told by its run alone. A reader names the run or the tenant, so that each part is found by an index.
create view settlements as
select id, run_id, tenant_id, method, state, network, asset, payer, pay_to, amount_micro, nonce, valid_before, payment, transaction, shared_transaction, block, reason,
       attempts, next_attempt_at, created_at, updated_at, wallet_id
from settlement_records
union all
select run.terms->>'settlement_id', run.id, run.tenant_id, case when run.payment is null then 'wallet' else 'x402' end, coalesce(run.payment_state, 'pending'),
       coalesce(run.payment#>>'{terms,network}', 'eip155:8453'), run.terms->>'asset', run.payer, run.terms->>'pay_to', run.price_micro,
       coalesce(run.payment#>>'{authorization,nonce}', run.terms->>'settlement_id'), coalesce((run.payment#>>'{authorization,validBefore}')::bigint, 0), run.payment, null, false, null, run.reason,
       run.attempts, run.next_attempt_at, run.created_at, run.updated_at, run.wallet_id
from open_runs run where run.accounts is not null
union all
select run.terms->>'settlement_id', run.id, run.tenant_id, 'wallet', case run.state when 'completed' then 'settled' else 'failed' end,
       'eip155:8453', run.terms->>'asset', run.payer, run.terms->>'pay_to', run.price_micro,
       run.terms->>'settlement_id', 0, null, null, false, null, run.result->>'reason', 0, null, run.created_at, run.finished_at, run.wallet_id
from ended_runs run where run.wallet_id is not null and run.kind <> 'topup';

-- Every open hold with its holder, for reports and checks.
create view open_holds as
select run.id as holder, hold.value->>'scope' as scope, hold.value->>'period' as period, (hold.value->>'amount_micro')::bigint as amount_micro
from open_runs run cross join jsonb_array_elements(run.holds) as hold(value)
union all
select preauth.id, hold.value->>'scope', hold.value->>'period', (hold.value->>'amount_micro')::bigint
from preauths preauth cross join jsonb_array_elements(preauth.holds) as hold(value)
where preauth.holds <> '[]';

-- The entries of open runs and of pending payouts.
create view pending_entries as
select run.terms->>'pending_id' as transaction_id, entry.line::int as line, entry.account, 'USDC' as asset, entry.amount_micro, run.tenant_id, 'pending' as status, run.kind as code, run.id as ref, run.created_at
from open_runs run cross join unnest(run.accounts, run.amounts) with ordinality as entry(account, amount_micro, line)
union all
select payout.pending_id, entry.line::int, entry.account, 'USDC', entry.amount_micro, payout.tenant_id, 'pending', payout.kind, payout.id, payout.created_at
from payouts payout cross join unnest(payout.accounts, payout.amounts) with ordinality as entry(account, amount_micro, line)
where payout.state = 'pending';

-- Every entry: posted, voided and pending.
create view ledger_entries as
select parent.id as transaction_id, entry.line::int as line, entry.account, parent.asset, entry.amount_micro, parent.tenant_id, parent.status, parent.code, parent.ref, parent.created_at
from ledger parent cross join unnest(parent.accounts, parent.amounts) with ordinality as entry(account, amount_micro, line)
union all
select transaction_id, line, account, asset, amount_micro, tenant_id, status, code, ref, created_at from pending_entries;

-- Below this id, rows of a table were dropped because they are kept no longer.
create table retention (
  table_name text primary key,
  dropped_below text not null
);
