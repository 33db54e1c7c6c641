-- What was measured: a hash of the suite, of the version of every lane and of its models. Null for results of earlier releases.
alter table benchmarks add column fingerprint text;
-- What the tokens of the measurement cost; null for results of earlier releases.
alter table benchmarks add column cost_usd double precision;
create index benchmarks_by_fingerprint on benchmarks (fingerprint);

-- Who measures what. A turn ends with its time or with its process; `attempts` bounds what a model is paid for when every process dies on the way.
create table benchmark_turns (
  fingerprint text primary key,
  holder text,
  attempts int not null,
  until timestamptz not null
);
