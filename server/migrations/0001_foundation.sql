-- Tenants, keys, paid runs and their money. Amounts are bigint micro-USDC; ids sort by time, so an id is a cursor.

create table tenants (
  id text primary key,
  org_name text not null,
  email text not null,
  use_case text,
  plan text not null default 'free' check (plan in ('free', 'builder', 'team', 'enterprise')),
  status text not null default 'active' check (status in ('active', 'suspended')),
  created_at timestamptz not null,
  updated_at timestamptz not null
);

create table api_keys (
  id text primary key,
  tenant_id text not null references tenants,
  name text not null,
  prefix text not null,
  hash text not null unique,
  scopes text[] not null,
  created_at timestamptz not null,
  expires_at timestamptz,
  revoked_at timestamptz,
  replaced_by text references api_keys
);
create index api_keys_by_tenant on api_keys (tenant_id, id);

-- Answers to POSTs that are one transaction; encrypted, since some show a secret once.
create table idempotency_answers (
  scope text not null,
  route text not null,
  key text not null,
  body_hash text not null,
  status int not null,
  answer text not null,
  expires_at timestamptz not null,
  primary key (scope, route, key)
);
create index idempotency_answers_by_expiry on idempotency_answers (expires_at);

-- The operator's changes to the shipped price list, and lanes added to it.
create table lanes (
  agent_id text primary key,
  record jsonb not null,
  updated_at timestamptz not null
);

-- A kind of run is one paid unit of work. `state` is the machine's, `outcome` is what the contract shows.
create table runs (
  id text primary key,
  kind text not null check (kind in ('run', 'loop', 'topup')),
  tenant_id text references tenants,
  payer text,
  agent_id text not null,
  session_id text not null,
  loop_id text not null unique,
  action text not null,
  state text not null check (state in ('pending_approval', 'approved', 'blocked', 'executing', 'settling', 'completed', 'failed')),
  outcome text not null check (outcome in ('completed', 'blocked', 'pending', 'approved', 'escalated', 'failed')),
  request_hash text not null,
  -- What was asked, in full: the reconciler must be able to finish it, and simulate must be able to judge it again.
  request jsonb not null,
  -- Lane, price, route and ruling as they stood when the run was admitted.
  terms jsonb not null,
  price_micro bigint not null check (price_micro >= 0),
  -- Output, execution, verification, and the id and time of the receipt to come: saved before the chain is touched.
  result jsonb,
  answer_status int,
  answer_body text,
  -- Which process works on it, and which admission this is, so that a repeated step is known from a rival.
  instance text,
  admission text,
  created_at timestamptz not null,
  deadline_at timestamptz not null,
  finished_at timestamptz
);
create index runs_by_tenant on runs (tenant_id, id desc) where tenant_id is not null;
create index runs_by_tenant_outcome on runs (tenant_id, outcome, id desc) where tenant_id is not null;
create index runs_by_session on runs (tenant_id, session_id, id desc) where tenant_id is not null;
create index runs_by_agent on runs (agent_id, id desc);
create index runs_unfinished on runs (instance) where state in ('executing', 'settling');

create table run_keys (
  scope text not null,
  route text not null,
  key text not null,
  body_hash text not null,
  run_id text not null,
  expires_at timestamptz not null,
  primary key (scope, route, key)
);
create index run_keys_by_expiry on run_keys (expires_at);

-- One (network, asset, payer, nonce) buys one run: the row is the reservation, and it is kept for good.
create table settlements (
  id text primary key,
  run_id text not null references runs,
  tenant_id text references tenants,
  method text not null check (method in ('x402', 'wallet')),
  state text not null check (state in ('pending', 'settled', 'failed', 'unknown', 'refunded')),
  network text not null,
  asset text not null,
  payer text not null,
  pay_to text not null,
  amount_micro bigint not null check (amount_micro >= 0),
  nonce text not null,
  valid_before bigint not null,
  payment jsonb,
  transaction text,
  -- Our own facilitator settles many payments in one transaction; another's transaction pays once, whatever it says.
  shared_transaction boolean not null default false,
  block bigint,
  reason text,
  attempts int not null default 0,
  next_attempt_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  unique (network, asset, payer, nonce),
  unique (transaction, nonce)
);
create unique index settlements_by_run on settlements (run_id);
create unique index settlements_transaction_once on settlements (transaction) where transaction is not null and not shared_transaction;
create index settlements_due on settlements (next_attempt_at) where state in ('pending', 'unknown');
create index settlements_by_tenant on settlements (tenant_id, id desc) where tenant_id is not null;
create index settlements_by_payer on settlements (payer, id desc);

