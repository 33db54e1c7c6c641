-- The nonce is reserved before any work is done. i: {id, method, network, asset, payer, pay_to, amount_micro, nonce, valid_before, payment, wallet_id?}
create or replace function reserve_nonce(i jsonb, run_id text, tenant_id text, at timestamptz) returns void language plpgsql as $$
declare
  earlier text;
begin
  insert into settlements (id, run_id, tenant_id, method, state, network, asset, payer, pay_to, amount_micro, nonce, valid_before, payment, wallet_id, created_at, updated_at)
  values (i->>'id', reserve_nonce.run_id, reserve_nonce.tenant_id, i->>'method', 'pending', i->>'network', i->>'asset', i->>'payer', i->>'pay_to',
          (i->>'amount_micro')::bigint, i->>'nonce', (i->>'valid_before')::bigint, i->'payment', i->>'wallet_id', at, at)
  on conflict (network, asset, payer, nonce) do nothing;
  if not found then
    select s.run_id into earlier from settlements s
    where s.network = i->>'network' and s.asset = i->>'asset' and s.payer = i->>'payer' and s.nonce = i->>'nonce';
    perform refuse(409, 'nonce_used', jsonb_build_object('run_id', earlier));
  end if;
end $$;

-- Writes down that the outcome of a settlement is not known, and when to ask again: in two seconds, then with back-off
-- up to a minute. A payment that is still unknown ten minutes after it can no longer be used is shown as escalated.
-- i: {settlement_id, reason, at, event}
create or replace function note_unknown(i jsonb) returns jsonb language plpgsql as $$
declare
  before settlements;
  at timestamptz := (i->>'at')::timestamptz;
begin
  select * into strict before from settlements where id = i->>'settlement_id' for update;
  if before.state not in ('pending', 'unknown') then
    return jsonb_build_object('state', before.state);
  end if;
  update settlements set state = 'unknown', reason = i->>'reason', attempts = attempts + 1,
    next_attempt_at = at + make_interval(secs => least(60, 2 * 2 ^ least(before.attempts, 10))), updated_at = at
  where id = before.id;
  if extract(epoch from at) > before.valid_before + 600 then
    update runs set outcome = 'escalated' where id = before.run_id;
  end if;
  if before.state = 'pending' then
    perform emit_event(i->'event');
  end if;
  return jsonb_build_object('state', 'unknown');
end $$;

-- Hands due settlements to one reconciler for the length of its lease; others skip them.
create or replace function claim_settlements(at timestamptz, lease interval, most int) returns setof settlements language sql as $$
  update settlements set next_attempt_at = at + lease
  where id in (
    select id from settlements where state in ('pending', 'unknown') and next_attempt_at <= at
    order by next_attempt_at limit most for update skip locked
  )
  returning *
$$;

-- The same for payments that were given up: whoever has such an authorisation can still use it until it expires.
create or replace function claim_given_up(at timestamptz, lease interval, most int) returns setof settlements language sql as $$
  update settlements set next_attempt_at = at + lease
  where id in (
    select id from settlements where state = 'failed' and next_attempt_at <= at
    order by next_attempt_at limit most for update skip locked
  )
  returning *
$$;
