-- The basis API: raw answers by their hash, what was asked, the state of each wrapper, and every reading with its attestation.

create table basis_bodies (
  sha256 text primary key check (sha256 ~ '^[0-9a-f]{64}$'),
  body bytea not null,
  stored_at timestamptz not null
);
create index basis_bodies_by_age on basis_bodies (stored_at);

create table basis_fetches (
  id bigint generated always as identity primary key,
  source text not null,
  url text not null,
  status int not null,
  body_sha256 text not null,
  fetched_at timestamptz not null,
  published_at timestamptz,
  block bigint,
  refused text
);
create index basis_fetches_by_age on basis_fetches (fetched_at);

-- One row a wrapper: what is served now, and what the next measurement has to remember. No reading means preview.
create table basis_assets (
  asset text primary key,
  reading jsonb,
  reasons jsonb not null,
  track jsonb not null,
  attestation jsonb,
  seq bigint not null,
  hash text,
  updated_at timestamptz not null
);

create table basis_readings (
  asset text not null,
  seq bigint not null,
  as_of timestamptz not null,
  wrapper_price double precision not null,
  reference_price double precision not null,
  basis_bps double precision not null,
  near_reference_usd double precision not null,
  underlying_state text not null,
  window_score double precision not null,
  window_status text not null,
  hash text not null,
  -- Emptied when it is old: the hash still holds the chain of attestations together.
  attestation jsonb,
  primary key (asset, seq)
);
create index basis_readings_by_time on basis_readings (asset, as_of);
create index basis_readings_by_age on basis_readings (as_of);
create index basis_readings_attested on basis_readings (as_of) where attestation is not null;

-- Who ingests. One row; the turn is taken for a minute at a time.
create table basis_turn (
  one boolean primary key default true check (one),
  holder text not null,
  until timestamptz not null
);
