-- Sums of ended runs by tenant, hour and lane. ended: [{tenant_id, kind, agent_id, state, created_at, price_micro, cost_usd, latency_ms}]
-- A run's cost is the recorded model cost, or else the lane's estimate in `costs`, {agent_id: micro}. Costs are rounded for
-- each run, so that totals do not depend on how they are grouped.
create or replace function sum_runs(ended jsonb, costs jsonb)
returns table (tenant_id text, hour timestamptz, agent_id text, runs bigint, completed bigint, blocked bigint, failed bigint, spend_micro bigint, cost_micro bigint)
language sql stable as $$
  select run.tenant_id, date_trunc('hour', run.created_at, 'UTC'), run.agent_id, count(*),
         count(*) filter (where run.state = 'completed'), count(*) filter (where run.state = 'blocked'), count(*) filter (where run.state = 'failed'),
         coalesce(sum(run.price_micro) filter (where run.state = 'completed'), 0)::bigint,
         coalesce(sum(round(coalesce(run.cost_usd * 1000000, (costs->>run.agent_id)::numeric, 0))) filter (where run.state = 'completed'), 0)::bigint
  from jsonb_to_recordset(ended) as run (tenant_id text, kind text, agent_id text, state text, created_at timestamptz, price_micro bigint, cost_usd numeric)
  where run.tenant_id is not null and run.kind in ('run', 'loop')
  group by 1, 2, 3
$$;

create or replace function sum_latencies(ended jsonb) returns table (tenant_id text, day date, bucket int, runs bigint) language sql stable as $$
  select run.tenant_id, (run.created_at at time zone 'UTC')::date, floor(ln(greatest(run.latency_ms, 1)) / ln(1.1))::int, count(*)
  from jsonb_to_recordset(ended) as run (tenant_id text, kind text, state text, created_at timestamptz, latency_ms float8)
  where run.tenant_id is not null and run.kind in ('run', 'loop') and run.state = 'completed' and run.latency_ms is not null
  group by 1, 2, 3
$$;

-- The runs and loops of `spend_entries` among ended runs. ended: [{tenant_id, kind, agent_id, state, created_at, price_micro, spend}]
create or replace function spend_of_runs(ended jsonb)
returns table (tenant_id text, hour timestamptz, spender text, team text, lane text, key_id text, rail text, tags jsonb, amount_micro bigint) language sql stable as $$
  select run.tenant_id, date_trunc('hour', run.created_at, 'UTC'), coalesce(run.spend->>'spender', 'unknown'), run.spend->>'team', run.agent_id, run.spend->>'key_id',
         coalesce(run.spend->>'rail', 'x402'), run.spend->'tags', run.price_micro
  from jsonb_to_recordset(ended) as run (tenant_id text, kind text, agent_id text, state text, created_at timestamptz, price_micro bigint, spend jsonb)
  where run.tenant_id is not null and run.kind in ('run', 'loop') and run.state = 'completed'
$$;

create or replace function names_digest(spender text, team text, lane text, key_id text, rail text, tags jsonb) returns bytea language sql immutable as $$
  select sha256(convert_to(jsonb_build_array(spender, team, lane, key_id, rail, tags)::text, 'UTF8'))
$$;

-- How many rows an hour of a tenant has in `spend_hours`. With more, as when each run has a tag of its own, there would be
-- a row for each run, and adding them up would take as long as adding up the runs.
create or replace function max_spend_rows() returns int language sql immutable as $$
  select 200
$$;

-- Adds ended runs to what their tenants have spent in their hours.
create or replace function fold_spend(ended jsonb) returns void language plpgsql as $$
declare
  grown jsonb;
