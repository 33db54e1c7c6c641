-- i: {id, tenant_id, type, occurred_at, actor, subject, decision?, policy_ids?, input_hash?, data?}. Guests leave no audit trail.
create or replace function audit_event(i jsonb) returns void language sql as $$
  with added as (
    insert into audit_events (id, tenant_id, type, occurred_at, actor, subject, decision, policy_ids, input_hash, data)
    select i->>'id', i->>'tenant_id', i->>'type', (i->>'occurred_at')::timestamptz, i->>'actor', i->>'subject', i->>'decision',
           coalesce(array(select jsonb_array_elements_text(i->'policy_ids')), '{}'), i->>'input_hash', coalesce(i->'data', '{}')
    where i->>'tenant_id' is not null
    returning id
  )
  insert into audit_queue (event_id) select id from added
$$;
