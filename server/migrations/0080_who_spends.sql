-- Who spends: a key may be bound to a spender, a team and the mandates that it may override, and knows which key made it.
alter table api_keys
  add column spender text,
  add column team text,
  add column mandate_ids text[],
  add column created_by text references api_keys;

alter table open_runs add column spender text, add column team text, add column key_id text, add column tags jsonb;
alter table ended_runs add column spender text, add column team text, add column key_id text, add column tags jsonb;
alter table preauths add column spender text, add column team text, add column tags jsonb;
alter table decisions add column spender text, add column team text, add column tags jsonb;
alter table approvals add column spender text, add column team text, add column tags jsonb;
alter table rh_runs add column spender text, add column team text, add column tags jsonb;

create or replace view runs as
select id, kind, tenant_id, payer, agent_id, session_id, loop_id, action, state, outcome, request_hash, request, terms, price_micro, result,
       answer_status, answer_body, answer, answer_receipt_at, receipt_id, instance, admission, created_at, deadline_at, finished_at, decided_seq, ended_seq, wallet_id,
       spender, team, key_id, tags
from ended_runs
union all
select id, kind, tenant_id, payer, agent_id, session_id, loop_id, action, state, outcome, request_hash, request, terms, price_micro, result,
       null::int, null::text, null::bytea, null::int, null::text, instance, admission, created_at, deadline_at, null::timestamptz, decided_seq, null::bigint, wallet_id,
       spender, team, key_id, tags
from open_runs;

-- The mandate of a pre-authorisation that waits is chosen when it is counted; the one that the request named is used alone.
alter table preauths add column named_mandate_id text;
update preauths set named_mandate_id = mandate_id;

-- Budgets: more scopes, rolling windows, parents, and which payments they count.
alter table budgets drop constraint budgets_scope_type_check, drop constraint budgets_window_check;
alter table budgets
  add constraint budgets_scope_type_check check (scope_type in ('tenant', 'agent', 'session', 'mandate', 'spender', 'team', 'tag', 'merchant', 'key')),
  add constraint budgets_window_check check ("window" in ('run', 'day', 'week', 'month', 'total', 'rolling_24h', 'rolling_7d', 'rolling_30d')),
  add column applies_to text[] not null default '{runs,payments,spend}' check (applies_to <@ '{runs,payments,spend,trades}' and applies_to <> '{}'),
  add column parent_id text,
  add foreign key (tenant_id, parent_id) references budgets (tenant_id, budget_id);

-- A policy may be for a spender, a team, a tag (`name=value`) or a merchant.
alter table policies drop constraint policies_identity_type_check;
alter table policies
  add constraint policies_identity_type_check check (identity_type in ('tenant', 'api_key', 'agent', 'spender', 'team', 'tag', 'merchant')),
  add column identity_id text,
  add check ((identity_type in ('spender', 'team', 'tag', 'merchant')) = (identity_id is not null));

-- What was spent in each slice of a rolling window. The counter in `limits` has the sum of the slices that have not ended.
create table limit_slices (
  scope text not null,
  period text not null,
  ends_at timestamptz not null,
  spent_micro bigint not null check (spent_micro >= 0),
  primary key (scope, period, ends_at)
);
