-- Each lane's runs, success rate and latency over the last thirty days.
create or replace view lane_stats as
select agent_id,
       count(*) as runs,
       (count(*) filter (where state = 'completed'))::float8 / nullif(count(*) filter (where state in ('completed', 'failed')), 0) as success_rate,
       percentile_disc(0.5) within group (order by (result#>>'{execution,latency_ms}')::float8) as p50_ms,
       percentile_disc(0.95) within group (order by (result#>>'{execution,latency_ms}')::float8) as p95_ms
from runs
where created_at > now() - interval '30 days' and state in ('executing', 'settling', 'completed', 'failed')
group by agent_id;

-- Trust is derived from receipts alone: receipts for delivered work against receipts for failures.
create or replace view lane_trust as
select agent_id,
       count(*) as receipts,
       count(*) filter (where kind in ('run', 'loop')) as succeeded,
       max(issued_at) as last_seen_at
from receipts
where agent_id is not null and kind in ('run', 'loop', 'failure')
group by agent_id;
