create or replace function entry_accounts(entries jsonb) returns text[] language sql immutable as $$
  select array(select entry.value->>'account' from jsonb_array_elements(entries) with ordinality as entry(value, line) order by entry.line)
$$;

create or replace function entry_amounts(entries jsonb) returns bigint[] language sql immutable as $$
  select array(select (entry.value->>'amount_micro')::bigint from jsonb_array_elements(entries) with ordinality as entry(value, line) order by entry.line)
$$;

-- Double entry. input: {id, tenant_id?, code, ref, created_at, asset, entries: [{account, amount_micro}]}. Debits positive, credits negative.
create or replace function ledger_direct(input jsonb) returns void language sql as $$
  insert into ledger (id, tenant_id, status, code, ref, asset, accounts, amounts, created_at)
  values (input->>'id', input->>'tenant_id', 'posted', input->>'code', input->>'ref', input->>'asset', entry_accounts(input->'entries'), entry_amounts(input->'entries'), (input->>'created_at')::timestamptz);
  insert into journal (tenant_id, at, ledger_id) select input->>'tenant_id', (input->>'created_at')::timestamptz, input->>'id' where input->>'tenant_id' is not null
$$;

-- A tenant's posted and voided entries of one account between two transactions, `after` excluded. Each position of an
-- account in a transaction has its own index.
create or replace function account_entries(tenant text, name text, after text, upto text)
returns table (transaction_id text, line int, asset text, amount_micro bigint, status text, code text, ref text, created_at timestamptz) language sql stable as $$
  select id, 1, asset, amounts[1], status, code, ref, created_at from ledger where tenant_id = tenant and accounts[1] = name and id > after and id <= upto
  union all
  select id, 2, asset, amounts[2], status, code, ref, created_at from ledger where tenant_id = tenant and accounts[2] = name and id > after and id <= upto
  union all
  select id, 3, asset, amounts[3], status, code, ref, created_at from ledger where tenant_id = tenant and accounts[3] = name and id > after and id <= upto
  union all
  select id, 4, asset, amounts[4], status, code, ref, created_at from ledger where tenant_id = tenant and accounts[4] = name and id > after and id <= upto
$$;

-- The newest posted and voided entries of one account, up to and including a transaction. With one plan for all calls: making
-- one for each reads the ends of the indexes, which touched more buffers than the page itself.
create or replace function account_page(tenant text, name text, upto text, max_rows int)
returns table (transaction_id text, line int, account text, asset text, amount_micro bigint, code text, ref text, created_at timestamptz, status text) language sql stable set plan_cache_mode = force_generic_plan as $$
  (select id, 1, name, asset, amounts[1], code, ref, created_at, status from ledger where tenant_id = tenant and accounts[1] = name and id <= upto order by id desc limit max_rows)
  union all
  (select id, 2, name, asset, amounts[2], code, ref, created_at, status from ledger where tenant_id = tenant and accounts[2] = name and id <= upto order by id desc limit max_rows)
  union all
  (select id, 3, name, asset, amounts[3], code, ref, created_at, status from ledger where tenant_id = tenant and accounts[3] = name and id <= upto order by id desc limit max_rows)
  union all
  (select id, 4, name, asset, amounts[4], code, ref, created_at, status from ledger where tenant_id = tenant and accounts[4] = name and id <= upto order by id desc limit max_rows)
$$;

