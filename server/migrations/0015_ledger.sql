-- Running balances, wallets, escrow and what is paid back.

-- A tenant's entries are found by account and read in order; a guest's belong to nobody who could ask.
alter table ledger_entries add column tenant_id text;
drop index ledger_entries_by_account;
create index ledger_entries_of_tenant on ledger_entries (tenant_id, account, transaction_id, line) include (asset, layer, amount_micro) where tenant_id is not null;

-- A balance is a snapshot and the few entries after it, so that it costs the same after ten entries and after ten million.
-- Transactions wait here from the commit that wrote them until one process has counted them.
create table ledger_queue (
  transaction_id text primary key
);

create table ledger_balances (
  tenant_id text not null,
  account text not null,
  asset text not null,
  balance_micro bigint not null,
  entries bigint not null,
  last_transaction text not null,
  since_snapshot bigint not null,
  primary key (tenant_id, account, asset)
) with (fillfactor = 70);
create index ledger_balances_due on ledger_balances (since_snapshot) where since_snapshot >= 256;

-- What an account stood at after everything counted up to and including a transaction.
create table ledger_snapshots (
  tenant_id text not null,
  account text not null,
  asset text not null,
  transaction_id text not null,
  balance_micro bigint not null,
  primary key (tenant_id, account, asset, transaction_id)
);

-- What a tenant has with us. The columns are the account's two layers and its escrow, where a CHECK can hold them:
-- available + reserved is what we owe, reserved is spoken for by runs and withdrawals under way, incoming is on its way.
create table wallets (
  id text primary key,
  tenant_id text not null references tenants,
  name text not null,
  available_micro bigint not null default 0 check (available_micro >= 0),
  reserved_micro bigint not null default 0 check (reserved_micro >= 0),
  incoming_micro bigint not null default 0 check (incoming_micro >= 0),
  escrowed_micro bigint not null default 0 check (escrowed_micro >= 0),
  created_at timestamptz not null
) with (fillfactor = 70);
create index wallets_by_tenant on wallets (tenant_id, id desc);

create table escrows (
  id text primary key,
  tenant_id text not null references tenants,
  wallet_id text not null references wallets,
  -- Who gets it when it is released: another wallet, or we ourselves.
  to_wallet_id text references wallets,
  to_tenant_id text references tenants,
  -- Bound to a run, it ends with that run and no other way.
  run_id text unique,
  amount_micro bigint not null check (amount_micro > 0),
  state text not null check (state in ('held', 'released', 'refunded', 'disputed', 'expired')),
  memo text,
  reason text,
  expires_at timestamptz not null,
  created_at timestamptz not null,
  ended_at timestamptz,
  check ((state in ('held', 'disputed')) = (ended_at is null)),
  check ((to_wallet_id is null) = (to_tenant_id is null)),
  check (to_wallet_id <> wallet_id)
);
create index escrows_by_tenant on escrows (tenant_id, id desc);
create index escrows_by_beneficiary on escrows (to_tenant_id, id desc) where to_tenant_id is not null;
create index escrows_by_wallet on escrows (wallet_id, id desc);
create index escrows_due on escrows (expires_at) where state = 'held' and run_id is null;

-- USDC that leaves our own address. The nonce of a transfer derives from the id, so that the chain takes each once.
create table payouts (
  id text primary key,
  kind text not null check (kind in ('withdrawal', 'refund')),
  tenant_id text references tenants,
  wallet_id text references wallets,
  settlement_id text unique references settlements,
  to_address text not null,
  amount_micro bigint not null check (amount_micro > 0),
  -- `manual` where the key of our address is not ours to use: then a person pays and says in which transaction.
  method text not null check (method in ('chain', 'manual')),
  state text not null check (state in ('pending', 'paid', 'cancelled')),
  pending_id text not null references ledger_transactions,
  transaction text,
  reason text,
  attempts int not null default 0,
  next_attempt_at timestamptz,
  requested_by text not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  check ((kind = 'withdrawal') = (wallet_id is not null)),
  check ((kind = 'refund') = (settlement_id is not null)),
  check ((state = 'paid') = (transaction is not null))
);
-- A person may not prove two payouts with one transfer. (Our own transactions carry many, each with its nonce.)
create unique index payouts_manual_once on payouts (transaction) where method = 'manual' and transaction is not null;
create index payouts_by_state on payouts (state, id desc);
create index payouts_due on payouts (next_attempt_at) where state = 'pending';

-- The wallet that a run is paid from, or that a top-up is for.
alter table settlements add column wallet_id text references wallets;
-- A payment that was given up is looked at again, while it could still arrive and once after.
create index settlements_given_up on settlements (next_attempt_at) where state = 'failed';
