-- What agents remember between runs. A memory belongs to a tenant and to a session of it, and ends at `expires_at`.
create table memories (
  id text primary key,
  tenant_id text not null references tenants,
  session_id text not null,
  agent_id text,
  -- The run that wrote it; null when it was stored by a call.
  run_id text references runs,
  content text not null check (char_length(content) between 1 and 8000),
  metadata jsonb not null default '{}',
  created_at timestamptz not null,
  expires_at timestamptz not null,
  -- The owner is one of the words, so that the index meets only his rows however many others use the same words.
  words tsvector not null generated always as (to_tsvector('english', content) || array_to_tsvector(array[tenant_id])) stored
);
create index memories_by_tenant on memories (tenant_id, id desc);
create index memories_by_session on memories (tenant_id, session_id, id desc);
create index memories_by_run on memories (run_id) where run_id is not null;
create index memories_by_expiry on memories (expires_at);
create index memories_by_words on memories using gin (words);
