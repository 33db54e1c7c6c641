-- Who may spend what, why something was refused, and what people decided about it.

-- Every change of a tenant's rules moves its version on. An admission names the version it was judged by, so that a rule
-- holds for every run admitted after it was committed, whatever another process still has in its cache.
create table governance_versions (
  tenant_id text primary key references tenants,
  version bigint not null
);

-- The order in which decisions were taken and ended. Numbers are given while the counters' locks are held, so that for
-- each counter they are the order in which it was really counted: a replay needs nothing else to be exact.
create sequence decision_order;
alter table runs add column decided_seq bigint, add column ended_seq bigint;

create table policies (
  id text primary key,
  tenant_id text not null references tenants,
  name text not null,
  version int not null,
  status text not null check (status in ('active', 'inactive', 'deleted')),
  mode text not null check (mode in ('enforce', 'warn', 'shadow')),
  identity_type text not null check (identity_type in ('tenant', 'api_key', 'agent')),
  agent_id text,
  key_id text references api_keys,
  key_prefix text,
  audit_trail_required boolean not null,
  constraints jsonb not null,
  rules jsonb not null,
  content_hash text not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  check ((identity_type = 'agent') = (agent_id is not null)),
  check ((identity_type = 'api_key') = (key_id is not null))
);
create index policies_by_tenant on policies (tenant_id, id) where status <> 'deleted';

-- What a policy said when: a receipt names the hash, and the text behind it stays.
create table policy_versions (
  policy_id text not null references policies,
  version int not null,
  content jsonb not null,
  content_hash text not null,
  changed_by text not null,
  created_at timestamptz not null,
  primary key (policy_id, version)
);

-- What a counter may reach. Budgets, velocity constraints and mandates each write theirs; `hold_limits` reads it in the
-- transaction that counts. A rule that only warns is counted and never refuses.
create table limit_definitions (
  scope text primary key,
  tenant_id text not null references tenants,
  limit_micro bigint not null check (limit_micro >= 0),
  soft_limit_micro bigint check (soft_limit_micro >= 0),
  enforced boolean not null,
  -- Announced once a window, in ascending order.
  thresholds_micro bigint[] not null default '{}',
  -- What the announcement says it is about.
  subject jsonb not null
);

-- The highest threshold already announced in this window.
alter table limits add column alerted_micro bigint not null default 0;
-- A limit on how often counts runs, not money: it is spent by one whatever the amount was.
alter table holds add column measure text not null default 'money' check (measure in ('money', 'count'));

create table budgets (
  tenant_id text not null references tenants,
  budget_id text not null,
  scope text not null unique references limit_definitions,
  scope_type text not null check (scope_type in ('tenant', 'agent', 'session', 'mandate')),
  scope_id text not null,
  "window" text not null check ("window" in ('run', 'day', 'week', 'month', 'total')),
  on_breach text not null check (on_breach in ('block', 'downgrade', 'review')),
  alert_thresholds jsonb not null,
  version int not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (tenant_id, budget_id)
);

create table mandates (
  id text primary key,
  tenant_id text not null references tenants,
  name text not null,
  agent_id text,
  holder_key_id text references api_keys,
  constraints jsonb not null,
  content_hash text not null,
  status text not null check (status in ('active', 'revoked')),
  starts_at timestamptz not null,
  expires_at timestamptz not null,
  created_by text not null,
  created_at timestamptz not null,
  revoked_at timestamptz,
  check (starts_at < expires_at)
);
create index mandates_by_tenant on mandates (tenant_id, id desc);

-- Refusals and requests for review. What was let through is told by its run or pre-authorisation.
create table decisions (
  id text primary key,
  tenant_id text not null references tenants,
  kind text not null check (kind in ('run', 'loop', 'preauth')),
  run_id text not null,
  preauth_id text,
  agent_id text not null,
  merchant text not null,
  amount_micro bigint not null,
  outcome text not null check (outcome in ('blocked', 'rejected', 'review_required')),
  error text not null,
  message text not null,
  -- Whether a rule that a person may override said no; a hard limit may not be overridden.
  overridable boolean not null,
  results jsonb not null,
  action_hash text not null,
  asked_by text not null,
  created_at timestamptz not null
);
create index decisions_denied on decisions (tenant_id, agent_id, merchant, amount_micro, id desc) where overridable;
create index decisions_by_tenant on decisions (tenant_id, id desc);