begin
  with added as (
    select run.tenant_id, run.hour, run.spender, run.team, run.lane, run.key_id, run.rail, case when coarse.hour is null then run.tags end as tags,
           sum(run.amount_micro)::bigint as amount_micro, count(*) as runs
    from spend_of_runs(ended) run left join coarse_hours coarse on coarse.tenant_id = run.tenant_id and coarse.hour = run.hour
    where run.hour >= (select hour from spend_hours_begin) and coalesce(coarse.has_names, true)
    group by 1, 2, 3, 4, 5, 6, 7, 8
  ), folded as (
    insert into spend_hours as spent (tenant_id, hour, digest, spender, team, lane, key_id, rail, tags, amount_micro, runs)
    select tenant_id, hour, names_digest(spender, team, lane, key_id, rail, tags), spender, team, lane, key_id, rail, tags, amount_micro, runs from added
    on conflict (tenant_id, hour, digest) do update set amount_micro = spent.amount_micro + excluded.amount_micro, runs = spent.runs + excluded.runs
    returning spent.tenant_id, spent.hour, spent.xmax = 0 as is_new
  )
  select jsonb_agg(distinct jsonb_build_object('tenant_id', tenant_id, 'hour', hour)) into grown from folded where is_new;
  perform coarsen_spend(crowded.tenant_id, crowded.hour)
  from jsonb_to_recordset(grown) as crowded (tenant_id text, hour timestamptz)
  where (select count(*) from spend_hours spent where spent.tenant_id = crowded.tenant_id and spent.hour = crowded.hour) > max_spend_rows();
end $$;

-- The functions above write the first sums, perhaps long after the migration that made their tables: with them begin the sums, one to
-- two hours later, in which everything ends that functions of the release before are about to end.
update spend_hours_begin set hour = greatest(hour, date_trunc('hour', now(), 'UTC') + interval '2 hours')
where not exists (select from spend_hours) and (hour > '-infinity' or exists (select from ended_runs) or exists (select from open_runs));

-- Leaves the tags out of the sums of an hour that has too many rows, and if that is not enough, the hour.
create or replace function coarsen_spend(tenant text, full_hour timestamptz) returns void language plpgsql as $$
begin
  insert into spend_hours as spent (tenant_id, hour, digest, spender, team, lane, key_id, rail, amount_micro, runs)
  select tenant, full_hour, names_digest(tagged.spender, tagged.team, tagged.lane, tagged.key_id, tagged.rail, null), tagged.spender, tagged.team, tagged.lane, tagged.key_id, tagged.rail,
         sum(tagged.amount_micro), sum(tagged.runs)
  from spend_hours tagged where tagged.tenant_id = tenant and tagged.hour = full_hour and tagged.tags is not null group by 4, 5, 6, 7, 8
  on conflict (tenant_id, hour, digest) do update set amount_micro = spent.amount_micro + excluded.amount_micro, runs = spent.runs + excluded.runs;
  delete from spend_hours spent where spent.tenant_id = tenant and spent.hour = full_hour and spent.tags is not null;
  insert into coarse_hours (tenant_id, hour, has_names)
  select tenant, full_hour, count(*) <= max_spend_rows() from spend_hours spent where spent.tenant_id = tenant and spent.hour = full_hour
  on conflict (tenant_id, hour) do update set has_names = excluded.has_names;
  delete from spend_hours spent using coarse_hours coarse
  where spent.tenant_id = tenant and spent.hour = full_hour and coarse.tenant_id = tenant and coarse.hour = full_hour and not coarse.has_names;
end $$;

-- Adds ended runs to the sums of their tenants and lanes. Each run is added once, in the transaction that deletes its row
-- from the journal.
create or replace function fold_runs(ended jsonb, costs jsonb) returns void language sql as $$
  insert into run_hours as run_hour (tenant_id, hour, agent_id, runs, completed, blocked, failed, spend_micro, cost_micro)
  select * from sum_runs(ended, costs)
  on conflict (tenant_id, hour, agent_id) do update set runs = run_hour.runs + excluded.runs, completed = run_hour.completed + excluded.completed,
    blocked = run_hour.blocked + excluded.blocked, failed = run_hour.failed + excluded.failed,
    spend_micro = run_hour.spend_micro + excluded.spend_micro, cost_micro = run_hour.cost_micro + excluded.cost_micro;
  insert into run_latencies as latency (tenant_id, day, bucket, runs)
  select * from sum_latencies(ended)
  on conflict (tenant_id, day, bucket) do update set runs = latency.runs + excluded.runs;
  select fold_spend(ended);
  select fold_lanes(ended)
