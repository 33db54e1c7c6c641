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

-- Holds what a trade may spend in the row of its run. The caller's transaction has stored the run, or locked its row.
-- needs: counters of other mandates that were full when this one was chosen.
-- input: {run_id, tenant_id, at, rules_version, holds[], needs[], mandate_id?, policy_results[]}
create or replace function admit_trade(input jsonb) returns jsonb language plpgsql as $$
declare
  held jsonb;
  results jsonb;
begin
  perform require_rules_version(input->>'tenant_id', (input->>'rules_version')::bigint);
  perform require_same_room(input->'needs', (input->>'at')::timestamptz);
  held := (hold_limits(array[input->'holds'], (input->>'at')::timestamptz))[1];
  results := correct_assessment(jsonb_build_object('policy_applied', input->'policy_results'), held->'states')->'policy_applied';
  update rh_runs set holds = held->'holds', mandate_id = input->>'mandate_id', policy_results = results where id = (input->>'run_id')::uuid;
  return jsonb_build_object('holds', held->'holds', 'policy_results', results);
end $$;

-- Ends the holds of a trade whose outcome is recorded: what was filled of it is spent, at most what is held, and the rest released.
-- input: {run_id, spent_micro?}; without `spent_micro` nothing was filled.
create or replace function settle_trade(input jsonb) returns jsonb language plpgsql as $$
declare
  run rh_runs;
begin
  select * into strict run from rh_runs where id = (input->>'run_id')::uuid for update;
  perform settle_holds(array[run.holds], array[input->>'spent_micro' is not null], array[(input->>'spent_micro')::bigint]);
  update rh_runs set holds = '[]' where id = run.id;
  return '{}';
end $$;
