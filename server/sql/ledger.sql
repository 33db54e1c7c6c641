-- Double entry. i: {id, tenant_id?, code, ref, created_at, asset, entries: [{account, amount_micro}]}. Debits positive, credits negative.
create or replace function ledger_write(i jsonb, kind text, layer text) returns void language sql as $$
  insert into ledger_transactions (id, tenant_id, kind, code, ref, created_at)
  values (i->>'id', i->>'tenant_id', kind, i->>'code', i->>'ref', (i->>'created_at')::timestamptz);
  insert into ledger_entries (transaction_id, line, account, layer, asset, amount_micro, tenant_id)
  select i->>'id', line, entry->>'account', layer, i->>'asset', (entry->>'amount_micro')::bigint, i->>'tenant_id'
  from jsonb_array_elements(i->'entries') with ordinality as e(entry, line);
$$;

create or replace function ledger_pend(i jsonb) returns void language sql as $$ select ledger_write(i, 'pend', 'pending') $$;

create or replace function ledger_enqueue(id text, tenant text) returns void language sql as $$
  insert into ledger_queue (transaction_id) select id where tenant is not null
$$;

create or replace function ledger_direct(i jsonb) returns void language sql as $$
  select ledger_write(i, 'direct', 'posted');
  select ledger_enqueue(i->>'id', i->>'tenant_id')
$$;

-- Posting takes the pending entries back and writes the same ones as posted; voiding only takes them back.
create or replace function ledger_resolve(i jsonb, kind text) returns void language plpgsql as $$
declare
  pending ledger_transactions;
begin
  select * into strict pending from ledger_transactions where id = i->>'pending_id';
  insert into ledger_transactions (id, tenant_id, kind, pending_id, code, ref, created_at)
  values (i->>'id', pending.tenant_id, ledger_resolve.kind, pending.id, pending.code, pending.ref, (i->>'created_at')::timestamptz);
  insert into ledger_entries (transaction_id, line, account, layer, asset, amount_micro, tenant_id)
  select i->>'id', line, account, 'pending', asset, -amount_micro, tenant_id from ledger_entries where transaction_id = pending.id
  union all
  select i->>'id', 1000 + line, account, 'posted', asset, amount_micro, tenant_id from ledger_entries
  where transaction_id = pending.id and ledger_resolve.kind = 'post';
  if ledger_resolve.kind = 'post' then
    perform ledger_enqueue(i->>'id', pending.tenant_id);
  end if;
end $$;

create or replace function ledger_post(i jsonb) returns void language sql as $$ select ledger_resolve(i, 'post') $$;
create or replace function ledger_void(i jsonb) returns void language sql as $$ select ledger_resolve(i, 'void') $$;

-- Counts what waits into the balances, by one process at a time. A transaction may be committed after one with a later
-- id: then the snapshots that stand behind it take it in.
create or replace function count_ledger(most int) returns int language plpgsql as $$
declare
  taken text[];
begin
  if not pg_try_advisory_xact_lock(hashtextextended('ledger/count', 0)) then
    return 0;
  end if;
  taken := array(select q.transaction_id from ledger_queue q order by q.transaction_id limit most);
  update ledger_snapshots s set balance_micro = s.balance_micro + late.amount
  from (
    select k.tenant_id, k.account, k.asset, k.transaction_id, sum(e.amount_micro)::bigint as amount
    from ledger_entries e
    join ledger_snapshots k on k.tenant_id = e.tenant_id and k.account = e.account and k.asset = e.asset and k.transaction_id >= e.transaction_id
    where e.transaction_id = any(taken) and e.layer = 'posted'
    group by 1, 2, 3, 4
  ) late
  where s.tenant_id = late.tenant_id and s.account = late.account and s.asset = late.asset and s.transaction_id = late.transaction_id;
  insert into ledger_balances as b (tenant_id, account, asset, balance_micro, entries, last_transaction, since_snapshot)
  select e.tenant_id, e.account, e.asset, sum(e.amount_micro), count(*), max(e.transaction_id), count(*)
  from ledger_entries e where e.transaction_id = any(taken) and e.layer = 'posted' and e.tenant_id is not null
  group by 1, 2, 3
  on conflict (tenant_id, account, asset) do update set
    balance_micro = b.balance_micro + excluded.balance_micro, entries = b.entries + excluded.entries,
    last_transaction = greatest(b.last_transaction, excluded.last_transaction), since_snapshot = b.since_snapshot + excluded.since_snapshot;
  insert into ledger_snapshots as s (tenant_id, account, asset, transaction_id, balance_micro)
  select tenant_id, account, asset, last_transaction, balance_micro from ledger_balances where since_snapshot >= 256
  on conflict (tenant_id, account, asset, transaction_id) do update set balance_micro = excluded.balance_micro;
  update ledger_balances set since_snapshot = 0 where since_snapshot >= 256;
  delete from ledger_queue where transaction_id = any(taken);
  return cardinality(taken);
