-- What runs amounted to, by tenant, hour and lane. A run cost what its lane's use of models cost; where that was not written
-- down, what a run of the lane is thought to cost us: `costs`, {agent_id: micro}. Rounded run by run, so that sums of sums agree.
create or replace function sum_runs(ids text[], costs jsonb)
returns table (tenant_id text, hour timestamptz, agent_id text, runs bigint, completed bigint, blocked bigint, failed bigint, spend_micro bigint, cost_micro bigint)
language sql stable as $$
  select r.tenant_id, date_trunc('hour', r.created_at, 'UTC'), r.agent_id, count(*),
         count(*) filter (where r.state = 'completed'), count(*) filter (where r.state = 'blocked'), count(*) filter (where r.state = 'failed'),
         coalesce(sum(r.price_micro) filter (where r.state = 'completed'), 0)::bigint,
         coalesce(sum(round(coalesce((r.result#>>'{execution,usage,cost_usd}')::numeric * 1000000, (costs->>r.agent_id)::numeric, 0)))
           filter (where r.state = 'completed'), 0)::bigint
  from runs r
  where r.id = any(ids) and r.tenant_id is not null and r.kind in ('run', 'loop') and r.state in ('completed', 'blocked', 'failed')
  group by 1, 2, 3
$$;

create or replace function sum_latencies(ids text[]) returns table (tenant_id text, day date, bucket int, runs bigint) language sql stable as $$
  select r.tenant_id, (r.created_at at time zone 'UTC')::date, floor(ln(greatest((r.result#>>'{execution,latency_ms}')::float8, 1)) / ln(1.1))::int, count(*)
  from runs r
  where r.id = any(ids) and r.tenant_id is not null and r.kind in ('run', 'loop') and r.state = 'completed'
    and r.result#>>'{execution,latency_ms}' is not null
  group by 1, 2, 3
$$;

-- The runs whose end these events announce. An approval that came to nothing ends its run as blocked; one whose run had
-- already ended otherwise ends nothing.
create or replace function ended_runs(event_ids text[]) returns text[] language sql stable as $$
  select array(
    select e.data->>'run_id' from events e where e.id = any(event_ids) and e.type in ('run.completed', 'run.blocked', 'run.failed')
    union
    select r.id from events e join runs r on r.id = e.data->>'run_id' and r.state = 'blocked'
    where e.id = any(event_ids) and e.type in ('approval.rejected', 'approval.expired'))
$$;

-- Adds runs that have ended to the sums. Each run comes here once, with the event of its end.
create or replace function fold_runs(ids text[], costs jsonb) returns void language sql as $$
  insert into run_hours as h (tenant_id, hour, agent_id, runs, completed, blocked, failed, spend_micro, cost_micro)
  select * from sum_runs(ids, costs)
  on conflict (tenant_id, hour, agent_id) do update set runs = h.runs + excluded.runs, completed = h.completed + excluded.completed,
    blocked = h.blocked + excluded.blocked, failed = h.failed + excluded.failed,
    spend_micro = h.spend_micro + excluded.spend_micro, cost_micro = h.cost_micro + excluded.cost_micro;
  insert into run_latencies as l (tenant_id, day, bucket, runs)
  select * from sum_latencies(ids)
  on conflict (tenant_id, day, bucket) do update set runs = l.runs + excluded.runs
$$;

-- The runs whose end is committed and not yet in the sums: the answer is exact at every moment.
create or replace function unfolded_runs(tenant text) returns text[] language sql stable as $$
  select ended_runs(array(select e.id from events e where e.dispatched_at is null and e.tenant_id = tenant))
$$;

create or replace function tenant_run_hours(tenant text, since timestamptz, until timestamptz, costs jsonb)
returns table (hour timestamptz, agent_id text, runs bigint, completed bigint, blocked bigint, failed bigint, spend_micro bigint, cost_micro bigint)
language sql stable as $$
  select h.hour, h.agent_id, h.runs, h.completed, h.blocked, h.failed, h.spend_micro, h.cost_micro
  from run_hours h where h.tenant_id = tenant and h.hour >= since and h.hour < until
  union all
  select s.hour, s.agent_id, s.runs, s.completed, s.blocked, s.failed, s.spend_micro, s.cost_micro
  from sum_runs(unfolded_runs(tenant), costs) s where s.hour >= since and s.hour < until
  union all
  -- Those that have not ended: few at any time, so they are counted as they stand.
  select date_trunc('hour', r.created_at, 'UTC'), r.agent_id, count(*), 0, 0, 0, 0, 0
  from runs r
  where r.tenant_id = tenant and r.outcome in ('pending', 'approved', 'escalated') and r.kind in ('run', 'loop')
    and r.state in ('pending_approval', 'approved', 'executing', 'settling') and r.created_at >= since and r.created_at < until
  group by 1, 2
$$;

create or replace function tenant_latencies(tenant text, since timestamptz, until timestamptz)
returns table (bucket int, runs bigint) language sql stable as $$
  select bucket, sum(runs)::bigint from (
    select l.bucket, l.runs from run_latencies l
    where l.tenant_id = tenant and l.day >= (since at time zone 'UTC')::date and l.day < until at time zone 'UTC'
    union all
    select s.bucket, s.runs from sum_latencies(unfolded_runs(tenant)) s
    where s.day >= (since at time zone 'UTC')::date and s.day < until at time zone 'UTC'
  ) all_of_them group by bucket
$$;

-- What a tenant used since a moment: runs that were paid for, what they cost it, and its subscriptions.
create or replace function tenant_usage(tenant text, since timestamptz)
returns table (runs bigint, spend_micro bigint, webhook_subscriptions bigint) language sql stable as $$
  select coalesce(sum(h.completed), 0)::bigint, coalesce(sum(h.spend_micro), 0)::bigint,
         (select count(*) from webhook_subscriptions w where w.tenant_id = tenant and w.deleted_at is null)
  from tenant_run_hours(tenant, since, 'infinity', '{}') h
$$;

-- One alert a cause. Seen again, a cause can only grow worse: then the alert that stands is sharpened and unread again.
-- i: {id, event_id, tenant_id, severity, type, message, data, cause?, at}
create or replace function raise_alert(i jsonb) returns boolean language plpgsql as $$
declare
  fresh boolean;
begin
  insert into alerts as a (id, tenant_id, severity, type, message, data, cause, created_at, updated_at)
  values (i->>'id', i->>'tenant_id', i->>'severity', i->>'type', i->>'message', coalesce(i->'data', '{}'), i->>'cause',
          (i->>'at')::timestamptz, (i->>'at')::timestamptz)
  on conflict (tenant_id, cause) where cause is not null do update
    set severity = excluded.severity, message = excluded.message, data = excluded.data, read_at = null, updated_at = excluded.updated_at
    where alert_rank(excluded.severity) > alert_rank(a.severity)
  returning a.id = i->>'id' into fresh;
  if fresh then
    perform emit_event(jsonb_build_object('id', i->>'event_id', 'tenant_id', i->>'tenant_id', 'type', 'alert.created', 'created_at', i->'at',
      'data', jsonb_build_object('alert_id', i->>'id', 'severity', i->>'severity', 'type', i->>'type', 'message', i->>'message', 'data', coalesce(i->'data', '{}'))));
  end if;
  return coalesce(fresh, false);
end $$;

create or replace function alert_rank(severity text) returns int language sql immutable as $$
  select array_position(array['info', 'warning', 'critical'], severity)
$$;
