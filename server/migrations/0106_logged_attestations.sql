-- Every basis attestation that was handed out, as it was: an entry of the public log, kept as long as receipts.
create table basis_attestations (
  id text primary key,
  asset text not null,
  symbol text not null,
  chain text not null,
  as_of timestamptz not null,
  -- Zero for previews, which have no sequence.
  seq bigint not null,
  body text not null
);
create index basis_attestations_by_time on basis_attestations (as_of desc, id desc);
create index basis_attestations_by_symbol on basis_attestations (symbol, as_of desc, id desc);
create index basis_attestations_by_reading on basis_attestations (asset, as_of, seq);
create trigger basis_attestations_immutable before update or delete on basis_attestations for each row execute function log_refuse_change();

-- The list of receipts leaves out what is listed elsewhere; without this a busy basis API would slow it down.
drop index receipts_by_time;
create index receipts_by_time on receipts (issued_at desc, id desc) where kind not in ('audit_head', 'attestation');
