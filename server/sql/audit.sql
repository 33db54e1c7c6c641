-- input: {id, tenant_id, type, occurred_at, actor, subject, decision?, policy_ids?, input_hash?, data?}. Nothing is recorded for guests, who have no tenant.
create or replace function audit_event(input jsonb) returns void language sql as $$
  insert into journal (tenant_id, at, audits)
  select input->>'tenant_id', (input->>'occurred_at')::timestamptz, jsonb_build_array(jsonb_build_object(
    'id', input->'id', 'type', input->'type', 'occurred_at', input->'occurred_at', 'actor', input->'actor', 'subject', input->'subject', 'decision', input->'decision',
    'policy_ids', input->'policy_ids', 'input_hash', input->'input_hash', 'data', input->'data'))
  where input->>'tenant_id' is not null
$$;

-- Bisects a tenant's chain for the place where its times pass `at`: the event there is not older than `at`, and the one
-- before it is. Times may be out of order, which `audit_range` allows for.
create or replace function audit_place(tenant text, last_seq bigint, at timestamptz) returns bigint language plpgsql stable as $$
declare
  low bigint := 0;
  high bigint := last_seq + 1;
  middle bigint;
begin
  -- The event at `low` is older than `at`, the one at `high` is not.
  while high - low > 1 loop
    middle := (low + high) / 2;
    if (select occurred_at < at from audit_events where tenant_id = tenant and seq = middle) then
      low := middle;
    else
      high := middle;
    end if;
  end loop;
  return high;
end $$;

-- The part of a tenant's chain outside of which no event occurred at or after `since` and before `until`. No event is older than
-- the newest one before it by more than the chain's lateness: an event older than `since` by more than that has only events
-- older than `since` before it, and an event newer than `until` by more than that has only newer ones after it.
create or replace function audit_range(tenant text, since timestamptz, until timestamptz) returns table (first_seq bigint, last_seq bigint) language sql stable as $$
  select case when since is null then 1 else audit_place(tenant, head.seq, since - lateness) end,
         case when until is null then head.seq else audit_place(tenant, head.seq, until + lateness) - 1 end
  from audit_heads head cross join lateral (select head.lateness_ms * interval '1 millisecond' as lateness) as disorder
  where head.tenant_id = tenant
$$;
