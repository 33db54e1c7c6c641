-- One row a step for everything that is numbered and summed after commit: webhook events, audit events, the receipt's place
-- in the log, and the figures of a run that ended. The sequencer takes a batch of rows, writes each of them in its final
-- place and deletes the rows in the same transaction, so a crash between the two is not possible.
create table journal (
  id bigint generated always as identity primary key,
  -- Null for a guest.
  tenant_id text,
  at timestamptz not null,
  -- [{id, type, data, only_for?}]; `only_for` is the one subscription that a test event is for. A guest has none.
  events jsonb,
  -- [{id, type, occurred_at, actor, subject, decision?, policy_ids?, input_hash?, data?}]. A guest has none.
  audits jsonb,
  -- A receipt that waits for its place in the log.
  receipt_id text,
  -- {run_id, kind, agent_id, state, created_at, price_micro, cost_usd, latency_ms, mode?} of a run that ended.
  ended jsonb
-- A row lives for less than a second, so compressing it or moving parts of it out of line is not worth the work.
) with (toast_tuple_target = 8160);

-- The views that scanned all runs and all receipts; sql/catalog.sql creates them again over the sums below.
drop view if exists lane_stats, lane_trust;

-- Each lane's runs by the hour they were created in, and the sum of these hours over the last thirty days. `bucket` is the
-- latency: bucket b holds 1.1^b ms and up, as in run_latencies; -1 is a run without a latency. Guests' runs are included.
create table lane_hours (
  hour timestamptz not null,
  agent_id text not null,
  bucket int not null,
  runs bigint not null,
  completed bigint not null,
  failed bigint not null,
  primary key (hour, agent_id, bucket)
) with (fillfactor = 70);
create table lane_window (
  agent_id text not null,
  bucket int not null,
  runs bigint not null,
  completed bigint not null,
  failed bigint not null,
  primary key (agent_id, bucket)
) with (fillfactor = 70);
insert into lane_hours (hour, agent_id, bucket, runs, completed, failed)
select date_trunc('hour', created_at, 'UTC'), agent_id,
       coalesce(floor(ln(greatest((result#>>'{execution,latency_ms}')::float8, 1)) / ln(1.1))::int, -1),
       count(*), count(*) filter (where state = 'completed'), count(*) filter (where state = 'failed')
from runs
where state in ('completed', 'failed') and created_at >= date_trunc('hour', now(), 'UTC') - interval '30 days'
  -- Those whose end is not dispatched yet go into the journal below and are summed from there.
  and id not in (select data->>'run_id' from events where dispatched_at is null and type in ('run.completed', 'run.failed') and data->>'run_id' is not null)
group by 1, 2, 3;
insert into lane_window (agent_id, bucket, runs, completed, failed)
select agent_id, bucket, sum(runs), sum(completed), sum(failed) from lane_hours group by 1, 2;

-- Receipts of each lane that are in the log, for its trust.
create table lane_receipts (
  agent_id text primary key,
  receipts bigint not null,
  succeeded bigint not null,
  last_seen_at timestamptz not null
) with (fillfactor = 70);
insert into lane_receipts (agent_id, receipts, succeeded, last_seen_at)
select agent_id, count(*), count(*) filter (where kind in ('run', 'loop')), max(issued_at)
from receipts
where agent_id is not null and kind in ('run', 'loop', 'failure') and not exists (select 1 from log_queue where receipt_id = receipts.id)
group by 1;

-- What waits in the old outbox moves into the journal: each event, and the end of the run that it announces.
insert into journal (tenant_id, at, events, ended)
select tenant_id, created_at, events, case when run_id is not null and row_number() over (partition by run_id order by id) = 1 then ended end
from (
  select event.id, event.tenant_id, event.created_at, run.id as run_id,
         jsonb_build_array(jsonb_build_object('id', event.id, 'type', event.type, 'data', event.data)
           || case when event.only_for is null then '{}' else jsonb_build_object('only_for', event.only_for) end) as events,
         jsonb_build_object(
           'run_id', run.id, 'kind', run.kind, 'agent_id', run.agent_id, 'state', run.state, 'created_at', run.created_at, 'price_micro', run.price_micro,
           'cost_usd', run.result#>'{execution,usage,cost_usd}', 'latency_ms', run.result#>'{execution,latency_ms}') as ended
  from events event
  left join runs run on run.id = event.data->>'run_id' and run.state in ('completed', 'blocked', 'failed')
    and (event.type in ('run.completed', 'run.blocked', 'run.failed') or (event.type in ('approval.rejected', 'approval.expired') and run.state = 'blocked'))
  where event.dispatched_at is null
) waiting
order by id;
delete from events where dispatched_at is null;

-- An event is stored when it is dispatched, and only if it has a delivery: nothing reads any other. The primary key is its
-- only index, and old events are found by their ids, which begin with the time. The tenant was checked by the step that
-- wrote the journal.
alter table events drop column dispatched_at, drop column only_for, drop constraint events_tenant_id_fkey;
drop index events_by_tenant, events_old;
alter table webhook_deliveries drop constraint webhook_deliveries_tenant_id_fkey;

-- Audit events are written once, with their links: the place in the tenant's chain is the primary key. The copy keeps seq,
-- prev_hash and hash of every event as they are.
insert into journal (tenant_id, at, audits)
select event.tenant_id, event.occurred_at, jsonb_build_array(jsonb_build_object(
         'id', event.id, 'type', event.type, 'occurred_at', event.occurred_at, 'actor', event.actor, 'subject', event.subject, 'decision', event.decision,
         'policy_ids', event.policy_ids, 'input_hash', event.input_hash, 'data', event.data))
from audit_queue queued join audit_events event on event.id = queued.event_id
order by event.id;
alter table audit_events rename to unlinked_audit_events;
create table audit_events (
  tenant_id text not null,
  seq bigint not null check (seq > 0),
  id text not null,
  type text not null,
  occurred_at timestamptz not null,
  actor text not null,
  subject text not null,
  decision text,
  policy_ids text[] not null default '{}',
  input_hash text,
  data jsonb not null default '{}',
  prev_hash text,
  hash text not null
);
insert into audit_events
select event.tenant_id, link.seq, event.id, event.type, event.occurred_at, event.actor, event.subject, event.decision, event.policy_ids, event.input_hash, event.data,
       link.prev_hash, link.hash
from unlinked_audit_events event join audit_links link on link.event_id = event.id
order by event.id;
drop table audit_queue, audit_links, unlinked_audit_events;
alter table audit_events add constraint audit_events_pkey primary key (tenant_id, seq);
-- A cursor is an id.
create unique index audit_events_id on audit_events (id);
create index audit_events_by_subject on audit_events (tenant_id, subject, seq);
-- Two events in three are the admission and the end of a run. A list of these finds enough of them along the chain, so they
-- need no entry here; a list of any other type finds its events here, however rare they are.
create index audit_events_by_type on audit_events (tenant_id, type, seq) where type not in ('run.admitted', 'run.completed');
create trigger audit_events_immutable before update or delete on audit_events for each row execute function audit_refuse_change();

-- Lists follow the chain. For `since` and `until` the range of the chain is found by bisection: the newest time in the
-- chain, and by how much an event was ever older than one before it, tell how far times can be out of order.
alter table audit_heads add column newest_at timestamptz, add column lateness_ms bigint not null default 0;
update audit_heads head set newest_at = chain.newest_at, lateness_ms = chain.lateness_ms
from (
  select tenant_id, max(occurred_at) as newest_at, max(ceil(extract(epoch from newest_so_far - occurred_at) * 1000))::bigint as lateness_ms
  from (select tenant_id, occurred_at, max(occurred_at) over (partition by tenant_id order by seq) as newest_so_far from audit_events) ordered
  group by tenant_id
) chain
where chain.tenant_id = head.tenant_id;

-- Receipts that wait for the log. The order of the journal is the order of the log.
insert into journal (tenant_id, at, receipt_id)
select receipt.tenant_id, receipt.issued_at, receipt.id from log_queue queued join receipts receipt on receipt.id = queued.receipt_id order by receipt.id;
drop table log_queue;

-- Indexes of receipts. A receipt is found by its id, so `hash` needs none: a hash is compared once the receipt is found by
-- its id or its run. Nearly all receipts are of kind `run`, which a list finds along the time; the index by kind holds the
-- others. With its place in the log (two indexes) a wallet-paid run's receipt has six index entries: id, run, time, lane, and
-- index and id in the log; one paid by x402 is found by its payer as well.
alter table receipts drop constraint receipts_hash_key, drop constraint receipts_tenant_id_fkey;
drop index receipts_by_kind;
create index receipts_by_kind on receipts (kind, issued_at desc, id desc) where kind <> 'run';
