-- The figures of a run that ended, for the sums of its tenant and its lane. A guest's run counts for its lane.
create or replace function journal_ended(run ended_runs, at timestamptz) returns void language sql as $$
  insert into journal (tenant_id, at, ended)
  values (run.tenant_id, at, jsonb_build_object(
    'run_id', run.id, 'kind', run.kind, 'agent_id', run.agent_id, 'state', run.state, 'created_at', run.created_at, 'price_micro', run.price_micro,
    'cost_usd', run.result#>'{execution,usage,cost_usd}', 'latency_ms', run.result#>'{execution,latency_ms}'))
$$;

-- ended: [{kind, agent_id, state, created_at, latency_ms}]. A blocked run never reached its lane.
create or replace function sum_lanes(ended jsonb)
returns table (hour timestamptz, agent_id text, bucket int, runs bigint, completed bigint, failed bigint) language sql stable as $$
  select date_trunc('hour', run.created_at, 'UTC'), run.agent_id, coalesce(floor(ln(greatest(run.latency_ms, 1)) / ln(1.1))::int, -1),
         count(*), count(*) filter (where run.state = 'completed'), count(*) filter (where run.state = 'failed')
  from jsonb_to_recordset(ended) as run (agent_id text, state text, created_at timestamptz, latency_ms float8)
  where run.state in ('completed', 'failed')
  group by 1, 2, 3
$$;

-- Adds ended runs to the sums of their lanes.
create or replace function fold_lanes(ended jsonb) returns void language sql as $$
  with added as (
    select * from sum_lanes(ended)
  ), hours as (
    insert into lane_hours as lane (hour, agent_id, bucket, runs, completed, failed)
    select hour, agent_id, bucket, runs, completed, failed from added
    on conflict (hour, agent_id, bucket) do update
      set runs = lane.runs + excluded.runs, completed = lane.completed + excluded.completed, failed = lane.failed + excluded.failed
  )
  insert into lane_window as lane (agent_id, bucket, runs, completed, failed)
  select agent_id, bucket, sum(runs), sum(completed), sum(failed) from added group by agent_id, bucket
  on conflict (agent_id, bucket) do update
    set runs = lane.runs + excluded.runs, completed = lane.completed + excluded.completed, failed = lane.failed + excluded.failed
$$;

-- Takes the hours before `before` out of the window.
create or replace function expire_lane_hours(before timestamptz) returns void language sql as $$
  with expired as (
    delete from lane_hours where hour < before returning agent_id, bucket, runs, completed, failed
  )
  update lane_window lane set runs = lane.runs - gone.runs, completed = lane.completed - gone.completed, failed = lane.failed - gone.failed
  from (select agent_id, bucket, sum(runs) as runs, sum(completed) as completed, sum(failed) as failed from expired group by 1, 2) gone
  where lane.agent_id = gone.agent_id and lane.bucket = gone.bucket
$$;

-- Whether a receipt is for work that was delivered and not taken unverified. A quotation mark inside a string of the body is
-- escaped, so what a caller wrote cannot look like the member.
create or replace function is_verified_work(kind text, body text) returns boolean language sql immutable as $$
  select kind in ('run', 'loop') and position('"accepted_unverified":true' in body) = 0
$$;

-- Adds receipts that got their place in the log to the sums of their lanes.
create or replace function fold_lane_receipts(ids text[]) returns void language sql as $$
  insert into lane_receipts as lane (agent_id, receipts, succeeded, last_seen_at)
  select agent_id, count(*), count(*) filter (where is_verified_work(kind, body)), max(issued_at)
  from receipts where id = any(ids) and agent_id is not null and kind in ('run', 'loop', 'failure') group by agent_id
  on conflict (agent_id) do update set receipts = lane.receipts + excluded.receipts, succeeded = lane.succeeded + excluded.succeeded,
    last_seen_at = greatest(lane.last_seen_at, excluded.last_seen_at)
$$;

-- Each lane's runs, success rate and latency over the last thirty days, to the hour. What is still in the journal and what is
-- running is counted directly, so counts are exact; `id > 0` reads the journal by its primary key, past the pages that deleted
-- rows have left. Latencies are the middle of their bucket and off by a twentieth at most.
create or replace function lane_stats() returns table (agent_id text, runs bigint, success_rate float8, p50_ms float8, p95_ms float8) language sql stable as $$
with counted as (
  select lane.agent_id, lane.bucket, lane.runs, lane.completed, lane.failed from lane_window lane
  union all
  select lane.agent_id, lane.bucket, lane.runs, lane.completed, lane.failed from sum_lanes((select coalesce(jsonb_agg(ended), '[]') from journal where id > 0 and ended is not null)) lane
  union all
  select run.agent_id, -1, count(*), 0, 0 from open_runs run where run.state in ('executing', 'settling') group by run.agent_id
), buckets as (
  select agent_id, bucket, sum(runs) as runs from counted where bucket >= 0 group by agent_id, bucket having sum(runs) > 0
), ranked as (
  select agent_id, bucket, sum(runs) over (partition by agent_id order by bucket) as runs_up_to, sum(runs) over (partition by agent_id) as total from buckets
), percentiles as (
  select agent_id, min(bucket) filter (where runs_up_to >= 0.5 * total) as p50, min(bucket) filter (where runs_up_to >= 0.95 * total) as p95 from ranked group by agent_id
), lanes as (
  select agent_id, sum(runs) as runs, sum(completed) as completed, sum(failed) as failed from counted group by agent_id having sum(runs) > 0
)
select lane.agent_id,
       lane.runs::bigint as runs,
       lane.completed::float8 / nullif(lane.completed + lane.failed, 0)::float8 as success_rate,
       round(1.05 * 1.1 ^ percentile.p50)::float8 as p50_ms,
       round(1.05 * 1.1 ^ percentile.p95)::float8 as p95_ms
from lanes lane left join percentiles percentile using (agent_id)
$$;

-- Trust is derived from receipts alone: receipts for delivered work that was not taken unverified against all of them.
create or replace view lane_trust as
select agent_id, sum(receipts)::bigint as receipts, sum(succeeded)::bigint as succeeded, max(last_seen_at) as last_seen_at
from (
  select agent_id, receipts, succeeded, last_seen_at from lane_receipts
  union all
  select receipt.agent_id, 1, is_verified_work(receipt.kind, receipt.body)::int, receipt.issued_at
  from journal join receipts receipt on receipt.id = journal.receipt_id
  where journal.id > 0 and receipt.agent_id is not null and receipt.kind in ('run', 'loop', 'failure')
) counted
group by agent_id;
