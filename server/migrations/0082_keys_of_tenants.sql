-- Tenants manage their own keys with the scope `keys`. A key with the four scopes of an onboarded key was one, and keeps that
-- meaning: it gets the fifth.
update api_keys set scopes = array(
  select scope from unnest(array['read', 'run', 'control', 'mandate', 'keys', 'admin']) as scope
  where scope = 'keys' or scope = any (api_keys.scopes))
where scopes @> array['read', 'run', 'control', 'mandate'];

-- Whether the only key with scope `control` may decide about what it asked for itself.
alter table tenants add column self_approval text not null default 'single_key' check (self_approval in ('single_key', 'never'));

-- Decisions that the identity took which had asked.
alter table approvals add column self_approved boolean not null default false;
alter table overrides add column self_approved boolean not null default false;
alter table rh_runs add column self_approved boolean not null default false;
create index approvals_self_approved on approvals (tenant_id, resolved_at) where self_approved;
create index overrides_self_approved on overrides (tenant_id, created_at) where self_approved;
create index rh_runs_self_approved on rh_runs (tenant_id, approved_at) where self_approved;
