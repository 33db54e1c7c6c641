-- Approvals reach people: channels of a tenant, who receives through them, the messages, and the links in them.
create table approval_channels (
  id text primary key,
  tenant_id text not null references tenants,
  type text not null check (type in ('email', 'slack', 'webhook')),
  name text not null,
  -- Encrypted: whoever has the address of a Slack webhook can post to it.
  url text,
  secret text,
  is_active boolean not null default true,
  created_by text not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  deleted_at timestamptz,
  check (deleted_at is not null or (type = 'email') = (url is null)),
  check (deleted_at is not null or (type = 'webhook') = (secret is not null))
);
create index approval_channels_by_tenant on approval_channels (tenant_id, id desc) where deleted_at is null;

-- A Slack or webhook channel has one recipient: whoever reads there. Another address is another recipient.
create table approval_recipients (
  id text primary key,
  tenant_id text not null references tenants,
  channel_id text not null references approval_channels,
  email text,
  name text,
  -- Two recipients at one address are one voter.
  address_hash text not null,
  -- The key that added the recipient counts as the same identity as the recipient.
  added_by text not null,
  created_at timestamptz not null,
  removed_at timestamptz
);
create index approval_recipients_by_channel on approval_recipients (channel_id, id);
create index approval_recipients_by_tenant on approval_recipients (tenant_id) where removed_at is null;
create index approval_recipients_by_address on approval_recipients (tenant_id, address_hash);
create index approval_recipients_by_adder on approval_recipients (tenant_id, added_by);

create table approval_messages (
  id text primary key,
  tenant_id text not null references tenants,
  channel_id text not null references approval_channels,
  recipient_id text not null references approval_recipients,
  -- Where the approval is: one of payments, or a trade that waits for one. A test message has none.
  domain text not null default 'core' check (domain in ('core', 'rh')),
  approval_id text,
  state text not null check (state in ('pending', 'sent', 'failed')),
  attempts int not null default 0,
  last_error text,
  last_attempt_at timestamptz,
  next_attempt_at timestamptz,
  claim text,
  created_at timestamptz not null,
  sent_at timestamptz,
  check ((state = 'pending') = (next_attempt_at is not null)),
  check ((state = 'sent') = (sent_at is not null))
);
create index approval_messages_due on approval_messages (next_attempt_at) where state = 'pending';
create index approval_messages_by_channel on approval_messages (channel_id, id desc);
create index approval_messages_by_tenant on approval_messages (tenant_id, created_at);
create index approval_messages_by_age on approval_messages (created_at);

-- The token of a link is not stored, only its hash. Every attempt to send a message has a link of its own.
create table approval_links (
  hash text primary key,
  tenant_id text not null references tenants,
  message_id text not null,
  domain text not null check (domain in ('core', 'rh')),
  approval_id text not null,
  action_hash text not null,
  recipient_id text not null references approval_recipients,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  used_at timestamptz
);
create index approval_links_by_age on approval_links (expires_at);
