-- What the log knows of the witnesses of LOG_POLICY, whom it asks to cosign its checkpoints.

-- One process at a time sends a checkpoint to the witnesses. All are sent the same one, or they would never agree on a size.
create table log_quorum (
  id int primary key check (id = 1),
  holder text not null,
  expires_at timestamptz not null,
  -- The tree that was sent last, written before the first request.
  sent_size bigint not null check (sent_size >= 0),
  -- The largest tree with a quorum.
  published_size bigint not null check (published_size >= 0),
  -- Since when the newest tree has been without a quorum.
  behind_since timestamptz
);
insert into log_quorum (id, holder, expires_at, sent_size, published_size) values (1, '', '-infinity', 0, 0);

create table log_witnesses (
  -- The key name of the witness.
  witness text primary key,
  -- The tree that the witness has, as far as it has said.
  size bigint not null default 0 check (size >= 0),
  asked_at timestamptz,
  answered_at timestamptz,
  failures int not null default 0,
  next_attempt_at timestamptz not null default '-infinity',
  problem text
);