-- One counter for budgets, mandates, velocity and payer exposure. `period` names the window the counter is for.
create table limits (
  scope text not null,
  period text not null,
  limit_micro bigint not null,
  soft_limit_micro bigint,
  spent_micro bigint not null default 0 check (spent_micro >= 0),
  reserved_micro bigint not null default 0 check (reserved_micro >= 0),
  primary key (scope, period),
  check (spent_micro + reserved_micro <= limit_micro)
) with (fillfactor = 70);

create table holds (
  holder text not null,
  scope text not null,
  period text not null,
  amount_micro bigint not null check (amount_micro >= 0),
  -- A budget is spent when the money has moved; exposure is given back at that moment.
  on_success text not null check (on_success in ('spend', 'release')),
  state text not null default 'open' check (state in ('open', 'spent', 'released')),
  created_at timestamptz not null,
  primary key (holder, scope, period),
  foreign key (scope, period) references limits
);
create index holds_open on holds (scope, period) where state = 'open';

-- Double entry. A pending transaction is answered by a posting or a voiding one; no row is ever changed.
create table ledger_transactions (
  id text primary key,
  tenant_id text references tenants,
  kind text not null check (kind in ('pend', 'post', 'void', 'direct')),
  pending_id text references ledger_transactions,
  code text not null,
  ref text not null,
  created_at timestamptz not null,
  check ((kind in ('post', 'void')) = (pending_id is not null))
);
create unique index ledger_resolved_once on ledger_transactions (pending_id) where pending_id is not null;
create index ledger_transactions_by_ref on ledger_transactions (ref);
create index ledger_transactions_by_tenant on ledger_transactions (tenant_id, id desc) where tenant_id is not null;

create table ledger_entries (
  transaction_id text not null references ledger_transactions,
  line int not null,
  account text not null,
  layer text not null check (layer in ('pending', 'posted')),
  asset text not null,
  -- Debits are positive, credits negative: the sum of a transaction is zero.
  amount_micro bigint not null check (amount_micro <> 0),
  primary key (transaction_id, line)
);
create index ledger_entries_by_account on ledger_entries (account, transaction_id);

create function ledger_refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'ledger rows are immutable';
end $$;
create trigger ledger_entries_immutable before update or delete on ledger_entries for each row execute function ledger_refuse_change();
create trigger ledger_transactions_immutable before update or delete on ledger_transactions for each row execute function ledger_refuse_change();

create function ledger_check_balance() returns trigger language plpgsql as $$
declare
  broken text;
begin
  select transaction_id into broken from added group by transaction_id, asset, layer having sum(amount_micro) <> 0 limit 1;
  if broken is not null then
    raise exception 'ledger transaction % does not balance', broken;
  end if;
  return null;
end $$;
create trigger ledger_entries_balance after insert on ledger_entries referencing new table as added for each statement execute function ledger_check_balance();

-- Receipts are stored unsequenced; the sequencer gives each its place in the public log afterwards.
create table receipts (
  id text primary key,
  run_id text,
  tenant_id text references tenants,
  kind text not null,
  agent_id text,
  payer text,
  issued_at timestamptz not null,
  -- The canonical text that was signed, with its signature and without `log`: exactly the leaf of the log.
  body text not null,
  hash text not null unique,
  prev_hash text,
  log_index bigint unique
);
create index receipts_by_run on receipts (run_id);
create index receipts_by_kind on receipts (kind, id desc);
create index receipts_by_agent on receipts (agent_id, id desc);
create index receipts_unsequenced on receipts (id) where log_index is null;

-- The outbox: events are written in the transaction of the business, and numbered and delivered after it.
create table events (
  id text primary key,
  tenant_id text not null references tenants,
  type text not null,
  data jsonb not null,
  created_at timestamptz not null,
  dispatched_at timestamptz
);
create index events_undispatched on events (id) where dispatched_at is null;
create index events_by_tenant on events (tenant_id, id desc);

create table audit_events (
  id text primary key,
  tenant_id text not null references tenants,
  type text not null,
  occurred_at timestamptz not null,
  actor text not null,
  subject text not null,
  decision text,
  policy_ids text[] not null default '{}',
  input_hash text,
  data jsonb not null default '{}',
  -- Given after commit by the sequencer, so that no request waits on a tenant's hot row.
  seq bigint,
  prev_hash text,
  hash text,
  unique (tenant_id, seq)
);
create index audit_events_unsequenced on audit_events (id) where seq is null;
create index audit_events_by_tenant on audit_events (tenant_id, id desc);

-- Every public key that ever signed stays listed, so that old receipts can be verified.
create table signing_keys (
  kid text primary key,
  purpose text not null,
  jwk jsonb not null,
  created_at timestamptz not null,
  retired_at timestamptz
);
