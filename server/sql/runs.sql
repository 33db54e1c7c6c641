-- The three transactions of a run, each a function for one run. Every step may be repeated: the same admission finds itself.

create or replace function claim_key(i jsonb, run_id text, at timestamptz) returns void language plpgsql as $$
declare
  earlier run_keys;
begin
  delete from run_keys where scope = i->>'scope' and route = i->>'route' and key = i->>'key' and expires_at <= at;
  insert into run_keys (scope, route, key, body_hash, run_id, expires_at)
  values (i->>'scope', i->>'route', i->>'key', i->>'body_hash', claim_key.run_id, (i->>'expires_at')::timestamptz)
  on conflict (scope, route, key) do nothing;
  if not found then
    select * into earlier from run_keys k where k.scope = i->>'scope' and k.route = i->>'route' and k.key = i->>'key';
    perform refuse(409, 'key_used', jsonb_build_object('run_id', earlier.run_id, 'same_body', earlier.body_hash = i->>'body_hash'));
  end if;
end $$;

create or replace function insert_run(r jsonb) returns void language plpgsql as $$
begin
  insert into runs (id, kind, tenant_id, payer, agent_id, session_id, loop_id, action, state, outcome, request_hash, request, terms,
                    price_micro, instance, admission, created_at, deadline_at, decided_seq)
  values (r->>'id', r->>'kind', r->>'tenant_id', r->>'payer', r->>'agent_id', r->>'session_id', r->>'loop_id', r->>'action', 'executing', 'pending',
          r->>'request_hash', r->'request', r->'terms', (r->>'price_micro')::bigint, r->>'instance', r->>'admission',
          (r->>'created_at')::timestamptz, (r->>'deadline_at')::timestamptz, nextval('decision_order'))
  -- A run that waited for an approval keeps its row and its id.
  on conflict (id) do update set payer = excluded.payer, agent_id = excluded.agent_id, session_id = excluded.session_id, loop_id = excluded.loop_id,
    state = 'executing', outcome = 'pending', terms = excluded.terms, price_micro = excluded.price_micro, instance = excluded.instance,
    admission = excluded.admission, deadline_at = excluded.deadline_at, decided_seq = excluded.decided_seq
    where runs.state = 'approved';
  if not found then
    perform refuse(409, 'run_exists', jsonb_build_object('run_id', r->>'id'));
  end if;
end $$;

