-- While ENCRYPTION_KEY is being replaced: the same constant under the next key, so that every process must have both keys.
-- The fingerprint key hashes API keys, sessions and tokens. It outlives the key that it was first derived from.
alter table encryption_canary
  add column next_sealed text,
  add column fingerprint_key text,
  add column rotated_at timestamptz;