$$;

-- Ended runs that are not in the sums yet; with them every total is exact. The journal is short, so it needs no index by tenant;
-- `id > 0` lets the planner go by the primary key, past the pages that deleted rows have left.
create or replace function unfolded_runs(tenant text) returns jsonb language sql stable as $$
  select coalesce(jsonb_agg(ended || jsonb_build_object('tenant_id', tenant_id)), '[]') from journal where id > 0 and tenant_id = tenant and ended is not null
$$;

create or replace function tenant_run_hours(tenant text, since timestamptz, until timestamptz, costs jsonb)
returns table (hour timestamptz, agent_id text, runs bigint, completed bigint, blocked bigint, failed bigint, spend_micro bigint, cost_micro bigint)
language sql stable as $$
  select run_hour.hour, run_hour.agent_id, run_hour.runs, run_hour.completed, run_hour.blocked, run_hour.failed, run_hour.spend_micro, run_hour.cost_micro
  from run_hours run_hour where run_hour.tenant_id = tenant and run_hour.hour >= since and run_hour.hour < until
  union all
  select unfolded.hour, unfolded.agent_id, unfolded.runs, unfolded.completed, unfolded.blocked, unfolded.failed, unfolded.spend_micro, unfolded.cost_micro
  from sum_runs(unfolded_runs(tenant), costs) unfolded where unfolded.hour >= since and unfolded.hour < until
  union all
  -- Runs that have not ended are few at any time and are counted directly.
  select date_trunc('hour', run.created_at, 'UTC'), run.agent_id, count(*), 0, 0, 0, 0, 0
  from open_runs run
  where run.tenant_id = tenant and run.outcome in ('pending', 'approved', 'escalated') and run.kind in ('run', 'loop')
    and run.state in ('pending_approval', 'approved', 'executing', 'settling') and run.created_at >= since and run.created_at < until
  group by 1, 2
$$;

create or replace function tenant_latencies(tenant text, since timestamptz, until timestamptz)
returns table (bucket int, runs bigint) language sql stable as $$
  select bucket, sum(runs)::bigint from (
    select latency.bucket, latency.runs from run_latencies latency
    where latency.tenant_id = tenant and latency.day >= (since at time zone 'UTC')::date and latency.day < until at time zone 'UTC'
    union all
    select unfolded.bucket, unfolded.runs from sum_latencies(unfolded_runs(tenant)) unfolded
    where unfolded.day >= (since at time zone 'UTC')::date and unfolded.day < until at time zone 'UTC'
  ) latencies group by bucket
$$;

-- A tenant's use since a time: paid runs, spend, and webhook subscriptions.
create or replace function tenant_usage(tenant text, since timestamptz)
returns table (runs bigint, spend_micro bigint, webhook_subscriptions bigint) language sql stable as $$
  select coalesce(sum(run_hour.completed), 0)::bigint, coalesce(sum(run_hour.spend_micro), 0)::bigint,
         (select count(*) from webhook_subscriptions subscription where subscription.tenant_id = tenant and subscription.deleted_at is null)
  from tenant_run_hours(tenant, since, 'infinity', '{}') run_hour
$$;

-- One alert per cause. When a known cause becomes more severe, its alert takes the new severity and is unread again.
-- input: {id, event_id, tenant_id, severity, type, message, data, cause?, at}
create or replace function raise_alert(input jsonb) returns boolean language plpgsql as $$
declare
  is_new boolean;
