-- Governed trades and the paper broker they rehearse on. Money is bigint micro-USDC, quantities and prices are units of 1e-8.

-- One governed trade. `state` moves forward only; the terms are written once and never change.
create table rh_runs (
  id uuid primary key,
  tenant_id text not null references tenants,
  key_id text not null,
  agent_id text,
  instrument_type text not null check (instrument_type in ('equity', 'perp', 'crypto', 'rwa', 'earn', 'spend')),
  symbol text not null,
  broker text not null,
  mode text not null check (mode in ('paper', 'live')),
  state text not null check (state in ('pending_approval', 'approved', 'executing', 'executed', 'cancelled', 'rejected')),
  reason text,
  -- Given by the caller, unique for the tenant; the broker is sent an id of our own.
  client_order_id text,
  notional_micro bigint not null check (notional_micro >= 0),
  terms jsonb not null,
  instrument jsonb not null,
  policy jsonb not null,
  -- What the approver was shown, when there is one to approve.
  approval jsonb,
  expires_at timestamptz,
  execute_by timestamptz not null,
  approved_at timestamptz,
  approved_by text,
  approved_by_claimed text,
  -- Who works on it until when, and when the broker was last asked to place the order.
  lease_until timestamptz,
  attempts int not null default 0,
  sent_at timestamptz,
  next_attempt_at timestamptz,
  broker_order_id text,
  -- Somebody wants it stopped while the broker has it; the worker does that.
  stop_reason text,
  -- The price at execution, for the receipt.
  execution_quote jsonb,
  -- What the caller was or will be told, byte for byte.
  answer_status int,
  answer_body text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  finished_at timestamptz,
  check ((state = 'pending_approval') <= (expires_at is not null))
);
create unique index rh_runs_client_order on rh_runs (tenant_id, client_order_id) where client_order_id is not null and state <> 'rejected';
create index rh_runs_by_tenant on rh_runs (tenant_id, id desc);
create index rh_runs_today on rh_runs (tenant_id, instrument_type, created_at) where state not in ('cancelled', 'rejected');
create index rh_runs_waiting on rh_runs (expires_at) where state = 'pending_approval';
create index rh_runs_due on rh_runs (next_attempt_at) where state in ('approved', 'executing');

create table rh_run_keys (
  tenant_id text not null references tenants,
  key text not null,
  body_hash text not null,
  run_id uuid not null references rh_runs,
  expires_at timestamptz not null,
  primary key (tenant_id, key)
);
create index rh_run_keys_by_expiry on rh_run_keys (expires_at);

-- What the broker reported, once: the source of every position and of every cent.
create table rh_fills (
  run_id uuid not null references rh_runs,
  fill_id text not null,
  quantity_e8 bigint not null check (quantity_e8 > 0),
  price_e8 bigint not null check (price_e8 > 0),
  gross_micro bigint not null,
  fee_micro bigint not null check (fee_micro >= 0),
  filled_at timestamptz not null,
  primary key (run_id, fill_id)
);

-- Enriched receipts. The newest of a run is the one lists show; each names its predecessor by hash.
create table rh_receipts (
  id uuid primary key,
  run_id uuid not null references rh_runs,
  tenant_id text not null references tenants,
  instrument_type text not null,
  broker text not null,
  status text not null,
  body jsonb not null,
  hash text not null unique,
  prev_hash text,
  created_at timestamptz not null,
  superseded_at timestamptz
);
create unique index rh_receipts_newest on rh_receipts (run_id) where superseded_at is null;
create index rh_receipts_by_tenant on rh_receipts (tenant_id, id desc) where superseded_at is null;
create index rh_receipts_by_broker on rh_receipts (broker, id desc) where superseded_at is null;

-- The row that serialises a tenant's admissions, and its kill switch.
create table rh_tenants (
  tenant_id text primary key references tenants,
  killed_at timestamptz,
  killed_by text,
  kill_reason text
);

-- Linked broker accounts. The scaffold's tenant is a fixed literal, so this names no tenant by key.
create table rh_oauth_accounts (
  rh_account_id text primary key,
  tenant_id text not null,
  tokens text not null,
  metadata jsonb not null default '{}',
  created_at timestamptz not null,
  updated_at timestamptz not null
);

-- Strict mode only: a state is bound to the tenant that asked for it and works once.
create table rh_oauth_states (
  state_hash text primary key,
  tenant_id text not null references tenants,
  code_verifier text not null,
  expires_at timestamptz not null
);
create index rh_oauth_states_by_expiry on rh_oauth_states (expires_at);

-- The paper broker's own books: as far from ours as a real broker's, in the same database only for convenience.
create table paper_accounts (
  venue text not null,
  account_id text not null,
  book jsonb not null,
  -- Whether time itself must be watched: a working order, a perp that can be liquidated.
  active boolean not null,
  looked_at timestamptz not null,
  primary key (venue, account_id)
);
create index paper_accounts_active on paper_accounts (looked_at) where active;

create table paper_orders (
  venue text not null,
  client_order_id text not null,
  account_id text not null,
  status text not null,
  body jsonb not null,
  placed_at timestamptz not null,
  primary key (venue, client_order_id)
);
create index paper_orders_by_account on paper_orders (venue, account_id, placed_at desc);

create table paper_journal (
  venue text not null,
  account_id text not null,
  tx bigint not null,
  line int not null,
  account text not null,
  asset text not null,
  amount numeric(40) not null check (amount <> 0),
  code text not null,
  ref text not null,
  at timestamptz not null,
  primary key (venue, account_id, tx, line)
);

create function paper_journal_refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'journal rows are immutable';
end $$;
create trigger paper_journal_immutable before update or delete on paper_journal for each row execute function paper_journal_refuse_change();

create function paper_journal_check_balance() returns trigger language plpgsql as $$
declare
  broken bigint;
begin
  select tx into broken from added group by venue, account_id, tx, asset having sum(amount) <> 0 limit 1;
  if broken is not null then
    raise exception 'journal transaction % does not balance', broken;
  end if;
  return null;
end $$;
create trigger paper_journal_balance after insert on paper_journal referencing new table as added for each statement execute function paper_journal_check_balance();
