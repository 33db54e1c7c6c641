-- The three transactions of a run, each a function for one run. Every step may be repeated: it compares the admission of the run with its own.

create or replace function claim_key(input jsonb, run_id text, at timestamptz) returns void language plpgsql as $$
declare
  existing run_keys;
begin
  delete from run_keys where scope = input->>'scope' and route = input->>'route' and key = input->>'key' and expires_at <= at;
  insert into run_keys (scope, route, key, body_hash, run_id, expires_at)
  values (input->>'scope', input->>'route', input->>'key', input->>'body_hash', claim_key.run_id, (input->>'expires_at')::timestamptz)
  on conflict (scope, route, key) do nothing;
  if not found then
    select * into existing from run_keys existing_key where existing_key.scope = input->>'scope' and existing_key.route = input->>'route' and existing_key.key = input->>'key';
    perform refuse(409, 'key_used', jsonb_build_object('run_id', existing.run_id, 'same_body', existing.body_hash = input->>'body_hash'));
  end if;
end $$;

create or replace function insert_run(run jsonb) returns void language plpgsql as $$
begin
  insert into runs (id, kind, tenant_id, payer, agent_id, session_id, loop_id, action, state, outcome, request_hash, request, terms,
                    price_micro, instance, admission, created_at, deadline_at, decided_seq)
  values (run->>'id', run->>'kind', run->>'tenant_id', run->>'payer', run->>'agent_id', run->>'session_id', run->>'loop_id', run->>'action', 'executing', 'pending',
          run->>'request_hash', run->'request', run->'terms', (run->>'price_micro')::bigint, run->>'instance', run->>'admission',
          (run->>'created_at')::timestamptz, (run->>'deadline_at')::timestamptz, nextval('decision_order'))
  -- A run that waited for an approval keeps its row and its id.
  on conflict (id) do update set payer = excluded.payer, agent_id = excluded.agent_id, session_id = excluded.session_id, loop_id = excluded.loop_id,
    state = 'executing', outcome = 'pending', terms = excluded.terms, price_micro = excluded.price_micro, instance = excluded.instance,
    admission = excluded.admission, deadline_at = excluded.deadline_at, decided_seq = excluded.decided_seq
    where runs.state = 'approved';
  if not found then
    perform refuse(409, 'run_exists', jsonb_build_object('run_id', run->>'id'));
  end if;
end $$;

