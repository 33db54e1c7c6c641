-- The request that waits for an approval, encrypted: shown to approvers, and sent again by the service when it is approved.
alter table approvals
  add column content text,
  -- Which rule asked: {policy_id, name, sentence}. Null in approvals of earlier releases.
  add column rule jsonb,
  -- How the run is paid; null for a pre-authorisation.
  add column payment_method text check (payment_method in ('wallet', 'x402')),
  -- When the service starts the approved run next; null when it has been started or does not start by itself.
  add column start_at timestamptz,
  add column start_attempts int not null default 0,
  -- Why an approved run did not start.
  add column lapse_reason text;
create index approvals_to_start on approvals (start_at) where start_at is not null;
create index approvals_with_content on approvals ((coalesce(consumed_at, lapsed_at, resolved_at))) where content is not null;
