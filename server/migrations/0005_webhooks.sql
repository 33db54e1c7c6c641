-- Who wants to hear of what, and what became of telling them.

create table webhook_subscriptions (
  id text primary key,
  tenant_id text not null references tenants,
  url text not null,
  events text[] not null,
  is_active boolean not null default true,
  -- Why the service switched it off by itself; null when a person did, or when it is on.
  disabled_reason text check (disabled_reason in ('gone', 'exhausted')),
  disabled_at timestamptz,
  -- Encrypted at rest. During a rotation the earlier secret signs too, until its time is over.
  secret text not null,
  earlier_secret text,
  earlier_secret_until timestamptz,
  -- The number of the last event given to this subscription; only the sequencer writes it.
  last_seq bigint not null default 0,
  -- How the last attempts went. Slow and failing targets are served apart, so that they never delay the others.
  standing text not null default 'good' check (standing in ('good', 'poor')),
  failures int not null default 0,
  failing_since timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  deleted_at timestamptz
);
create index webhook_subscriptions_by_tenant on webhook_subscriptions (tenant_id, id) where deleted_at is null;
create index webhook_subscriptions_failing on webhook_subscriptions (failing_since) where failing_since is not null;
create index webhook_subscriptions_stopped on webhook_subscriptions (updated_at) where disabled_reason is not null or deleted_at is not null;

-- A test event goes to one subscription, whatever that one asked for.
alter table events add column only_for text references webhook_subscriptions;

create table webhook_deliveries (
  id text primary key,
  subscription_id text not null references webhook_subscriptions,
  tenant_id text not null references tenants,
  -- What the target sees as `webhook-id`: the same over every attempt and every replay.
  event_id text not null references events,
  seq bigint not null,
  state text not null default 'pending' check (state in ('pending', 'delivered', 'exhausted')),
  -- Attempts in all, and since the delivery was made or replayed: the retry schedule starts again with a replay.
  attempts int not null default 0,
  round_attempts int not null default 0,
  -- While an attempt is under way this is the end of its lease: should the worker die, another takes over then.
  next_attempt_at timestamptz,
  claim text,
  last_status int,
  last_error text,
  last_ms int,
  last_attempt_at timestamptz,
  -- The last attempts, oldest first: [{at, status, error, ms}].
  history jsonb not null default '[]',
  created_at timestamptz not null,
  delivered_at timestamptz,
  unique (subscription_id, seq)
) with (fillfactor = 80);
create index webhook_deliveries_pending on webhook_deliveries (subscription_id, next_attempt_at, seq) where state = 'pending';
create index webhook_deliveries_by_subscription on webhook_deliveries (subscription_id, id desc);
create index webhook_deliveries_by_event on webhook_deliveries (event_id);
create index webhook_deliveries_old on webhook_deliveries (created_at);
create index events_old on events (created_at);
