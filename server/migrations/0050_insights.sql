-- What the service makes of its own rows: alerts, frozen agents, and sums that stay fast however many runs there are.

create table alerts (
  id text primary key,
  tenant_id text not null references tenants,
  severity text not null check (severity in ('critical', 'warning', 'info')),
  type text not null,
  message text not null,
  data jsonb not null default '{}',
  -- What the service saw, in its own words; null for an alert that a tenant wrote. One cause is told once.
  cause text,
  read_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null
);
create unique index alerts_one_a_cause on alerts (tenant_id, cause) where cause is not null;
create index alerts_by_tenant on alerts (tenant_id, id desc);
create index alerts_by_severity on alerts (tenant_id, severity, id desc);

create table frozen_agents (
  tenant_id text not null references tenants,
  agent_id text not null,
  reason text not null,
  frozen_by text not null,
  frozen_at timestamptz not null,
  primary key (tenant_id, agent_id)
);

-- How a counter grew in its window: [[epoch ms, micro-USDC as text], …], thinned as it grows longer.
create table spend_history (
  scope text primary key,
  period text not null,
  samples jsonb not null,
  updated_at timestamptz not null
);

-- Runs that have come to their end, by tenant, hour and lane. Filled by the sequencer, one writer at a time, so that no
-- run waits for a sum.
create table run_hours (
  tenant_id text not null references tenants,
  hour timestamptz not null,
  agent_id text not null,
  runs bigint not null,
  completed bigint not null,
  blocked bigint not null,
  failed bigint not null,
  spend_micro bigint not null,
  cost_micro bigint not null,
  primary key (tenant_id, hour, agent_id)
) with (fillfactor = 70);
create index run_hours_by_hour on run_hours (hour);

-- How long the work took, in steps of a tenth: bucket b holds 1.1^b ms and up.
create table run_latencies (
  tenant_id text not null references tenants,
  day date not null,
  bucket int not null,
  runs bigint not null,
  primary key (tenant_id, day, bucket)
) with (fillfactor = 70);

create index preauths_escalated on preauths (tenant_id, escalated_at) where status = 'escalated';
create index preauths_unclosed_by_tenant on preauths (tenant_id, created_at) where status in ('open', 'in_use');
create index settlements_unknown on settlements (updated_at) where state = 'unknown';
