-- The committed suite, run over every lane. A row a task, so that every figure can be worked out again.
create table benchmarks (
  id text primary key,
  suite_version text not null,
  as_of timestamptz not null
);

create table benchmark_results (
  benchmark_id text not null references benchmarks on delete cascade,
  agent_id text not null,
  task_id text not null,
  -- The lane gave an output, so a caller would have paid for it; whether it held is another matter.
  completed boolean not null,
  verified boolean not null,
  score float8 not null check (score between 0 and 1),
  latency_ms float8 not null check (latency_ms >= 0),
  price_micro bigint not null check (price_micro >= 0),
  provider text,
  model text,
  mode text,
  primary key (benchmark_id, agent_id, task_id),
  check (completed or not verified)
);