-- Adds transactions to the balances; only the sequencer calls it. A transaction may commit after one with a later id: then the
-- later snapshots are corrected.
create or replace function count_ledger(transaction_ids text[]) returns void language plpgsql as $$
begin
  with entry as materialized (
    select * from posted_entries(transaction_ids)
  ), first as (
    select tenant_id, account, asset, min(transaction_id) as transaction_id from entry group by 1, 2, 3
  ), later as materialized (
    -- Found by the index from each account's first transaction on, whatever the planner knows: nearly always there is none, and joined
    -- by account alone all snapshots of an account would be compared with all its entries.
    select snapshot.* from first cross join lateral (
      select later_snapshot.*, later_snapshot.ctid as place from ledger_snapshots later_snapshot
      where later_snapshot.tenant_id = first.tenant_id and later_snapshot.account = first.account and later_snapshot.asset = first.asset and later_snapshot.transaction_id >= first.transaction_id
      offset 0
    ) snapshot
  ), correction as (
    select later.place, sum(entry.amount_micro)::bigint as amount
    from later join entry on entry.tenant_id = later.tenant_id and entry.account = later.account and entry.asset = later.asset and entry.transaction_id <= later.transaction_id
    group by later.place
  )
  update ledger_snapshots snapshot set balance_micro = snapshot.balance_micro + correction.amount from correction where snapshot.ctid = correction.place;
  with each_transaction as (
    select tenant_id, account, asset, transaction_id, sum(amount_micro)::bigint as amount, count(*) as entries from posted_entries(transaction_ids) group by 1, 2, 3, 4
  ), running as (
    select *, sum(amount) over earlier as added, sum(entries) over earlier as place
    from each_transaction window earlier as (partition by tenant_id, account, asset order by transaction_id)
  ), before as (
    select * from ledger_balances where (tenant_id, account, asset) in (select tenant_id, account, asset from each_transaction)
  ), counted as (
    insert into ledger_balances as balance (tenant_id, account, asset, balance_micro, entries, last_transaction, since_snapshot)
    select tenant_id, account, asset, sum(amount), sum(entries), max(transaction_id), sum(entries) from each_transaction
    group by 1, 2, 3
    on conflict (tenant_id, account, asset) do update set
      balance_micro = balance.balance_micro + excluded.balance_micro, entries = balance.entries + excluded.entries,
      last_transaction = greatest(balance.last_transaction, excluded.last_transaction),
      -- Counted from zero again after the snapshot below.
      since_snapshot = case when balance.since_snapshot >= 32 then 0 else balance.since_snapshot end + excluded.since_snapshot
    returning balance.*
  )
  insert into ledger_snapshots as snapshot (tenant_id, account, asset, transaction_id, balance_micro)
  select tenant_id, account, asset, last_transaction, balance_micro from counted where since_snapshot >= 32
  union
  -- Of many transactions every 32nd entry has one, where all that was counted before is earlier.
  select running.tenant_id, running.account, running.asset, running.transaction_id, (coalesce(before.balance_micro, 0) + running.added)::bigint
  from running left join before using (tenant_id, account, asset)
  where div(running.place, 32) > div(running.place - running.entries, 32) and running.transaction_id > coalesce(before.last_transaction, '')
  on conflict (tenant_id, account, asset, transaction_id) do update set balance_micro = excluded.balance_micro;
end $$;

create or replace function posted_entries(transaction_ids text[]) returns table (tenant_id text, account text, asset text, transaction_id text, amount_micro bigint) language sql stable as $$
  select parent.tenant_id, entry.account, parent.asset, parent.id, entry.amount_micro
  from ledger parent cross join unnest(parent.accounts, parent.amounts) as entry(account, amount_micro)
  where parent.id = any(transaction_ids) and parent.status = 'posted' and parent.tenant_id is not null
$$;

-- Transactions of a tenant that are not in its balances yet. The journal is short, so it needs no index by tenant.
create or replace function uncounted_transactions(tenant text) returns text[] language sql stable as $$
  select array(select ledger_id from journal where id > 0 and tenant_id = tenant and ledger_id is not null)
$$;

-- The balance of an account after one of its entries; exact even while transactions are still queued. With one plan, as above.
create or replace function ledger_balance_at(tenant text, name text, unit text, upto text, upto_line int) returns bigint language sql stable set plan_cache_mode = force_generic_plan as $$
  with base as (
    select snapshot.transaction_id, snapshot.balance_micro from ledger_snapshots snapshot
    where snapshot.tenant_id = tenant and snapshot.account = name and snapshot.asset = unit and snapshot.transaction_id < upto
    order by snapshot.transaction_id desc limit 1
  )
  select coalesce((select balance_micro from base), 0)
    + coalesce((
        select sum(entry.amount_micro) from account_entries(tenant, name, coalesce((select transaction_id from base), ''), upto) entry
        where entry.asset = unit and entry.status = 'posted' and (entry.transaction_id, entry.line) <= (upto, upto_line)
      ), 0)::bigint
    + coalesce((
        select sum(entry.amount_micro) from posted_entries(uncounted_transactions(tenant)) entry
        where entry.transaction_id <= (select transaction_id from base) and entry.account = name and entry.asset = unit
      ), 0)::bigint
$$;