create table approvals (
  id text primary key,
  tenant_id text not null references tenants,
  kind text not null check (kind in ('run', 'loop', 'preauth')),
  status text not null check (status in ('pending', 'approved', 'rejected')),
  resolution text check (resolution in ('approved', 'rejected', 'expired')),
  action text not null,
  agent_id text not null,
  run_id text not null,
  preauth_id text,
  decision_id text not null references decisions,
  requested_by text not null,
  reason text not null,
  amount_micro bigint not null,
  merchant text not null,
  risk_summary jsonb not null,
  -- The exact action that is approved: another request, lane, amount or merchant is another action.
  action_hash text not null,
  approvals_required int not null check (approvals_required between 1 and 10),
  separate_approver boolean not null,
  -- Both the decision and its use must come before this.
  expires_at timestamptz not null,
  created_at timestamptz not null,
  resolved_at timestamptz,
  consumed_by text,
  consumed_at timestamptz,
  -- Approved in time and never used.
  lapsed_at timestamptz,
  check ((status = 'pending') = (resolution is null))
);
create unique index approvals_one_pending on approvals (tenant_id, action_hash) where status = 'pending';
create index approvals_by_tenant on approvals (tenant_id, status, id desc);
create index approvals_unused on approvals (expires_at) where status <> 'rejected' and consumed_by is null and lapsed_at is null;
create index approvals_consumed on approvals (consumed_by) where consumed_by is not null;

create table approval_votes (
  approval_id text not null references approvals,
  key_id text not null,
  decision text not null check (decision in ('approve', 'reject')),
  reason text,
  created_at timestamptz not null,
  primary key (approval_id, key_id)
);

create table overrides (
  id text primary key,
  tenant_id text not null references tenants,
  -- The token is shown once; this is its keyed hash.
  hash text not null unique,
  agent_id text not null,
  amount_micro bigint not null check (amount_micro >= 0),
  merchant text not null,
  reason text not null,
  decision_id text not null references decisions,
  issued_by text not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  used_by text,
  used_at timestamptz
);
create index overrides_by_tenant on overrides (tenant_id, id desc);
create index overrides_used on overrides (used_by) where used_by is not null;

create table preauths (
  id text primary key,
  tenant_id text not null references tenants,
  -- The id under which `/api/runs` shows it, and which a run that uses the token takes over.
  run_id text not null unique,
  status text not null check (status in ('pending_approval', 'open', 'in_use', 'escalated', 'closed', 'rejected')),
  agent_id text not null,
  mandate_id text references mandates,
  merchant_id text not null,
  merchant jsonb not null,
  amount_micro bigint not null check (amount_micro > 0),
  asset text not null,
  network text not null,
  purpose text,
  request_hash text,
  action_hash text not null,
  policy_hash text,
  policy_results jsonb not null,
  decision_id text,
  override_id text,
  approval_id text,
  ttl_seconds int not null,
  asked_by text not null,
  created_at timestamptz not null,
  -- The token's own times; null until it is issued.
  issued_at timestamptz,
  expires_at timestamptz,
  close_by timestamptz,
  -- The locks that every step takes which touches its holds.
  locks text[] not null default '{}',
  taken_by_run boolean not null default false,
  -- A transaction that a refused close named: the orphan detector looks at it before it calls anybody.
  reported_transaction text,
  escalated_at timestamptz,
  closed_at timestamptz,
  close_outcome text check (close_outcome in ('settled', 'failed', 'voided')),
  charged_micro bigint,
  late boolean,
  transaction text,
  verified_onchain boolean,
  receipt_id text,
  decided_seq bigint,
  ended_seq bigint,
  check ((status = 'closed') = (closed_at is not null)),
  check (charged_micro between 0 and amount_micro)
);
create index preauths_by_tenant on preauths (tenant_id, id desc);
create index preauths_by_run on preauths (tenant_id, run_id desc);
-- The orphan scan costs what is open, not what ever was.
create index preauths_unclosed on preauths (close_by) where status in ('open', 'in_use');
create index preauths_by_transaction on preauths (transaction) where transaction is not null;
