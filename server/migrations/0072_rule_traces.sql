-- The rule results of refusals, each stored once by the hash of its content. Decisions made before this table have theirs in
-- `decisions.results`.
create table rule_traces (
  tenant_id text not null references tenants,
  hash text not null,
  results jsonb not null,
  created_at timestamptz not null,
  primary key (tenant_id, hash)
);
alter table decisions add column trace_hash text;
