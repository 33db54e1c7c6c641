-- i: {id, run_id?, tenant_id?, kind, agent_id?, payer?, issued_at, body, hash, prev_hash?}
-- The receipt waits in the queue from the same commit on, so none can be issued and miss the log.
create or replace function issue_receipt(i jsonb) returns void language sql as $$
  insert into receipts (id, run_id, tenant_id, kind, agent_id, payer, issued_at, body, hash, prev_hash)
  values (i->>'id', i->>'run_id', i->>'tenant_id', i->>'kind', i->>'agent_id', i->>'payer', (i->>'issued_at')::timestamptz,
          i->>'body', i->>'hash', i->>'prev_hash');
  insert into log_queue (receipt_id) values (i->>'id')
$$;
