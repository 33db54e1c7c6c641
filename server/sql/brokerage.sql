-- Claims due runs for one worker until its lease ends. The time comes from the caller, so that tests control it.
-- A run counts as executing from here on: its next state comes from its order.
create or replace function claim_rh_runs(at timestamptz, lease interval, max_rows int) returns setof rh_runs language sql as $$
  update rh_runs set state = 'executing', lease_until = claim_rh_runs.at + lease, attempts = attempts + 1, updated_at = claim_rh_runs.at
  where id in (
    select id from rh_runs
    where state in ('approved', 'executing') and next_attempt_at <= claim_rh_runs.at
      and (lease_until is null or lease_until <= claim_rh_runs.at)
    order by next_attempt_at limit max_rows
    for update skip locked
  )
  returning *
$$;

-- Pending runs whose window is over, locked for the caller. Those being approved at this moment are skipped until the next sweep.
create or replace function expired_rh_runs(at timestamptz, max_rows int) returns setof rh_runs language sql as $$
  select * from rh_runs
  where state = 'pending_approval' and least(expires_at, execute_by) <= expired_rh_runs.at
  order by expires_at limit max_rows
  for update skip locked
$$;

-- A tenant's commitments in one instrument since a time: everything that was executed or may still be.
create or replace function rh_committed_micro(tenant text, instrument text, since timestamptz) returns bigint language sql stable as $$
  select coalesce(sum(notional_micro), 0)::bigint from rh_runs
  where tenant_id = rh_committed_micro.tenant and instrument_type = rh_committed_micro.instrument and created_at >= rh_committed_micro.since
    and state not in ('cancelled', 'rejected')
$$;