-- Reserves the price of a wallet-paid run when it is admitted, in escrow if requested; a top-up counts as incoming.
create or replace function begin_in_wallet(input jsonb) returns void language plpgsql as $$
declare
  wallet text := input#>>'{settlement,wallet_id}';
  amount bigint := (input#>>'{settlement,amount_micro}')::bigint;
begin
  if input#>>'{run,kind}' = 'topup' then
    perform move_in_wallet(wallet, 0, 0, amount, 0);
  elsif input->'escrow' <> 'null' then
    perform hold_escrow(input->'escrow');
  else
    perform move_in_wallet(wallet, -amount, amount, 0, 0);
  end if;
end $$;

-- Completes or reverses the reservation made by `begin_in_wallet`. escrow: the input of `end_escrow`, for a run that has one.
create or replace function end_in_wallet(paid settlements, kind text, success boolean, escrow jsonb) returns void language plpgsql as $$
declare
  amount bigint := paid.amount_micro;
begin
  if kind = 'topup' then
    perform move_in_wallet(paid.wallet_id, case when success then amount else 0 end, 0, -amount, 0);
  elsif escrow <> 'null' then
    perform end_escrow(escrow);
  else
    perform move_in_wallet(paid.wallet_id, case when success then 0 else amount end, -amount, 0, 0);
  end if;
end $$;

-- Transaction A. input: {run, key?, settlement, escrow?, holds[], grants?, pending_entry?, audit?}
create or replace function admit_run(input jsonb) returns jsonb language plpgsql as $$
declare
  at timestamptz := (input#>>'{run,created_at}')::timestamptz;
  run_id text := input#>>'{run,id}';
  tenant text := input#>>'{run,tenant_id}';
  assessed jsonb := input#>'{run,terms,ruling}';
  corrected jsonb;
begin
  select terms->'ruling' into corrected from runs where id = run_id and admission = input#>>'{run,admission}';
  if found then
    return jsonb_build_object('run_id', run_id, 'ruling', corrected);
  end if;
  perform insert_run(input->'run');
  if input->'key' <> 'null' then
    perform claim_key(input->'key', run_id, at);
  end if;
  perform reserve_nonce(input->'settlement', run_id, tenant, at);
  perform consume_grants(input, run_id, at);
  corrected := correct_assessment(assessed, hold_limits(run_id, input->'holds', at));
  if corrected <> assessed then
    update runs set terms = terms || jsonb_build_object('ruling', corrected) where id = run_id;
  end if;
  if input#>>'{settlement,wallet_id}' is not null then
    perform begin_in_wallet(input);
  end if;
  perform ledger_pend(input->'ledger');
  perform audit_event(input->'audit');
  return jsonb_build_object('run_id', run_id, 'ruling', corrected);
end $$;

-- Transaction B. The result is stored; only now may money move. input: {run_id, admission, result, next_attempt_at}
create or replace function keep_run(input jsonb) returns jsonb language plpgsql as $$
begin
  update runs set state = 'settling', result = input->'result'
  where id = input->>'run_id' and admission = input->>'admission' and state in ('executing', 'settling');
  if not found then
    perform refuse(409, 'run_taken_over', jsonb_build_object('run_id', input->>'run_id'));
  end if;
  update settlements set next_attempt_at = (input->>'next_attempt_at')::timestamptz where run_id = input->>'run_id' and state = 'pending';
  return '{}';
end $$;

-- A top-up has no work to wait for, so transactions A and B are one.
create or replace function admit_and_keep_run(input jsonb) returns jsonb language plpgsql as $$
declare
  admitted jsonb := admit_run(input);
begin
  perform keep_run(input->'keep');
  return admitted;
end $$;

-- Transaction C. The request or the reconciler, whichever comes first, stores the response; the other reads it.
-- input: {run_id, at, settlement: {transaction, block, shared}, escrow?, post_id, answer: {status, body}, receipt, memory?, events[], audit}
create or replace function complete_run(input jsonb) returns jsonb language plpgsql as $$
declare
  run runs;
  paid settlements;
  at timestamptz := (input->>'at')::timestamptz;
begin
  select * into strict run from runs where id = input->>'run_id' for update;
  if run.state in ('completed', 'failed') then
    return jsonb_build_object('status', run.answer_status, 'body', run.answer_body, 'first', false);
  end if;
  if run.state <> 'settling' then
    perform refuse(409, 'run_not_settling', jsonb_build_object('state', run.state));
  end if;
  update settlements set state = 'settled', transaction = input#>>'{settlement,transaction}', shared_transaction = (input#>>'{settlement,shared}')::boolean, block = (input#>>'{settlement,block}')::bigint,
    reason = null, next_attempt_at = null, updated_at = at
  where run_id = run.id returning * into paid;
  if paid.wallet_id is not null then
    perform end_in_wallet(paid, run.kind, true, input->'escrow');
  end if;
  perform ledger_post(jsonb_build_object('id', input->>'post_id', 'pending_id', input->>'pending_id', 'created_at', at));
  -- A pre-authorisation may have held more than the price.
  perform settle_holds(run.id, true, run.price_micro);
  perform close_preauth_of(run.id, 'settled', run.price_micro, input#>>'{settlement,transaction}', input#>>'{receipt,id}', at);
  perform issue_receipt(input->'receipt');
  if input->'memory' <> 'null' then
    perform write_memory(input->'memory');
  end if;
  update runs set state = 'completed', outcome = 'completed', answer_status = (input#>>'{answer,status}')::int, answer_body = input#>>'{answer,body}', finished_at = at,
    ended_seq = nextval('decision_order')
  where id = run.id returning * into run;
  perform journal_ended(run, at);
  perform emit_event(event) from jsonb_array_elements(input->'events') as event;
  perform audit_event(input->'audit');
  return jsonb_build_object('status', input#>'{answer,status}', 'body', input#>'{answer,body}', 'first', true);
end $$;

-- A wallet payment needs no settlement on a chain, so transactions B and C are one.
create or replace function keep_and_complete_run(input jsonb) returns jsonb language plpgsql as $$
begin
  if not exists (select 1 from runs where id = input->>'run_id' and state in ('completed', 'failed')) then
    perform keep_run(input->'keep');
  end if;
  return complete_run(input);
end $$;

-- Ends a run that failed before money moved: nothing is charged, everything held is released.
-- input: {run_id, at, reason, escrow?, void_id, answer: {status, body}, receipt?, events[], audit}
create or replace function abandon_run(input jsonb) returns jsonb language plpgsql as $$
declare
  run runs;
  failed_settlement settlements;
  at timestamptz := (input->>'at')::timestamptz;
begin
  select * into strict run from runs where id = input->>'run_id' for update;
  if run.state in ('completed', 'failed') then
    return jsonb_build_object('status', run.answer_status, 'body', run.answer_body, 'first', false);
  end if;
  if run.state not in ('executing', 'settling') then
    perform refuse(409, 'run_not_running', jsonb_build_object('state', run.state));
  end if;
  -- Anyone who has seen the payment can still submit it to the chain, so the reconciler keeps watching it.
  update settlements set state = 'failed', reason = input->>'reason', updated_at = at,
    next_attempt_at = case when method = 'x402' then at + interval '60 seconds' end
  where run_id = run.id returning * into failed_settlement;
  if failed_settlement.wallet_id is not null then
    perform end_in_wallet(failed_settlement, run.kind, false, input->'escrow');
  end if;
  perform ledger_void(jsonb_build_object('id', input->>'void_id', 'pending_id', input->>'pending_id', 'created_at', at));
  perform settle_holds(run.id, false);
  perform restore_grants(run.id, at);
  if input->'receipt' <> 'null' then
    perform issue_receipt(input->'receipt');
  end if;
  update runs set state = 'failed', outcome = 'failed', answer_status = (input#>>'{answer,status}')::int, answer_body = input#>>'{answer,body}', finished_at = at,
    ended_seq = nextval('decision_order')
  where id = run.id returning * into run;
  perform journal_ended(run, at);
  perform emit_event(event) from jsonb_array_elements(input->'events') as event;
  perform audit_event(input->'audit');
  return jsonb_build_object('status', input#>'{answer,status}', 'body', input#>'{answer,body}', 'first', true);
end $$;

-- The payment of a failed run has arrived after all. Its run reported no charge, so the money is owed back.
-- input: {settlement_id, at, transaction, block, shared, ledger, payout, receipt, events[], audit}
create or replace function note_arrival(input jsonb) returns jsonb language plpgsql as $$
begin
  update settlements set state = 'settled', transaction = input->>'transaction', shared_transaction = (input->>'shared')::boolean, block = (input->>'block')::bigint,
    reason = 'arrived_after_failure', next_attempt_at = null, updated_at = (input->>'at')::timestamptz
  where id = input->>'settlement_id' and state = 'failed';
  if not found then
    return jsonb_build_object('first', false);
  end if;
  perform ledger_direct(input->'ledger');
  perform request_payout(input->'payout');
  perform issue_receipt(input->'receipt');
  perform emit_event(event) from jsonb_array_elements(input->'events') as event;
  perform audit_event(input->'audit');
  return jsonb_build_object('first', true);
end $$;

-- Records that the refund is paid. input: {settlement_id, at, payout, receipt, events[], audit}
create or replace function finish_refund(input jsonb) returns jsonb language plpgsql as $$
begin
  if not end_payout(input->'payout') then
    return jsonb_build_object('first', false);
  end if;
  update settlements set state = 'refunded', updated_at = (input->>'at')::timestamptz where id = input->>'settlement_id';
  perform issue_receipt(input->'receipt');
  perform emit_event(event) from jsonb_array_elements(input->'events') as event;
  perform audit_event(input->'audit');
  return jsonb_build_object('first', true);
end $$;
