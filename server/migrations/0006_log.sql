-- What is numbered after commit: the public receipt log, the audit chains, the webhook sequence.

-- One process at a time numbers things. The epoch grows with every take-over and is checked inside each numbering
-- transaction, so a process that lost the lease without noticing can no longer write.
create table sequencer_lease (
  id int primary key check (id = 1),
  epoch bigint not null,
  holder text not null,
  expires_at timestamptz not null
);
insert into sequencer_lease (id, epoch, holder, expires_at) values (1, 0, '', '-infinity');

-- The place of each receipt in the public log. A table of its own: to number a receipt must not mean to rewrite it.
alter table receipts drop column log_index;
create table log_entries (
  log_index bigint primary key check (log_index >= 0),
  receipt_id text not null unique
);
-- Receipts that wait for their place, written in the transaction that issues them.
create table log_queue (
  receipt_id text primary key
);

-- Tiles of the Merkle tree. A tile only ever grows at its end until it has 256 hashes, so every older and narrower
-- form of it is a prefix of these bytes. Hashes do not compress.
create table log_tiles (
  level int not null check (level between 0 and 63),
  index bigint not null check (index >= 0),
  bytes bytea not null check (octet_length(bytes) between 32 and 8192 and octet_length(bytes) % 32 = 0),
  primary key (level, index)
);
alter table log_tiles alter column bytes set storage external;

-- The newest checkpoint, written in the same transaction as the tiles it covers: neither is ever seen without the other.
create table log_head (
  id int primary key check (id = 1),
  origin text not null,
  size bigint not null check (size >= 0),
  root bytea not null check (octet_length(root) = 32),
  note text not null,
  updated_at timestamptz not null
);

-- Signatures by which outside witnesses vouch that the log only grew.
create table log_cosignatures (
  size bigint not null check (size > 0),
  witness text not null,
  line text not null,
  cosigned_at timestamptz not null,
  primary key (size, witness)
);

-- A receipt is evidence: it is written once and stays.
create function log_refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'receipts and their places in the log are immutable';
end $$;
create trigger receipts_immutable before update or delete on receipts for each row execute function log_refuse_change();
create trigger log_entries_immutable before update or delete on log_entries for each row execute function log_refuse_change();
alter table receipts add constraint receipts_fit_the_log check (octet_length(body) between 1 and 65535);
-- Each receipt of a run has one successor at most, and there is one first: a run's chain cannot fork.
create unique index receipts_chain on receipts (run_id, coalesce(prev_hash, '')) where run_id is not null;
drop index receipts_by_run;

-- Lists are newest first by time and id, whatever the form of the id.
drop index receipts_by_kind;
drop index receipts_by_agent;
create index receipts_by_time on receipts (issued_at desc, id desc);
create index receipts_by_kind on receipts (kind, issued_at desc, id desc);
create index receipts_by_agent on receipts (agent_id, issued_at desc, id desc);
create index receipts_by_payer on receipts (payer, issued_at desc, id desc) where payer is not null;

-- Audit chains: one for each tenant, linked after commit. As with receipts, to link an event does not rewrite it.
alter table audit_events drop column seq, drop column prev_hash, drop column hash;
create table audit_links (
  tenant_id text not null,
  seq bigint not null check (seq > 0),
  event_id text not null unique,
  prev_hash text,
  hash text not null,
  primary key (tenant_id, seq)
);
create table audit_queue (
  event_id text primary key
);
-- The newest link of each chain, and the newest one whose hash stands in the public log.
create table audit_heads (
  tenant_id text primary key,
  -- What the public log calls the chain. It does not tell whose it is.
  chain text not null unique,
  seq bigint not null,
  hash text not null,
  committed_seq bigint not null default 0,
  committed_at timestamptz,
  receipt_id text,
  receipt_hash text
);
create index audit_heads_uncommitted on audit_heads (committed_at nulls first) where seq > committed_seq;

create function audit_refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'audit events and their links are immutable';
end $$;
create trigger audit_events_immutable before update or delete on audit_events for each row execute function audit_refuse_change();
create trigger audit_links_immutable before update or delete on audit_links for each row execute function audit_refuse_change();

drop index audit_events_by_tenant;
create index audit_events_by_time on audit_events (tenant_id, occurred_at desc, id desc);
create index audit_events_by_type on audit_events (tenant_id, type, occurred_at desc, id desc);
create index audit_events_by_subject on audit_events (tenant_id, subject, occurred_at desc, id desc);
