-- Runs whose caller was told that it is not known whether the payment arrived, until the answer was delivered: the same
-- request of the same tenant or payer gets that answer instead of another 402. A run that was never unknown has no row.
create table unanswered_payments (
  run_id text primary key,
  tenant_id text,
  payer text not null,
  request_hash text not null,
  created_at timestamptz not null
);
create index unanswered_payments_of_request on unanswered_payments (request_hash);
create index unanswered_payments_by_time on unanswered_payments (created_at);
