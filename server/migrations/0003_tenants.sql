-- Browser sessions, and who a tenant is to the billing provider.

alter table tenants add column billing_customer_id text unique;

-- A session is a key in use from a browser: when the key is revoked or runs out, the session is worth nothing.
create table sessions (
  id text primary key,
  tenant_id text not null references tenants,
  key_id text not null references api_keys,
  -- The cookie's value is known only to the browser; this is its keyed hash.
  hash text not null unique,
  created_at timestamptz not null,
  expires_at timestamptz not null
);
create index sessions_by_key on sessions (key_id);
create index sessions_by_expiry on sessions (expires_at);