begin
  insert into alerts as alert (id, tenant_id, severity, type, message, data, cause, created_at, updated_at)
  values (input->>'id', input->>'tenant_id', input->>'severity', input->>'type', input->>'message', coalesce(input->'data', '{}'), input->>'cause',
          (input->>'at')::timestamptz, (input->>'at')::timestamptz)
  on conflict (tenant_id, cause) where cause is not null do update
    set severity = excluded.severity, message = excluded.message, data = excluded.data, read_at = null, updated_at = excluded.updated_at
    where alert_rank(excluded.severity) > alert_rank(alert.severity)
  returning alert.id = input->>'id' into is_new;
  if is_new then
    perform emit_event(jsonb_build_object('id', input->>'event_id', 'tenant_id', input->>'tenant_id', 'type', 'alert.created', 'created_at', input->'at',
      'data', jsonb_build_object('alert_id', input->>'id', 'severity', input->>'severity', 'type', input->>'type', 'message', input->>'message', 'data', coalesce(input->'data', '{}'))));
  end if;
  return coalesce(is_new, false);
end $$;

create or replace function alert_rank(severity text) returns int language sql immutable as $$
  select array_position(array['info', 'warning', 'critical'], severity)
$$;

-- The one definition of what a tenant has spent: every amount that is counted as settled, once. A run under a pre-authorisation is a
-- run, and so is one that was paid without the token and whose payment then closed a pre-authorisation; a trade that buys no goods has a notional, which is not money spent. `at` is the time when the amount was
-- held: of the request, of the token of a pre-authorisation, or of the approval of a trade. `run_hours` and `spend_hours` have the sums of its runs and loops by the hour, because analytics read months of them.
create or replace view spend_entries as
select run.tenant_id, 'run' as door, run.kind as source, run.id, run.created_at as at, run.price_micro as amount_micro, 0::bigint as reported_micro, null::bigint as notional_micro,
       coalesce(run.spender, 'key:' || run.key_id, 'unknown') as spender, run.team, run.agent_id as lane, 'countersign' as merchant, run.key_id,
       case when run.wallet_id is null then 'x402' else 'wallet' end as rail, run.tags
from ended_runs run where run.state = 'completed' and run.kind in ('run', 'loop') and run.tenant_id is not null
union all
select preauth.tenant_id, 'preauth', 'preauth', preauth.id, coalesce(preauth.issued_at, preauth.created_at), preauth.charged_micro,
       case when preauth.settlement_status in ('reported', 'not_found') then preauth.charged_micro else 0 end, null,
       coalesce(preauth.spender, preauth.agent_id), preauth.team, null, preauth.merchant_id, preauth.asked_by, 'external', preauth.tags
