-- The nonce is reserved before any work is done. input: {id, method, network, asset, payer, pay_to, amount_micro, nonce, valid_before, payment, wallet_id?}
create or replace function reserve_nonce(input jsonb, run_id text, tenant_id text, at timestamptz) returns void language plpgsql as $$
declare
  existing_run_id text;
begin
  insert into settlements (id, run_id, tenant_id, method, state, network, asset, payer, pay_to, amount_micro, nonce, valid_before, payment, wallet_id, created_at, updated_at)
  values (input->>'id', reserve_nonce.run_id, reserve_nonce.tenant_id, input->>'method', 'pending', input->>'network', input->>'asset', input->>'payer', input->>'pay_to',
          (input->>'amount_micro')::bigint, input->>'nonce', (input->>'valid_before')::bigint, input->'payment', input->>'wallet_id', at, at)
  on conflict (network, asset, payer, nonce) do nothing;
  if not found then
    select settlement.run_id into existing_run_id from settlements settlement
    where settlement.network = input->>'network' and settlement.asset = input->>'asset' and settlement.payer = input->>'payer' and settlement.nonce = input->>'nonce';
    perform refuse(409, 'nonce_used', jsonb_build_object('run_id', existing_run_id));
  end if;
end $$;

-- Records that the outcome of a settlement is unknown, and when to check it again: in two seconds, then with back-off up to a
-- minute. The run is escalated when the outcome is still unknown ten minutes after the payment's validity ended.
-- input: {settlement_id, reason, at, event}
create or replace function note_unknown(input jsonb) returns jsonb language plpgsql as $$
declare
  settlement settlements;
  at timestamptz := (input->>'at')::timestamptz;
begin
  select * into strict settlement from settlements where id = input->>'settlement_id' for update;
  if settlement.state not in ('pending', 'unknown') then
    return jsonb_build_object('state', settlement.state);
  end if;
  update settlements set state = 'unknown', reason = input->>'reason', attempts = attempts + 1,
    next_attempt_at = at + make_interval(secs => least(60, 2 * 2 ^ least(settlement.attempts, 10))), updated_at = at
  where id = settlement.id;
  if extract(epoch from at) > settlement.valid_before + 600 then
    update runs set outcome = 'escalated' where id = settlement.run_id;
  end if;
  if settlement.state = 'pending' then
    perform emit_event(input->'event');
  end if;
  return jsonb_build_object('state', 'unknown');
end $$;

-- Claims due settlements for one reconciler until its lease ends; other reconcilers skip them.
create or replace function claim_settlements(at timestamptz, lease interval, max_rows int) returns setof settlements language sql as $$
  update settlements set next_attempt_at = at + lease
  where id in (
    select id from settlements where state in ('pending', 'unknown') and next_attempt_at <= at
    order by next_attempt_at limit max_rows for update skip locked
  )
  returning *
$$;

-- The same for failed settlements: anyone who has such an authorisation can submit it until it expires.
create or replace function claim_failed_settlements(at timestamptz, lease interval, max_rows int) returns setof settlements language sql as $$
  update settlements set next_attempt_at = at + lease
  where id in (
    select id from settlements where state = 'failed' and next_attempt_at <= at
    order by next_attempt_at limit max_rows for update skip locked
  )
  returning *
$$;
