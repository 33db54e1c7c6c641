-- The embedded development chain keeps its state in memory; these tables are what makes it durable.
-- A transaction is written here before anybody hears of it, and what is not here never happened.

create table chain_head (
  id int primary key check (id = 1),
  -- Grows by one whenever a process takes the chain over; a writer with an older epoch is refused.
  epoch bigint not null,
  -- Block numbers are reserved ahead, so that a number is never given out twice, even for an empty block.
  reserved_block bigint not null default 0,
  block_time bigint not null default 0,
  supply numeric(78, 0) not null default 0 check (supply >= 0)
);

create table chain_blocks (
  number bigint primary key,
  hash text not null unique,
  time bigint not null,
  header json not null
);

create table chain_transactions (
  hash text primary key,
  block_number bigint not null references chain_blocks (number),
  index int not null,
  raw text,
  -- Kept word for word, and never searched inside: json costs less to write than jsonb.
  transaction json not null,
  receipt json not null,
  unique (block_number, index)
);

create table chain_accounts (
  address text primary key,
  nonce bigint not null check (nonce >= 0)
);

create table chain_balances (
  owner text primary key,
  amount numeric(78, 0) not null check (amount >= 0)
);

create table chain_authorizations (
  authorizer text not null,
  nonce text not null,
  cancelled boolean not null,
  -- After this time the token refuses the authorisation in any case, so a start need not load it; null is never.
  valid_before numeric(78, 0),
  transaction text not null references chain_transactions (hash),
  primary key (authorizer, nonce)
);

create table chain_allowances (
  owner text not null,
  spender text not null,
  amount numeric(78, 0) not null check (amount >= 0),
  primary key (owner, spender)
);

create table chain_permits (
  owner text primary key,
  count numeric(78, 0) not null check (count >= 0)
);
