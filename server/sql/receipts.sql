-- input: {id, run_id?, tenant_id?, kind, agent_id?, payer?, issued_at, body, hash, prev_hash?}
-- The receipt goes into the journal in the same commit, so that every issued receipt gets into the log.
create or replace function issue_receipt(input jsonb) returns void language sql as $$
  insert into receipts (id, run_id, tenant_id, kind, agent_id, payer, issued_at, body, hash, prev_hash)
  values (input->>'id', input->>'run_id', input->>'tenant_id', input->>'kind', input->>'agent_id', input->>'payer', (input->>'issued_at')::timestamptz,
          input->>'body', input->>'hash', input->>'prev_hash');
  insert into journal (tenant_id, at, receipt_id) values (input->>'tenant_id', (input->>'issued_at')::timestamptz, input->>'id')
$$;
