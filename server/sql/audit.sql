-- input: {id, tenant_id, type, occurred_at, actor, subject, decision?, policy_ids?, input_hash?, data?}. Nothing is recorded for guests, who have no tenant.
create or replace function audit_event(input jsonb) returns void language sql as $$
  with added as (
    insert into audit_events (id, tenant_id, type, occurred_at, actor, subject, decision, policy_ids, input_hash, data)
    select input->>'id', input->>'tenant_id', input->>'type', (input->>'occurred_at')::timestamptz, input->>'actor', input->>'subject', input->>'decision',
           coalesce(array(select jsonb_array_elements_text(input->'policy_ids')), '{}'), input->>'input_hash', coalesce(input->'data', '{}')
    where input->>'tenant_id' is not null
    returning id
  )
  insert into audit_queue (event_id) select id from added
$$;
