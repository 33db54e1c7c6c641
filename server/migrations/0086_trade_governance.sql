-- A tenant's own default policy for trades of one instrument type. The newest version is in force; one without constraints
-- leaves the type to the policies of the tenant and to the shipped one.
create table rh_policies (
  tenant_id text not null references tenants,
  instrument_type text not null check (instrument_type in ('equity', 'perp', 'crypto', 'rwa', 'earn', 'spend')),
  version int not null check (version > 0),
  constraints jsonb not null,
  content_hash text not null,
  changed_by text not null,
  created_at timestamptz not null,
  primary key (tenant_id, instrument_type, version)
);

-- A key without the scope `control` may name this policy in a trade.
alter table policies add column selectable boolean not null default false;

-- What a trade holds in the counters of budgets, policies and its mandate until its outcome is recorded, and how it was judged.
alter table rh_runs
  add column holds jsonb not null default '[]',
  add column mandate_id text,
  add column named_mandate_id text,
  add column policy_results jsonb not null default '[]';
create index rh_runs_pending on rh_runs (tenant_id, id desc) where state = 'pending_approval';
create index rh_receipts_by_run on rh_receipts (run_id, id);
create index rh_runs_holding on rh_runs (id) where holds <> '[]';

-- Every open hold with its holder, for reports and checks.
create or replace view open_holds as
select run.id as holder, hold.value->>'scope' as scope, hold.value->>'period' as period, (hold.value->>'amount_micro')::bigint as amount_micro
from open_runs run cross join jsonb_array_elements(run.holds) as hold(value)
union all
select preauth.id, hold.value->>'scope', hold.value->>'period', (hold.value->>'amount_micro')::bigint
from preauths preauth cross join jsonb_array_elements(preauth.holds) as hold(value)
where preauth.holds <> '[]'
union all
select trade.id::text, hold.value->>'scope', hold.value->>'period', (hold.value->>'amount_micro')::bigint
from rh_runs trade cross join jsonb_array_elements(trade.holds) as hold(value)
where trade.holds <> '[]';