-- The balances of several accounts, each after one of its entries: the newest transactions up to these are read once for all
-- of them. An account whose snapshot is further back is read by itself.
create or replace function ledger_balances_at(tenant text, names text[], units text[], transactions text[], lines int[]) returns table (balance_micro bigint) language sql stable set plan_cache_mode = force_generic_plan as $$
  with asked as materialized (
    select entry.*, coalesce(snapshot.transaction_id, '') as counted_to, coalesce(snapshot.balance_micro, 0) as counted_micro
    from unnest(names, units, transactions, lines) with ordinality as entry(account, asset, upto, upto_line, place)
    left join lateral (
      select base.transaction_id, base.balance_micro from ledger_snapshots base
      where base.tenant_id = tenant and base.account = entry.account and base.asset = entry.asset and base.transaction_id < entry.upto
      order by base.transaction_id desc limit 1
    ) snapshot on true
  ), near as materialized (
    select id, asset, accounts, amounts, status from ledger
    where tenant_id = tenant and id > (select min(counted_to) from asked) and id <= (select max(upto) from asked)
    order by id desc limit 100
  ), reach as materialized (
    select case when count(*) = 100 then min(id) else '' end as oldest from near
  ), uncounted as materialized (
    select account, asset, transaction_id, amount_micro from posted_entries(uncounted_transactions(tenant))
  )
  select case when asked.counted_to >= reach.oldest then asked.counted_micro
      + coalesce((
          select sum(entry.amount_micro) from near cross join unnest(near.accounts, near.amounts) with ordinality as entry(account, amount_micro, line)
          where near.status = 'posted' and near.asset = asked.asset and entry.account = asked.account
            and near.id > asked.counted_to and (near.id, entry.line) <= (asked.upto, asked.upto_line)
        ), 0)::bigint
      + coalesce((
          select sum(entry.amount_micro) from uncounted entry
          where entry.transaction_id <= asked.counted_to and entry.account = asked.account and entry.asset = asked.asset
        ), 0)::bigint
    else ledger_balance_at(tenant, asked.account, asked.asset, asked.upto, asked.upto_line) end
  from asked cross join reach order by asked.place
$$;

-- Every account of a tenant with its current balance.
create or replace function ledger_accounts_of(tenant text) returns table (account text, asset text, balance_micro bigint) language sql stable as $$
  select amounts.account, amounts.asset, sum(amounts.amount)::bigint from (
    select balance.account, balance.asset, balance.balance_micro as amount from ledger_balances balance where balance.tenant_id = tenant
    union all
    select entry.account, entry.asset, entry.amount_micro from posted_entries(uncounted_transactions(tenant)) entry
  ) amounts group by 1, 2 order by 1, 2
$$;

-- The only function that changes the columns of a wallet. Every caller has taken the lock `wallet:<id>` and writes the
-- ledger in the same transaction.
create or replace function move_in_wallet(wallet text, available bigint, reserved bigint, incoming bigint, escrowed bigint) returns void language plpgsql as $$
declare
  balance bigint;
begin
  update wallets target set available_micro = target.available_micro + available, reserved_micro = target.reserved_micro + reserved,
    incoming_micro = target.incoming_micro + incoming, escrowed_micro = target.escrowed_micro + escrowed
  where target.id = wallet and target.available_micro + available >= 0;
  if not found then
    select target.available_micro into strict balance from wallets target where target.id = wallet;
    perform refuse(402, 'wallet_balance', jsonb_build_object('wallet_id', wallet, 'available', balance::text));
  end if;
end $$;

-- input: {id, tenant_id, wallet_id, to_wallet_id?, run_id?, amount_micro, memo?, expires_at, created_at, ledger, event, audit}
create or replace function hold_escrow(input jsonb) returns void language plpgsql as $$
begin
  perform move_in_wallet(input->>'wallet_id', -(input->>'amount_micro')::bigint, 0, 0, (input->>'amount_micro')::bigint);
  insert into escrows (id, tenant_id, wallet_id, to_wallet_id, to_tenant_id, run_id, amount_micro, state, memo, expires_at, created_at)
  values (input->>'id', input->>'tenant_id', input->>'wallet_id', input->>'to_wallet_id', (select target_wallet.tenant_id from wallets target_wallet where target_wallet.id = input->>'to_wallet_id'), input->>'run_id',
          (input->>'amount_micro')::bigint, 'held', input->>'memo', (input->>'expires_at')::timestamptz, (input->>'created_at')::timestamptz);
  perform ledger_direct(input->'ledger');
  perform emit_event(input->'event');
  perform audit_event(input->'audit');
end $$;

-- Releases an escrow to the wallet it was held for, or refunds it. The caller has locked both wallets.
-- Between two tenants there is a ledger transaction for each, so that the books of each tenant balance on their own.
-- input: {id, from[], state, reason?, at, ledger[], events[], audits[]}
create or replace function end_escrow(input jsonb) returns void language plpgsql as $$
declare
  ended escrows;