end $$;

-- What an account of a tenant stood at after one of its entries: exact, whatever has been counted so far.
create or replace function ledger_balance_at(tenant text, name text, unit text, upto text, upto_line int) returns bigint language sql stable as $$
  with base as (
    select s.transaction_id, s.balance_micro from ledger_snapshots s
    where s.tenant_id = tenant and s.account = name and s.asset = unit and s.transaction_id < upto
    order by s.transaction_id desc limit 1
  )
  select coalesce((select balance_micro from base), 0)
    + coalesce((
        select sum(e.amount_micro) from ledger_entries e
        where e.tenant_id = tenant and e.account = name and e.asset = unit and e.layer = 'posted'
          and e.transaction_id > coalesce((select transaction_id from base), '') and (e.transaction_id, e.line) <= (upto, upto_line)
      ), 0)::bigint
    + coalesce((
        select sum(e.amount_micro) from ledger_queue q join ledger_entries e on e.transaction_id = q.transaction_id
        where q.transaction_id <= (select transaction_id from base) and e.tenant_id = tenant and e.account = name and e.asset = unit and e.layer = 'posted'
      ), 0)::bigint
$$;

-- Every account of a tenant with what it stands at now.
create or replace function ledger_accounts_of(tenant text) returns table (account text, asset text, balance_micro bigint) language sql stable as $$
  select a.account, a.asset, sum(a.amount)::bigint from (
    select b.account, b.asset, b.balance_micro as amount from ledger_balances b where b.tenant_id = tenant
    union all
    select e.account, e.asset, e.amount_micro from ledger_queue q
    join ledger_entries e on e.transaction_id = q.transaction_id where e.tenant_id = tenant and e.layer = 'posted'
  ) a group by 1, 2 order by 1, 2
$$;

-- Transactions from TypeScript take the locks that the steps of runs take, and in the order in which those do.
create or replace function lock_names(names text[]) returns void language plpgsql as $$
declare
  lock_key bigint;
begin
  for lock_key in select distinct hashtextextended(name, 0) from unnest(names) as name order by 1 loop
    perform pg_advisory_xact_lock(lock_key);
  end loop;
end $$;

-- The one place where the columns of a wallet change. Every caller has taken the lock `wallet:<id>` and writes the
-- ledger in the same transaction.
create or replace function move_in_wallet(wallet text, available bigint, reserved bigint, incoming bigint, escrowed bigint) returns void language plpgsql as $$
declare
  has bigint;
begin
  update wallets w set available_micro = w.available_micro + available, reserved_micro = w.reserved_micro + reserved,
    incoming_micro = w.incoming_micro + incoming, escrowed_micro = w.escrowed_micro + escrowed
  where w.id = wallet and w.available_micro + available >= 0;
  if not found then
    select w.available_micro into strict has from wallets w where w.id = wallet;
    perform refuse(402, 'wallet_balance', jsonb_build_object('wallet_id', wallet, 'available', has::text));
  end if;
end $$;

-- i: {id, tenant_id, wallet_id, to_wallet_id?, run_id?, amount_micro, memo?, expires_at, created_at, ledger, event, audit}
create or replace function hold_escrow(i jsonb) returns void language plpgsql as $$
begin
  perform move_in_wallet(i->>'wallet_id', -(i->>'amount_micro')::bigint, 0, 0, (i->>'amount_micro')::bigint);
  insert into escrows (id, tenant_id, wallet_id, to_wallet_id, to_tenant_id, run_id, amount_micro, state, memo, expires_at, created_at)
  values (i->>'id', i->>'tenant_id', i->>'wallet_id', i->>'to_wallet_id', (select w.tenant_id from wallets w where w.id = i->>'to_wallet_id'), i->>'run_id',
          (i->>'amount_micro')::bigint, 'held', i->>'memo', (i->>'expires_at')::timestamptz, (i->>'created_at')::timestamptz);
  perform ledger_direct(i->'ledger');
  perform emit_event(i->'event');
  perform audit_event(i->'audit');