from preauths preauth where preauth.status = 'closed' and preauth.close_outcome = 'settled' and not preauth.taken_by_run and preauth.paid_run_id is null
union all
select trade.tenant_id, 'trade', 'trade', trade.id::text, coalesce(trade.approved_at, trade.created_at),
       case when trade.instrument_type = 'spend' then filled.micro end, 0, case when trade.instrument_type <> 'spend' then filled.micro end,
       coalesce(trade.spender, trade.agent_id, 'key:' || trade.key_id), trade.team, null, case when trade.instrument_type = 'spend' then trade.symbol else trade.broker end, trade.key_id,
       coalesce(trade.instrument#>>'{spend,rail}', trade.broker), trade.tags
from rh_runs trade
cross join lateral (select least(trade.notional_micro, coalesce(sum(fill.gross_micro), 0)::bigint) as micro from rh_fills fill where fill.run_id = trade.id) as filled
where trade.state = 'executed';

-- The entries of a tenant in a range of time, one by one. Processes of the release before call it.
create or replace function tenant_spend(tenant text, since timestamptz, until timestamptz, first_run text, end_run text) returns setof spend_entries language sql stable as $$
  select * from spend_entries entry where entry.tenant_id = tenant and entry.door = 'run' and entry.at >= since and entry.at < until
    and entry.id >= first_run and entry.id < end_run
  union all
  select * from spend_entries entry where entry.tenant_id = tenant and entry.door = 'preauth' and entry.at >= since and entry.at < until
  union all
  select * from spend_entries entry where entry.tenant_id = tenant and entry.door = 'trade' and entry.at >= since and entry.at < until
$$;

-- The parts of a range of time whose runs are in no sums and are added up one by one: what is before the first sums, hours that
-- are in the range with a part, coarse hours, and hours that are of two days in `zone`, as where it is 5:30 ahead.
create or replace function spend_without_sums(tenant text, since timestamptz, until timestamptz, with_tags boolean, zone text) returns tstzmultirange language sql stable as $$
  select coalesce(range_agg(part), '{}') * tstzmultirange(tstzrange(since, until)) from (
    select tstzrange(null, hour) as part from spend_hours_begin
    union all
    select tstzrange(since, date_trunc('hour', since + interval '1 hour' - interval '1 microsecond', 'UTC'))
    union all
    select tstzrange(date_trunc('hour', until, 'UTC'), until)
    union all
    select tstzrange(hour, hour + interval '1 hour') from coarse_hours
    where tenant_id = tenant and hour >= since and hour < until and (with_tags or not has_names)
    union all
    select tstzrange(hour, hour + interval '1 hour')
    from generate_series(date_trunc('hour', since, 'UTC'), case when zone is null then '-infinity' else until end, interval '1 hour') as hour
    where (hour at time zone zone)::date <> ((hour + interval '1 hour' - interval '1 microsecond') at time zone zone)::date
  ) parts
$$;

-- What `spend_entries` has of a tenant in a range of time, with sums by the hour instead of runs where there are sums. `with_tags`: the tags
-- are needed. `zone`: the days of this zone are told apart. Runs are found by their ids.
create or replace function tenant_spend_sums(tenant text, since timestamptz, until timestamptz, with_tags boolean, zone text)
returns table (at timestamptz, amount_micro bigint, reported_micro bigint, count bigint, notional_micro bigint, trades bigint,
               spender text, team text, lane text, merchant text, key_id text, rail text, tags jsonb)
language plpgsql stable set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
  singly tstzmultirange := spend_without_sums(tenant, since, until, with_tags, zone);
  part tstzrange;
  first text;
begin
  foreach part in array array(select unnest(singly)) loop
    first := first_run_id(tenant, lower(part), upper(part));
    return query
    select entry.at, entry.amount_micro, 0::bigint, 1::bigint, null::bigint, 0::bigint, entry.spender, entry.team, entry.lane, entry.merchant, entry.key_id, entry.rail, entry.tags
    from spend_entries entry where entry.tenant_id = tenant and entry.door = 'run' and entry.at >= lower(part) and entry.at < upper(part)
      and entry.id >= first and entry.id < first_id('run', upper(part) + interval '1 hour');
  end loop;
  return query
  select spent.hour, spent.amount_micro, 0::bigint, spent.runs, null::bigint, 0::bigint, spent.spender, spent.team, spent.lane, 'countersign', spent.key_id, spent.rail, spent.tags
  from spend_hours spent where spent.tenant_id = tenant and spent.hour >= since and spent.hour < until and not singly @> spent.hour
  union all
  select unfolded.hour, unfolded.amount_micro, 0, 1, null, 0, unfolded.spender, unfolded.team, unfolded.lane, 'countersign', unfolded.key_id, unfolded.rail, unfolded.tags
  from spend_of_runs(unfolded_runs(tenant)) unfolded where unfolded.hour >= since and unfolded.hour < until and not singly @> unfolded.hour
  union all
  select entry.at, entry.amount_micro, entry.reported_micro, 1, null, 0, entry.spender, entry.team, entry.lane, entry.merchant, entry.key_id, entry.rail, entry.tags
  from spend_entries entry where entry.tenant_id = tenant and entry.door = 'preauth' and entry.at >= since and entry.at < until
  union all
  select entry.at, entry.amount_micro, 0, num_nonnulls(entry.amount_micro), entry.notional_micro, num_nonnulls(entry.notional_micro),
         entry.spender, entry.team, entry.lane, entry.merchant, entry.key_id, entry.rail, entry.tags
  from spend_entries entry where entry.tenant_id = tenant and entry.door = 'trade' and entry.at >= since and entry.at < until;
end $$;

-- How many runs `tenant_spend_sums` would add up one by one.
create or replace function spend_runs_singly(tenant text, since timestamptz, until timestamptz, with_tags boolean) returns bigint language plpgsql stable set plan_cache_mode = force_generic_plan as $$
declare
  singly tstzmultirange := spend_without_sums(tenant, since, until, with_tags, null);
begin
  return (select coalesce(sum(run_hour.runs), 0) from run_hours run_hour
    where run_hour.tenant_id = tenant and run_hour.hour >= lower(singly) and run_hour.hour < upper(singly) and singly @> run_hour.hour);
end $$;

-- The money a tenant has spent since a whole hour, with the sums of runs and loops instead of each of them.
create or replace function tenant_spent_micro(tenant text, since timestamptz, until timestamptz) returns bigint language plpgsql stable set plan_cache_mode = force_generic_plan as $$
begin
  return ((select coalesce(sum(run_hour.spend_micro), 0) from tenant_run_hours(tenant, since, until, '{}') run_hour)
    + (select coalesce(sum(entry.amount_micro), 0) from spend_entries entry where entry.tenant_id = tenant and entry.door = 'preauth' and entry.at >= since and entry.at < until)
    + (select coalesce(sum(entry.amount_micro), 0) from spend_entries entry where entry.tenant_id = tenant and entry.door = 'trade' and entry.at >= since and entry.at < until))::bigint;
end $$;

-- Takes the turn to measure the lanes, unless another process has it, it has failed a moment ago or it was taken too often.
create or replace function take_benchmark_turn(measured text, candidate text, at timestamptz, ends_at timestamptz, max_attempts int) returns boolean language sql as $$
  with acquired as (
    insert into benchmark_turns as turn (fingerprint, holder, attempts, until) values (measured, candidate, 1, ends_at)
    on conflict (fingerprint) do update set holder = candidate, attempts = turn.attempts + 1, until = ends_at
      where turn.attempts < max_attempts and turn.until <= at
    returning 1
  )
  select exists (select 1 from acquired)
$$;

-- How many rows of `run_history` a tenant has since a whole hour. Ended runs and loops are in the sums of their hours, because there may
-- be millions of them; the other kinds are counted one by one, from the id that the caller gives.
create or replace function tenant_run_counts(tenant text, since timestamptz, first_run text)
returns table (runs bigint, completed bigint, blocked bigint, failed bigint) language sql stable as $$
  select coalesce(sum(part.runs), 0)::bigint, coalesce(sum(part.completed), 0)::bigint, coalesce(sum(part.blocked), 0)::bigint, coalesce(sum(part.failed), 0)::bigint
  from (
    select run_hour.runs, run_hour.completed, run_hour.blocked, run_hour.failed from tenant_run_hours(tenant, since, 'infinity', '{}') run_hour
    union all
    select count(*), count(*) filter (where run.outcome = 'completed'), count(*) filter (where run.outcome = 'blocked'), count(*) filter (where run.outcome = 'failed')
    from run_history run where run.tenant_id = tenant and run.kind = 'topup' and run.created_at >= since
    union all
    select count(*), count(*) filter (where payment.outcome = 'completed'), count(*) filter (where payment.outcome = 'blocked'), count(*) filter (where payment.outcome = 'failed')
    from preauth_history payment where payment.tenant_id = tenant and payment.created_at >= since and payment.id >= first_run
  ) part
$$;

-- What was decided by the identity that had asked for it: the rows of `/api/control-tower/self-approved`.
create or replace view self_approvals as
select approval.tenant_id, 'approval' as kind, approval.id, approval.resolved_at as decided_at, approval.agent_id, approval.amount_micro from approvals approval where approval.self_approved
union all
select override.tenant_id, 'override', override.id, override.created_at, override.agent_id, override.amount_micro from overrides override where override.self_approved
union all
select trade.tenant_id, 'trade', trade.id::text, trade.approved_at, trade.agent_id, trade.notional_micro from rh_runs trade where trade.self_approved;