-- A run paid from a wallet sets its price aside there when it is admitted, in escrow if that was asked; a top-up is announced.
create or replace function begin_in_wallet(i jsonb) returns void language plpgsql as $$
declare
  wallet text := i#>>'{settlement,wallet_id}';
  amount bigint := (i#>>'{settlement,amount_micro}')::bigint;
begin
  if i#>>'{run,kind}' = 'topup' then
    perform move_in_wallet(wallet, 0, 0, amount, 0);
  elsif i->'escrow' <> 'null' then
    perform hold_escrow(i->'escrow');
  else
    perform move_in_wallet(wallet, -amount, amount, 0, 0);
  end if;
end $$;

-- The other end of it. escrow: what `end_escrow` takes, for a run that has one.
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

-- Transaction A. i: {run, key?, settlement, escrow?, holds[], grants?, pending_entry?, audit?}
create or replace function admit_run(i jsonb) returns jsonb language plpgsql as $$
declare
  at timestamptz := (i#>>'{run,created_at}')::timestamptz;
  run_id text := i#>>'{run,id}';
  tenant text := i#>>'{run,tenant_id}';
  foreseen jsonb := i#>'{run,terms,ruling}';
  ruling jsonb;
begin
  select terms->'ruling' into ruling from runs where id = run_id and admission = i#>>'{run,admission}';
  if found then
    return jsonb_build_object('run_id', run_id, 'ruling', ruling);
  end if;
  perform insert_run(i->'run');
  if i->'key' <> 'null' then
    perform claim_key(i->'key', run_id, at);
  end if;
  perform reserve_nonce(i->'settlement', run_id, tenant, at);
  perform consume_grants(i, run_id, at);
  ruling := ruling_as_counted(foreseen, hold_limits(run_id, i->'holds', at));
  if ruling <> foreseen then
    update runs set terms = terms || jsonb_build_object('ruling', ruling) where id = run_id;
  end if;
  if i#>>'{settlement,wallet_id}' is not null then
    perform begin_in_wallet(i);
  end if;
  perform ledger_pend(i->'ledger');
  perform audit_event(i->'audit');
  return jsonb_build_object('run_id', run_id, 'ruling', ruling);
end $$;

-- Transaction B. The work is done and written down; only now may money move. i: {run_id, admission, result, next_attempt_at}
create or replace function keep_run(i jsonb) returns jsonb language plpgsql as $$
begin
  update runs set state = 'settling', result = i->'result'
  where id = i->>'run_id' and admission = i->>'admission' and state in ('executing', 'settling');
  if not found then
    perform refuse(409, 'run_taken_over', jsonb_build_object('run_id', i->>'run_id'));
  end if;
  update settlements set next_attempt_at = (i->>'next_attempt_at')::timestamptz where run_id = i->>'run_id' and state = 'pending';
  return '{}';
end $$;

-- A top-up has no work to wait for: what transactions A and B write is written at once.
create or replace function admit_and_keep_run(i jsonb) returns jsonb language plpgsql as $$
declare
  admitted jsonb := admit_run(i);
begin
  perform keep_run(i->'keep');
  return admitted;
end $$;

-- Transaction C. Whoever comes first, the request or the reconciler, writes the answer; the other reads it.
-- i: {run_id, at, settlement: {transaction, block, shared}, escrow?, post_id, answer: {status, body}, receipt, memory?, events[], audit}
create or replace function complete_run(i jsonb) returns jsonb language plpgsql as $$
declare
  run runs;
  paid settlements;
  at timestamptz := (i->>'at')::timestamptz;
begin
  select * into strict run from runs where id = i->>'run_id' for update;
  if run.state in ('completed', 'failed') then
    return jsonb_build_object('status', run.answer_status, 'body', run.answer_body, 'first', false);
  end if;
  if run.state <> 'settling' then
    perform refuse(409, 'run_not_settling', jsonb_build_object('state', run.state));
  end if;
  update settlements set state = 'settled', transaction = i#>>'{settlement,transaction}', shared_transaction = (i#>>'{settlement,shared}')::boolean, block = (i#>>'{settlement,block}')::bigint,
    reason = null, next_attempt_at = null, updated_at = at
  where run_id = run.id returning * into paid;
  if paid.wallet_id is not null then
    perform end_in_wallet(paid, run.kind, true, i->'escrow');
  end if;
  perform ledger_post(jsonb_build_object('id', i->>'post_id', 'pending_id', i->>'pending_id', 'created_at', at));
  -- A pre-authorisation may have held more than the price.
  perform settle_holds(run.id, true, run.price_micro);
  perform close_preauth_of(run.id, 'settled', run.price_micro, i#>>'{settlement,transaction}', i#>>'{receipt,id}', at);
  perform issue_receipt(i->'receipt');
  if i->'memory' <> 'null' then
    perform write_memory(i->'memory');
  end if;
  update runs set state = 'completed', outcome = 'completed', answer_status = (i#>>'{answer,status}')::int, answer_body = i#>>'{answer,body}', finished_at = at,
    ended_seq = nextval('decision_order')
  where id = run.id;
  perform emit_event(event) from jsonb_array_elements(i->'events') as event;
  perform audit_event(i->'audit');
  return jsonb_build_object('status', i#>'{answer,status}', 'body', i#>'{answer,body}', 'first', true);
end $$;

-- Nothing lies between the work and the money of a wallet: what transactions B and C write is written at once.
create or replace function keep_and_complete_run(i jsonb) returns jsonb language plpgsql as $$
begin
  if not exists (select 1 from runs where id = i->>'run_id' and state in ('completed', 'failed')) then
    perform keep_run(i->'keep');
  end if;
  return complete_run(i);
end $$;

-- The way out of every failure before money moved: nothing is charged, everything held goes back.
-- i: {run_id, at, reason, escrow?, void_id, answer: {status, body}, receipt?, events[], audit}
create or replace function abandon_run(i jsonb) returns jsonb language plpgsql as $$
declare
  run runs;
  given_up settlements;
  at timestamptz := (i->>'at')::timestamptz;
begin
  select * into strict run from runs where id = i->>'run_id' for update;
  if run.state in ('completed', 'failed') then
    return jsonb_build_object('status', run.answer_status, 'body', run.answer_body, 'first', false);
  end if;
  if run.state not in ('executing', 'settling') then
    perform refuse(409, 'run_not_running', jsonb_build_object('state', run.state));
  end if;
  -- The payer, and whoever was shown the payment, can still bring it to the chain: somebody has to look.
  update settlements set state = 'failed', reason = i->>'reason', updated_at = at,
    next_attempt_at = case when method = 'x402' then at + interval '60 seconds' end
  where run_id = run.id returning * into given_up;
  if given_up.wallet_id is not null then
    perform end_in_wallet(given_up, run.kind, false, i->'escrow');
  end if;
  perform ledger_void(jsonb_build_object('id', i->>'void_id', 'pending_id', i->>'pending_id', 'created_at', at));
  perform settle_holds(run.id, false);
  perform restore_grants(run.id, at);
  if i->'receipt' <> 'null' then
    perform issue_receipt(i->'receipt');
  end if;
  update runs set state = 'failed', outcome = 'failed', answer_status = (i#>>'{answer,status}')::int, answer_body = i#>>'{answer,body}', finished_at = at,
    ended_seq = nextval('decision_order')
  where id = run.id;
  perform emit_event(event) from jsonb_array_elements(i->'events') as event;
  perform audit_event(i->'audit');
  return jsonb_build_object('status', i#>'{answer,status}', 'body', i#>'{answer,body}', 'first', true);
end $$;

-- A payment that had been given up has arrived. Its run said that nothing was charged, so the money is owed back from here on.
-- i: {settlement_id, at, transaction, block, shared, ledger, payout, receipt, events[], audit}
create or replace function note_arrival(i jsonb) returns jsonb language plpgsql as $$
begin
  update settlements set state = 'settled', transaction = i->>'transaction', shared_transaction = (i->>'shared')::boolean, block = (i->>'block')::bigint,
    reason = 'arrived_after_failure', next_attempt_at = null, updated_at = (i->>'at')::timestamptz
  where id = i->>'settlement_id' and state = 'failed';
  if not found then
    return jsonb_build_object('first', false);
  end if;
  perform ledger_direct(i->'ledger');
  perform request_payout(i->'payout');
  perform issue_receipt(i->'receipt');
  perform emit_event(event) from jsonb_array_elements(i->'events') as event;
  perform audit_event(i->'audit');
  return jsonb_build_object('first', true);
end $$;

-- It has been paid back. i: {settlement_id, at, payout, receipt, events[], audit}
create or replace function finish_refund(i jsonb) returns jsonb language plpgsql as $$
begin
  if not end_payout(i->'payout') then
    return jsonb_build_object('first', false);
  end if;
  update settlements set state = 'refunded', updated_at = (i->>'at')::timestamptz where id = i->>'settlement_id';
  perform issue_receipt(i->'receipt');
  perform emit_event(event) from jsonb_array_elements(i->'events') as event;
  perform audit_event(i->'audit');
  return jsonb_build_object('first', true);
end $$;
