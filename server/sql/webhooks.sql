-- i: {id, tenant_id, type, data, created_at}. An event nobody can subscribe to (a guest's) is not written.
create or replace function emit_event(i jsonb) returns void language sql as $$
  insert into events (id, tenant_id, type, data, created_at)
  select i->>'id', i->>'tenant_id', i->>'type', i->'data', (i->>'created_at')::timestamptz
  where i->>'tenant_id' is not null
$$;
