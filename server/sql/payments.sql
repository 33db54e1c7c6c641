-- The nonces of a batch of payments are reserved before any work is done, and kept for good.
create or replace function claim_nonces(items jsonb[]) returns void language plpgsql as $$
declare
  wanted int;
  claimed int;
  existing_run_id text;
  first_nonce jsonb := items[1]->'nonce';
begin
  wanted := count(*) from unnest(items) as item where item->'nonce' <> 'null';
  if wanted = 0 then
    return;
  end if;
  insert into nonces (payer, nonce, network, asset, run_id)
  select item#>>'{nonce,payer}', item#>>'{nonce,nonce}', item#>>'{nonce,network}', item#>>'{nonce,asset}', item->>'id'
  from unnest(items) as item where item->'nonce' <> 'null'
  on conflict (payer, nonce, network, asset) do nothing;
  get diagnostics claimed = row_count;
  if claimed < wanted then
    select existing.run_id into existing_run_id from nonces existing
    where existing.payer = first_nonce->>'payer' and existing.nonce = first_nonce->>'nonce' and existing.network = first_nonce->>'network' and existing.asset = first_nonce->>'asset';
    perform refuse(409, 'nonce_used', jsonb_build_object('run_id', existing_run_id));
  end if;
end $$;

-- Settlements that are not final, which are those of open runs: `?state=pending` and `?state=unknown` of the list, and
-- `settlements_unknown` of the control tower.
create or replace view open_settlements as
select run.terms->>'settlement_id' as id, run.id as run_id, run.tenant_id, case when run.payment is null then 'wallet' else 'x402' end as method, coalesce(run.payment_state, 'pending') as state,
       coalesce(run.payment#>>'{terms,network}', 'eip155:8453') as network, run.terms->>'asset' as asset, run.payer, run.terms->>'pay_to' as pay_to, run.price_micro as amount_micro,
       coalesce(run.payment#>>'{authorization,nonce}', run.terms->>'settlement_id') as nonce, coalesce((run.payment#>>'{authorization,validBefore}')::bigint, 0) as valid_before, run.payment,
       null::text as transaction, false as shared_transaction, null::bigint as block, run.reason, run.attempts, run.next_attempt_at, run.created_at, run.updated_at, run.wallet_id
from open_runs run where run.accounts is not null;

-- A tenant's newest settlements before a cursor, of one state, way to pay or range of time where those are given. Those paid
-- from a wallet are in the order of their runs. first_id and end_id: the ids between which those of the range are, so that
-- the indexes by id serve it too.
create or replace function tenant_settlements(tenant text, before text, only_state text, max_rows int, only_method text default null, since timestamptz default null, until timestamptz default null, first_id text default null, end_id text default null) returns setof settlements language sql stable as $$
  select * from (
    (select settlement.id, settlement.run_id, settlement.tenant_id, settlement.method, settlement.state, settlement.network, settlement.asset, settlement.payer, settlement.pay_to, settlement.amount_micro, settlement.nonce,
            settlement.valid_before, settlement.payment, settlement.transaction, settlement.shared_transaction, settlement.block, settlement.reason, settlement.attempts, settlement.next_attempt_at, settlement.created_at,
            settlement.updated_at, settlement.wallet_id
     from settlement_records settlement where settlement.tenant_id = tenant and (before is null or settlement.id < before) and (only_state is null or settlement.state = only_state)
       and (only_method is null or settlement.method = only_method)
       and (since is null or (settlement.created_at >= since and settlement.id >= first_id)) and (until is null or (settlement.created_at <= until and settlement.id < end_id))
       and coalesce(only_state not in ('pending', 'unknown'), true)
     order by settlement.id desc limit max_rows)
    union all
    (select run.terms->>'settlement_id', run.id, run.tenant_id, 'wallet', case run.state when 'completed' then 'settled' else 'failed' end, 'eip155:8453', run.terms->>'asset', run.payer, run.terms->>'pay_to',
            run.price_micro, run.terms->>'settlement_id', 0::bigint, null::jsonb, null, false, null::bigint, run.result->>'reason', 0, null::timestamptz, run.created_at, run.finished_at, run.wallet_id
     from ended_runs run
     where run.tenant_id = tenant and run.wallet_id is not null and run.kind <> 'topup' and (before is null or run.id < 'run_' || substr(before, 5))
       and (only_state is null or run.state = case only_state when 'settled' then 'completed' else only_state end)
       and (only_method is null or only_method = 'wallet')
       and (since is null or (run.created_at >= since and run.id >= 'run_' || substr(first_id, 5))) and (until is null or (run.created_at <= until and run.id < 'run_' || substr(end_id, 5)))
       and coalesce(only_state not in ('pending', 'unknown'), true)
     order by run.id desc limit max_rows)
    union all
    (select settlement.* from open_settlements settlement
     where settlement.tenant_id = tenant and (before is null or settlement.id < before) and (only_state is null or settlement.state = only_state)
       and (only_method is null or settlement.method = only_method) and (since is null or settlement.created_at >= since) and (until is null or settlement.created_at <= until)
     order by settlement.id desc limit max_rows)
  ) settlement order by settlement.id desc limit max_rows
$$;

-- Records that the outcome of a settlement is unknown, and when to check it again: in two seconds, then with back-off up to a
-- minute. The run is escalated when the outcome is still unknown ten minutes after the payment's validity ended.
-- input: {run_id, reason, at, event}
create or replace function note_unknown(input jsonb) returns jsonb language plpgsql as $$
declare
  run open_runs;
  at timestamptz := (input->>'at')::timestamptz;
begin
  select * into run from open_runs where id = input->>'run_id' and payment is not null for update;
  if not found then
    return jsonb_build_object('state', 'ended');
  end if;
  update open_runs set payment_state = 'unknown', reason = input->>'reason', attempts = attempts + 1,
    next_attempt_at = at + make_interval(secs => least(60, 2 * 2 ^ least(run.attempts, 10))), updated_at = at,
    outcome = case when extract(epoch from at) > (run.payment#>>'{authorization,validBefore}')::bigint + 600 then 'escalated' else outcome end
  where id = run.id;
  if run.payment_state = 'pending' then
    insert into unanswered_payments (run_id, tenant_id, payer, request_hash, created_at)
    values (run.id, run.tenant_id, run.payer, run.request_hash, at) on conflict do nothing;
    perform emit_event(input->'event');
  end if;
  return jsonb_build_object('state', 'unknown');
end $$;

-- Claims open runs whose payment is due for a check, for one reconciler until its lease ends; other reconcilers skip them.
create or replace function claim_settlements(claimant text, at timestamptz, lease interval, max_rows int) returns setof open_runs language sql as $$
  update open_runs set next_attempt_at = at + lease, instance = claimant
  where id in (
    select id from open_runs where payment_state is not null and next_attempt_at <= at
    order by next_attempt_at limit max_rows for update skip locked
  )
  returning *
$$;

-- The same for failed settlements: anyone who has such an authorisation can submit it until it expires.
create or replace function claim_failed_settlements(at timestamptz, lease interval, max_rows int) returns setof settlement_records language sql as $$
  update settlement_records set next_attempt_at = at + lease
  where id in (
    select id from settlement_records where state = 'failed' and next_attempt_at <= at
    order by next_attempt_at limit max_rows for update skip locked
  )
  returning *
$$;
