-- What the lanes came to each time the committed suite was run over them.
create table benchmarks (
  id text primary key,
  suite_version text not null,
  mode text not null check (mode in ('live', 'offline')),
  as_of timestamptz not null,
  lanes jsonb not null
);
