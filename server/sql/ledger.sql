-- i: {id, tenant_id?, code, ref, created_at, asset, entries: [{account, amount_micro}]}. Debits positive, credits negative.
create or replace function ledger_write(i jsonb, kind text, layer text) returns void language sql as $$
  insert into ledger_transactions (id, tenant_id, kind, code, ref, created_at)
  values (i->>'id', i->>'tenant_id', kind, i->>'code', i->>'ref', (i->>'created_at')::timestamptz);
  insert into ledger_entries (transaction_id, line, account, layer, asset, amount_micro)
  select i->>'id', line, entry->>'account', layer, i->>'asset', (entry->>'amount_micro')::bigint
  from jsonb_array_elements(i->'entries') with ordinality as e(entry, line);
$$;

create or replace function ledger_pend(i jsonb) returns void language sql as $$ select ledger_write(i, 'pend', 'pending') $$;
create or replace function ledger_direct(i jsonb) returns void language sql as $$ select ledger_write(i, 'direct', 'posted') $$;

-- Posting takes the pending entries back and writes the same ones as posted; voiding only takes them back.
create or replace function ledger_resolve(i jsonb, kind text) returns void language plpgsql as $$
declare
  pending ledger_transactions;
begin
  select * into strict pending from ledger_transactions where id = i->>'pending_id';
  insert into ledger_transactions (id, tenant_id, kind, pending_id, code, ref, created_at)
  values (i->>'id', pending.tenant_id, ledger_resolve.kind, pending.id, pending.code, pending.ref, (i->>'created_at')::timestamptz);
  insert into ledger_entries (transaction_id, line, account, layer, asset, amount_micro)
  select i->>'id', line, account, 'pending', asset, -amount_micro from ledger_entries where transaction_id = pending.id
  union all
  select i->>'id', 1000 + line, account, 'posted', asset, amount_micro from ledger_entries
  where transaction_id = pending.id and ledger_resolve.kind = 'post';
end $$;

create or replace function ledger_post(i jsonb) returns void language sql as $$ select ledger_resolve(i, 'post') $$;
create or replace function ledger_void(i jsonb) returns void language sql as $$ select ledger_resolve(i, 'void') $$;