end $$;

-- The money of an escrow goes to whoever it was held for, or back. The caller has locked both wallets.
-- Between two tenants it takes a ledger transaction for each, so that each one's books balance by themselves.
-- i: {id, from[], state, reason?, at, ledger[], events[], audits[]}
create or replace function end_escrow(i jsonb) returns escrows language plpgsql as $$
declare
  ended escrows;
begin
  update escrows set state = i->>'state', reason = i->>'reason', ended_at = (i->>'at')::timestamptz
  where id = i->>'id' and state in (select jsonb_array_elements_text(i->'from')) returning * into ended;
  if not found then
    select * into strict ended from escrows where id = i->>'id';
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
  perform ledger_direct(entry) from jsonb_array_elements(i->'ledger') as entry;
  perform emit_event(event) from jsonb_array_elements(i->'events') as event;
  perform audit_event(event) from jsonb_array_elements(i->'audits') as event;
  return ended;
end $$;

-- Writes down that money shall leave, before it does. i: {id, kind, tenant_id?, wallet_id?, settlement_id?, to_address, amount_micro, method,
-- requested_by, at, next_attempt_at?, ledger, audit?}
create or replace function request_payout(i jsonb) returns void language plpgsql as $$
begin
  perform ledger_pend(i->'ledger');
  if i->>'wallet_id' is not null then
    perform move_in_wallet(i->>'wallet_id', -(i->>'amount_micro')::bigint, (i->>'amount_micro')::bigint, 0, 0);
  end if;
  insert into payouts (id, kind, tenant_id, wallet_id, settlement_id, to_address, amount_micro, method, state, pending_id, next_attempt_at, requested_by, created_at, updated_at)
  values (i->>'id', i->>'kind', i->>'tenant_id', i->>'wallet_id', i->>'settlement_id', i->>'to_address', (i->>'amount_micro')::bigint, i->>'method', 'pending',
          i#>>'{ledger,id}', (i->>'next_attempt_at')::timestamptz, i->>'requested_by', (i->>'at')::timestamptz, (i->>'at')::timestamptz);
  perform audit_event(i->'audit');
end $$;

-- The money has left, or never will. Whoever comes first writes it. i: {id, state: paid|cancelled, transaction?, at, ledger_id, audit?}
create or replace function end_payout(i jsonb) returns boolean language plpgsql as $$
declare
  ended payouts;
  at timestamptz := (i->>'at')::timestamptz;
  resolution jsonb;
begin
  update payouts set state = i->>'state', transaction = i->>'transaction', reason = null, next_attempt_at = null, updated_at = at
  where id = i->>'id' and state = 'pending' returning * into ended;
  if not found then
    return false;
  end if;
  resolution := jsonb_build_object('id', i->>'ledger_id', 'pending_id', ended.pending_id, 'created_at', at);
  if ended.state = 'paid' then
    perform ledger_post(resolution);
  else
    perform ledger_void(resolution);
  end if;
  if ended.wallet_id is not null then
    perform move_in_wallet(ended.wallet_id, case when ended.state = 'paid' then 0 else ended.amount_micro end, -ended.amount_micro, 0, 0);
  end if;
  perform audit_event(i->'audit');
  return true;
end $$;

-- Hands due payouts to one process for the length of its lease; others skip them.
create or replace function claim_payouts(at timestamptz, lease interval, most int) returns setof payouts language sql as $$
  update payouts set next_attempt_at = at + lease
  where id in (
    select id from payouts where state = 'pending' and next_attempt_at <= at
    order by next_attempt_at limit most for update skip locked
  )
  returning *
$$;

-- It could not be paid this time: why, and when to try again: after two seconds, then with back-off up to a minute.
create or replace function note_payout(payout text, why text, at timestamptz) returns void language sql as $$
  update payouts set reason = why, attempts = attempts + 1, updated_at = at,
    next_attempt_at = at + make_interval(secs => least(60, 2 * 2 ^ least(attempts, 10)))
  where id = payout and state = 'pending'
$$;
