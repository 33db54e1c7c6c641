-- Double entry. input: {id, tenant_id?, code, ref, created_at, asset, entries: [{account, amount_micro}]}. Debits positive, credits negative.
create or replace function ledger_write(input jsonb, kind text, layer text) returns void language sql as $$
  insert into ledger_transactions (id, tenant_id, kind, code, ref, created_at)
  values (input->>'id', input->>'tenant_id', kind, input->>'code', input->>'ref', (input->>'created_at')::timestamptz);
  insert into ledger_entries (transaction_id, line, account, layer, asset, amount_micro, tenant_id)
  select input->>'id', line, entry->>'account', layer, input->>'asset', (entry->>'amount_micro')::bigint, input->>'tenant_id'
  from jsonb_array_elements(input->'entries') with ordinality as entries(entry, line);
$$;

create or replace function ledger_pend(input jsonb) returns void language sql as $$ select ledger_write(input, 'pend', 'pending') $$;

create or replace function ledger_enqueue(id text, tenant text) returns void language sql as $$
  insert into ledger_queue (transaction_id) select id where tenant is not null
$$;

create or replace function ledger_direct(input jsonb) returns void language sql as $$
  select ledger_write(input, 'direct', 'posted');
  select ledger_enqueue(input->>'id', input->>'tenant_id')
$$;

-- Posting reverses the pending entries and writes the same ones as posted; voiding only reverses them.
create or replace function ledger_resolve(input jsonb, kind text) returns void language plpgsql as $$
declare
  pending ledger_transactions;
begin
  select * into strict pending from ledger_transactions where id = input->>'pending_id';
  insert into ledger_transactions (id, tenant_id, kind, pending_id, code, ref, created_at)
  values (input->>'id', pending.tenant_id, ledger_resolve.kind, pending.id, pending.code, pending.ref, (input->>'created_at')::timestamptz);
  insert into ledger_entries (transaction_id, line, account, layer, asset, amount_micro, tenant_id)
  select input->>'id', line, account, 'pending', asset, -amount_micro, tenant_id from ledger_entries where transaction_id = pending.id
  union all
  select input->>'id', 1000 + line, account, 'posted', asset, amount_micro, tenant_id from ledger_entries
  where transaction_id = pending.id and ledger_resolve.kind = 'post';
  if ledger_resolve.kind = 'post' then
    perform ledger_enqueue(input->>'id', pending.tenant_id);
  end if;
end $$;

create or replace function ledger_post(input jsonb) returns void language sql as $$ select ledger_resolve(input, 'post') $$;
create or replace function ledger_void(input jsonb) returns void language sql as $$ select ledger_resolve(input, 'void') $$;

-- Adds queued transactions to the balances, one process at a time. A transaction may commit after one with a later id:
-- then the later snapshots are corrected.
create or replace function count_ledger(max_rows int) returns int language plpgsql as $$
declare
  transaction_ids text[];
begin
  if not pg_try_advisory_xact_lock(hashtextextended('ledger/count', 0)) then
    return 0;
  end if;
  transaction_ids := array(select queued.transaction_id from ledger_queue queued order by queued.transaction_id limit max_rows);
  if transaction_ids = '{}' then
    return 0;
  end if;
  update ledger_snapshots snapshot set balance_micro = snapshot.balance_micro + correction.amount
  from (
    select later_snapshot.tenant_id, later_snapshot.account, later_snapshot.asset, later_snapshot.transaction_id, sum(entry.amount_micro)::bigint as amount
    from ledger_entries entry
    join ledger_snapshots later_snapshot on later_snapshot.tenant_id = entry.tenant_id and later_snapshot.account = entry.account and later_snapshot.asset = entry.asset and later_snapshot.transaction_id >= entry.transaction_id
    where entry.transaction_id = any(transaction_ids) and entry.layer = 'posted'
    group by 1, 2, 3, 4
  ) correction
  where snapshot.tenant_id = correction.tenant_id and snapshot.account = correction.account and snapshot.asset = correction.asset and snapshot.transaction_id = correction.transaction_id;
  insert into ledger_balances as balance (tenant_id, account, asset, balance_micro, entries, last_transaction, since_snapshot)
  select entry.tenant_id, entry.account, entry.asset, sum(entry.amount_micro), count(*), max(entry.transaction_id), count(*)
  from ledger_entries entry where entry.transaction_id = any(transaction_ids) and entry.layer = 'posted' and entry.tenant_id is not null
  group by 1, 2, 3
  on conflict (tenant_id, account, asset) do update set
    balance_micro = balance.balance_micro + excluded.balance_micro, entries = balance.entries + excluded.entries,
    last_transaction = greatest(balance.last_transaction, excluded.last_transaction), since_snapshot = balance.since_snapshot + excluded.since_snapshot;
  insert into ledger_snapshots as snapshot (tenant_id, account, asset, transaction_id, balance_micro)
  select tenant_id, account, asset, last_transaction, balance_micro from ledger_balances where since_snapshot >= 256
  on conflict (tenant_id, account, asset, transaction_id) do update set balance_micro = excluded.balance_micro;
  update ledger_balances set since_snapshot = 0 where since_snapshot >= 256;
  delete from ledger_queue where transaction_id = any(transaction_ids);
  return cardinality(transaction_ids);
