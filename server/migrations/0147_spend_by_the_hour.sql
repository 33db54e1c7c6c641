-- What runs and loops of a tenant have spent, by hour and by who spent it. Filled by the sequencer, one writer at a time.
create table spend_hours (
  tenant_id text not null references tenants,
  hour timestamptz not null,
  -- Of the names below: tags are longer than a row of an index may be.
  digest bytea not null,
  spender text not null,
  team text,
  lane text not null,
  key_id text,
  rail text not null,
  tags jsonb,
  amount_micro bigint not null,
  runs bigint not null,
  primary key (tenant_id, hour, digest)
) with (fillfactor = 70);

-- Hours that would have too many rows there: with `has_names` they have rows without tags, otherwise none.
create table coarse_hours (
  tenant_id text not null references tenants,
  hour timestamptz not null,
  has_names boolean not null,
  primary key (tenant_id, hour)
);

-- The hour from which on there are sums. Runs from before this migration are added up one by one, and so are those that
-- functions of the release before are about to end: two hours are more than a statement takes and clocks differ.
create table spend_hours_begin (
  hour timestamptz not null,
  is_only boolean primary key default true check (is_only)
);
insert into spend_hours_begin (hour)
select case when exists (select from ended_runs) or exists (select from open_runs) or exists (select from tenants)
  then date_trunc('hour', now(), 'UTC') + interval '2 hours' else '-infinity' end;

-- Runs under a pre-authorisation that waited for its approval: they are the only ones whose ids are much older than they are.
create index preauths_approved_late on preauths (tenant_id, issued_at, run_id) where taken_by_run and issued_at - created_at > interval '5 minutes';
