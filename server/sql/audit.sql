-- input: {id, tenant_id, type, occurred_at, actor, subject, decision?, policy_ids?, input_hash?, data?}. Nothing is recorded for guests, who have no tenant.
create or replace function audit_event(input jsonb) returns void language sql as $$
  insert into journal (tenant_id, at, audits)
  select input->>'tenant_id', (input->>'occurred_at')::timestamptz, jsonb_build_array(jsonb_build_object(
    'id', input->'id', 'type', input->'type', 'occurred_at', input->'occurred_at', 'actor', input->'actor', 'subject', input->'subject', 'decision', input->'decision',
    'policy_ids', input->'policy_ids', 'input_hash', input->'input_hash', 'data', input->'data'))
  where input->>'tenant_id' is not null
$$;

-- Finds the place in a tenant's chain where its times pass `at`: the event there is not older than `at`, and the one before it
-- is. Times may be out of order, which `audit_range` allows for. Every other guess is an interpolation, which is close when
-- events come evenly; the others bisect, which bounds the number of guesses when they do not.
create or replace function audit_place(tenant text, last_seq bigint, at timestamptz) returns bigint language plpgsql stable as $$
declare
  low bigint := 1;
  high bigint := last_seq;
  low_at timestamptz;
  high_at timestamptz;
  guess bigint;
  guess_at timestamptz;
  interpolate boolean := true;
begin
  select occurred_at into low_at from audit_events where tenant_id = tenant and seq = low;
  if low_at >= at then
    return low;
  end if;
  select occurred_at into high_at from audit_events where tenant_id = tenant and seq = high;
  if high_at < at then
    return high + 1;
  end if;
  -- The event at `low` is older than `at`, the one at `high` is not.
  while high - low > 1 loop
    guess := (low + high) / 2;
    if interpolate then
      guess := low + greatest(1, least(high - low - 1, ((high - low) * (extract(epoch from at - low_at) / extract(epoch from high_at - low_at)))::bigint));
    end if;
    interpolate := not interpolate;
    select occurred_at into guess_at from audit_events where tenant_id = tenant and seq = guess;
    if guess_at < at then
      low := guess;
      low_at := guess_at;
    else
      high := guess;
      high_at := guess_at;
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