end $$;

-- The balance of an account after one of its entries; exact even while transactions are still queued.
create or replace function ledger_balance_at(tenant text, name text, unit text, upto text, upto_line int) returns bigint language sql stable as $$
  with base as (
    select snapshot.transaction_id, snapshot.balance_micro from ledger_snapshots snapshot
    where snapshot.tenant_id = tenant and snapshot.account = name and snapshot.asset = unit and snapshot.transaction_id < upto
    order by snapshot.transaction_id desc limit 1
  )
  select coalesce((select balance_micro from base), 0)
    + coalesce((
        select sum(entry.amount_micro) from ledger_entries entry
        where entry.tenant_id = tenant and entry.account = name and entry.asset = unit and entry.layer = 'posted'
          and entry.transaction_id > coalesce((select transaction_id from base), '') and (entry.transaction_id, entry.line) <= (upto, upto_line)
      ), 0)::bigint
    + coalesce((
        select sum(entry.amount_micro) from ledger_queue queued join ledger_entries entry on entry.transaction_id = queued.transaction_id
        where queued.transaction_id <= (select transaction_id from base) and entry.tenant_id = tenant and entry.account = name and entry.asset = unit and entry.layer = 'posted'
      ), 0)::bigint
$$;

-- Every account of a tenant with its current balance.
create or replace function ledger_accounts_of(tenant text) returns table (account text, asset text, balance_micro bigint) language sql stable as $$
  select amounts.account, amounts.asset, sum(amounts.amount)::bigint from (
    select balance.account, balance.asset, balance.balance_micro as amount from ledger_balances balance where balance.tenant_id = tenant
    union all
    select entry.account, entry.asset, entry.amount_micro from ledger_queue queued
    join ledger_entries entry on entry.transaction_id = queued.transaction_id where entry.tenant_id = tenant and entry.layer = 'posted'
  ) amounts group by 1, 2 order by 1, 2
$$;

-- Takes advisory locks in the same order as `each_item`, for transactions written in TypeScript.
create or replace function lock_names(names text[]) returns void language plpgsql as $$
declare
  lock_key bigint;
begin
  for lock_key in select distinct hashtextextended(name, 0) from unnest(names) as name order by 1 loop
    perform pg_advisory_xact_lock(lock_key);
  end loop;
end $$;

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
create or replace function end_escrow(input jsonb) returns escrows language plpgsql as $$
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
  return ended;
end $$;

-- Records the intent to pay out, before any money moves. input: {id, kind, tenant_id?, wallet_id?, settlement_id?, to_address, amount_micro, method,
-- requested_by, at, next_attempt_at?, ledger, audit?}
create or replace function request_payout(input jsonb) returns void language plpgsql as $$
begin
  perform ledger_pend(input->'ledger');
  if input->>'wallet_id' is not null then
    perform move_in_wallet(input->>'wallet_id', -(input->>'amount_micro')::bigint, (input->>'amount_micro')::bigint, 0, 0);
  end if;
  insert into payouts (id, kind, tenant_id, wallet_id, settlement_id, to_address, amount_micro, method, state, pending_id, next_attempt_at, requested_by, created_at, updated_at)
  values (input->>'id', input->>'kind', input->>'tenant_id', input->>'wallet_id', input->>'settlement_id', input->>'to_address', (input->>'amount_micro')::bigint, input->>'method', 'pending',
          input#>>'{ledger,id}', (input->>'next_attempt_at')::timestamptz, input->>'requested_by', (input->>'at')::timestamptz, (input->>'at')::timestamptz);
  perform audit_event(input->'audit');
end $$;

-- Records that a payout is paid or cancelled; only the first caller does. input: {id, state: paid|cancelled, transaction?, at, ledger_id, audit?}
create or replace function end_payout(input jsonb) returns boolean language plpgsql as $$
declare
  ended payouts;
  at timestamptz := (input->>'at')::timestamptz;
  resolution jsonb;
begin
  update payouts set state = input->>'state', transaction = input->>'transaction', reason = null, next_attempt_at = null, updated_at = at
  where id = input->>'id' and state = 'pending' returning * into ended;
  if not found then
    return false;
  end if;
  resolution := jsonb_build_object('id', input->>'ledger_id', 'pending_id', ended.pending_id, 'created_at', at);
  if ended.state = 'paid' then
    perform ledger_post(resolution);
  else
    perform ledger_void(resolution);
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
create or replace function note_payout(payout text, failure_reason text, at timestamptz) returns void language sql as $$
  update payouts set reason = failure_reason, attempts = attempts + 1, updated_at = at,
    next_attempt_at = at + make_interval(secs => least(60, 2 * 2 ^ least(attempts, 10)))
  where id = payout and state = 'pending'
$$;