begin
  update escrows set state = input->>'state', reason = input->>'reason', ended_at = (input->>'at')::timestamptz
  where id = input->>'id' and state in (select jsonb_array_elements_text(input->'from')) returning * into ended;
  if not found then
    select * into strict ended from escrows where id = input->>'id';
    perform refuse(409, 'escrow_ended', jsonb_build_object('state', ended.state));
  end if;
  if ended.state = 'released' then
    perform move_in_wallet(ended.wallet_id, 0, 0, 0, -ended.amount_micro);
    if ended.to_wallet_id is not null then
      perform move_in_wallet(ended.to_wallet_id, ended.amount_micro, 0, 0, 0);
    end if;
  else
    perform move_in_wallet(ended.wallet_id, ended.amount_micro, 0, 0, -ended.amount_micro);
  end if;
  perform ledger_direct(entry) from jsonb_array_elements(input->'ledger') as entry;
  perform emit_event(event) from jsonb_array_elements(input->'events') as event;
  perform audit_event(event) from jsonb_array_elements(input->'audits') as event;
  return;
end $$;

-- Records the intent to pay out, before any money moves. input: {id, kind, tenant_id?, wallet_id?, settlement_id?, to_address, amount_micro, method,
-- requested_by, at, next_attempt_at?, ledger, audit?}
create or replace function request_payout(input jsonb) returns void language plpgsql as $$
begin
  if input->>'wallet_id' is not null then
    perform move_in_wallet(input->>'wallet_id', -(input->>'amount_micro')::bigint, (input->>'amount_micro')::bigint, 0, 0);
  end if;
  insert into payouts (id, kind, tenant_id, wallet_id, settlement_id, to_address, amount_micro, method, state, pending_id, accounts, amounts, next_attempt_at, requested_by, created_at, updated_at)
  values (input->>'id', input->>'kind', input->>'tenant_id', input->>'wallet_id', input->>'settlement_id', input->>'to_address', (input->>'amount_micro')::bigint, input->>'method', 'pending',
          input#>>'{ledger,id}', entry_accounts(input#>'{ledger,entries}'), entry_amounts(input#>'{ledger,entries}'), (input->>'next_attempt_at')::timestamptz, input->>'requested_by', (input->>'at')::timestamptz, (input->>'at')::timestamptz);
  perform audit_event(input->'audit');
end $$;

-- Records that a payout is paid, cancelled or failed; only the first caller does. input: {id, state: paid|cancelled|failed, transaction?, at, ledger_id, audit?}
create or replace function end_payout(input jsonb) returns boolean language plpgsql as $$
declare
  ended payouts;
  at timestamptz := (input->>'at')::timestamptz;
begin
  update payouts set state = input->>'state', transaction = input->>'transaction', reason = case when input->>'state' = 'failed' then reason end, next_attempt_at = null, updated_at = at
  where id = input->>'id' and state = 'pending' returning * into ended;
  if not found then
    return false;
  end if;
  insert into ledger (id, tenant_id, status, code, ref, asset, accounts, amounts, created_at)
  values (case ended.state when 'paid' then input->>'ledger_id' else ended.pending_id end, ended.tenant_id, case ended.state when 'paid' then 'posted' else 'voided' end,
          ended.kind, ended.id, 'USDC', ended.accounts, ended.amounts, at);
  if ended.state = 'paid' and ended.tenant_id is not null then
    insert into journal (tenant_id, at, ledger_id) values (ended.tenant_id, at, input->>'ledger_id');
  end if;
  if ended.wallet_id is not null then
    perform move_in_wallet(ended.wallet_id, case when ended.state = 'paid' then 0 else ended.amount_micro end, -ended.amount_micro, 0, 0);
  end if;
  perform audit_event(input->'audit');
  return true;
end $$;

-- Claims due payouts for one process until its lease ends; other processes skip them.
create or replace function claim_payouts(at timestamptz, lease interval, max_rows int) returns setof payouts language sql as $$
  update payouts set next_attempt_at = at + lease
  where id in (
    select id from payouts where state = 'pending' and next_attempt_at <= at
    order by next_attempt_at limit max_rows for update skip locked
  )
  returning *
$$;

-- Records a failed attempt and when to try again: after two seconds, then with back-off up to a minute.
create or replace function note_payout(payout text, failure_reason text, refused_until bigint, at timestamptz) returns void language sql as $$
  update payouts set reason = failure_reason, refused_until = note_payout.refused_until, attempts = attempts + 1, updated_at = at,
    next_attempt_at = at + make_interval(secs => least(60, 2 * 2 ^ least(attempts, 10)))
  where id = payout and state = 'pending'
$$;
