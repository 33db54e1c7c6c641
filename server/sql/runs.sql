-- The steps of a run, each for a batch of runs: one statement a table, one update a counter and a wallet. A refusal raises an
-- error, which undoes the batch; `run_steps` then runs each item alone, where the error tells why. Every step may be repeated:
-- it compares the admission of the run with its own.

-- Claims the idempotency keys and payment identifiers of a batch. A key that has expired may be claimed again.
create or replace function claim_keys(items jsonb[]) returns void language plpgsql as $$
declare
  wanted int;
  claimed int;
  existing record;
begin
  wanted := sum(jsonb_array_length(item->'keys')) from unnest(items) as item;
  if wanted = 0 then
    return;
  end if;
  if cardinality(items) = 1 then
    delete from run_keys using jsonb_array_elements(items[1]->'keys') as own
    where run_keys.scope = own->>'scope' and run_keys.route = own->>'route' and run_keys.key = own->>'key' and run_keys.expires_at <= (items[1]->>'created_at')::timestamptz;
  end if;
  insert into run_keys (scope, route, key, body_hash, run_id, expires_at)
  select own->>'scope', own->>'route', own->>'key', own->>'body_hash', item->>'id', (own->>'expires_at')::timestamptz
  from unnest(items) as item cross join jsonb_array_elements(item->'keys') as own
  on conflict (scope, route, key) do nothing;
  get diagnostics claimed = row_count;
  if claimed < wanted then
    select taken.run_id, taken.body_hash = own->>'body_hash' as same_body into existing from run_keys taken join jsonb_array_elements(items[1]->'keys') as own
      on taken.scope = own->>'scope' and taken.route = own->>'route' and taken.key = own->>'key'
    where taken.run_id <> items[1]->>'id' limit 1;
    perform refuse(409, 'key_used', jsonb_build_object('run_id', existing.run_id, 'same_body', existing.same_body));
  end if;
end $$;

-- Reserves the price of wallet-paid runs when they are admitted; a top-up counts as incoming. The price of a run in escrow is held there.
create or replace function begin_in_wallets(items jsonb[]) returns void language plpgsql as $$
declare
  total record;
  escrow jsonb;
begin
  for total in
    select item->>'wallet_id' as wallet_id, item->>'kind' = 'topup' as is_topup, sum((item->>'price_micro')::bigint)::bigint as amount
    from unnest(items) as item where item->>'wallet_id' is not null and item->'escrow' = 'null' group by 1, 2 order by 1, 2
  loop
    if total.is_topup then
      perform move_in_wallet(total.wallet_id, 0, 0, total.amount, 0);
    else
      perform move_in_wallet(total.wallet_id, -total.amount, total.amount, 0, 0);
    end if;
  end loop;
  for escrow in select item->'escrow' from unnest(items) as item where item->'escrow' <> 'null' loop
    perform hold_escrow(escrow);
  end loop;
end $$;

-- Completes or reverses the reservations made by `begin_in_wallets`.
create or replace function end_in_wallets(ended ended_run[], items jsonb[], success boolean) returns void language plpgsql as $$
declare
  total record;
  escrow jsonb;
begin
  for total in
    select run.wallet_id, run.kind = 'topup' as is_topup, sum(run.price_micro)::bigint as amount
    from unnest(ended) as run where run.wallet_id is not null and run.escrow_id is null group by 1, 2 order by 1, 2
  loop
    if total.is_topup then
      perform move_in_wallet(total.wallet_id, case when success then total.amount else 0 end, 0, -total.amount, 0);
    else
      perform move_in_wallet(total.wallet_id, case when success then 0 else total.amount end, -total.amount, 0, 0);
    end if;
  end loop;
  for escrow in select item->'escrow' from unnest(items) as item where item->'escrow' <> 'null' loop
    perform end_escrow(escrow);
  end loop;
end $$;

-- Transaction A. A top-up has no work to wait for: it brings its result, so that transactions A and B are one.
-- item: {id, kind, tenant_id, payer, agent_id, spender, team, key_id, tags, session_id, loop_id, request_hash, request, terms, price_micro, instance, admission, created_at,
--   deadline_at, wallet_id?, accounts[], amounts[], payment?, nonce?, keys[], escrow?, holds[], grants?, audit?, result?, next_attempt_at?}
create or replace function admit_runs(items jsonb[], repeated boolean) returns jsonb[] language plpgsql as $$
declare
  alone boolean := cardinality(items) = 1;
  stored_ruling jsonb;
  stored_holds jsonb;
  demands jsonb[];
  held jsonb[];
  all_holds jsonb[];
  rulings jsonb[];
  approved_at jsonb;
begin
  if repeated then
    select run.terms->'ruling' into stored_ruling from runs run where alone and run.id = items[1]->>'id' and run.admission = items[1]->>'admission';
    if found then
      -- Of a run that has ended meanwhile the receipt is signed.
      select run.holds into stored_holds from open_runs run where run.id = items[1]->>'id';
      return array[jsonb_build_object('ruling', stored_ruling, 'holds', coalesce(stored_holds, '[]'))];
    end if;
    if exists (select 1 from runs run where run.id in (select item->>'id' from unnest(items) as item) and run.state <> 'approved') then
      perform refuse(409, 'run_exists', jsonb_build_object('run_id', items[1]->>'id'));
    end if;
  end if;
  perform claim_keys(items);
  perform claim_nonces(items);
  perform consume_grants(item->'grants', item->>'tenant_id', item->>'id', (item->>'created_at')::timestamptz) from unnest(items) as item where item->'grants' <> 'null';
  demands := array(select item->'holds' from unnest(items) with ordinality as listed(item, place) order by place);
  held := hold_limits(demands, (items[1]->>'created_at')::timestamptz);
  rulings := array(
    select correct_assessment(listed.item#>'{terms,ruling}', listed.counted->'states') from unnest(items, held) with ordinality as listed(item, counted, place) order by place);
  perform begin_in_wallets(items);

  if exists (select 1 from unnest(items) as item where item#>>'{grants,approval_id}' is not null) then
    -- A run that waited for an approval keeps its id and the time of its request.
    with approved as (
      delete from open_runs where state = 'approved' and id in (select item->>'id' from unnest(items) as item where item#>>'{grants,approval_id}' is not null) returning id, created_at
    )
    select coalesce(jsonb_object_agg(id, created_at), '{}') into approved_at from approved;
    -- The run that waited has ended meanwhile without a charge, and its approval came back: the action is another run now.
    if exists (select 1 from unnest(items) as item join ended_runs run on run.id = item->>'id' where item#>>'{grants,approval_id}' is not null) then
      perform refuse(409, 'rules_changed');
    end if;
  end if;
  -- The holds of a pre-authorisation belong to the run now.
  all_holds := array(
    select counted->'holds' || coalesce((select preauth.holds from preauths preauth where preauth.id = item#>>'{grants,preauth_id}'), '[]')
    from unnest(items, held) with ordinality as listed(item, counted, place) order by place);
  update preauths set holds = '[]' where id in (select item#>>'{grants,preauth_id}' from unnest(items) as item where item#>>'{grants,preauth_id}' is not null);
  insert into open_runs (id, kind, tenant_id, payer, agent_id, session_id, loop_id, action, state, outcome, request_hash, request, terms, price_micro, result,
                         instance, admission, created_at, deadline_at, decided_seq, holds, wallet_id, accounts, amounts, payment, payment_state, next_attempt_at, updated_at, spender, team, key_id, tags)
  select item->>'id', item->>'kind', item->>'tenant_id', item->>'payer', item->>'agent_id', item->>'session_id', item->>'loop_id', item->>'kind',
         case when item->'result' = 'null' then 'executing' else 'settling' end, 'pending',
         item->>'request_hash', item->'request',
         case when ruling = item#>'{terms,ruling}' then item->'terms' else item->'terms' || jsonb_build_object('ruling', ruling) end,
         (item->>'price_micro')::bigint, nullif(item->'result', 'null'), item->>'instance', item->>'admission', coalesce(approved_at->>(item->>'id'), item->>'created_at')::timestamptz, (item->>'deadline_at')::timestamptz,
         nextval('decision_order'), holds, item->>'wallet_id',
         array(select jsonb_array_elements_text(item->'accounts')), array(select jsonb_array_elements_text(item->'amounts')::bigint),
         nullif(item->'payment', 'null'), case when item->'payment' <> 'null' then 'pending' end, (item->>'next_attempt_at')::timestamptz, (item->>'created_at')::timestamptz,
         item->>'spender', item->>'team', item->>'key_id', nullif(item->'tags', 'null')
  from unnest(items, all_holds, rulings) with ordinality as listed(item, holds, ruling, place) order by place;
  insert into journal (tenant_id, at, audits)
  select item->>'tenant_id', (item->>'created_at')::timestamptz, jsonb_build_array(item->'audit') from unnest(items) as item where item->>'tenant_id' is not null;
  return array(
    select jsonb_build_object('ruling', case when ruling <> item#>'{terms,ruling}' then ruling end, 'holds', holds) from unnest(items, rulings, all_holds) with ordinality as listed(item, ruling, holds, place) order by place);
end $$;

-- Transaction B. The result is stored; only now may money move. item: {run_id, admission, result, next_attempt_at}
create or replace function keep_runs(items jsonb[], repeated boolean) returns jsonb[] language plpgsql as $$
declare
  -- Named apart from the items, so that the index is used however few rows the planner believes there are.
  ids text[] := array(select item->>'run_id' from unnest(items) as item);
  kept int;
begin
  update open_runs run set state = 'settling', result = item->'result', next_attempt_at = (item->>'next_attempt_at')::timestamptz
  from unnest(items) as item
  where run.id = any(ids) and run.id = item->>'run_id' and run.admission = item->>'admission' and run.state in ('executing', 'settling');
  get diagnostics kept = row_count;
  if kept < cardinality(items) then
    perform refuse(409, 'run_taken_over', jsonb_build_object('run_id', items[1]->>'run_id'));
  end if;
  return array_fill('{}'::jsonb, array[cardinality(items)]);
end $$;

-- Moves the rows of a batch from the open runs to the ended ones and returns what the other tables need of them. A run that is
-- not open, or not in a state that may end so, is left out.
create or replace function move_to_ended(items jsonb[], final_state text) returns ended_run[] language plpgsql as $$
declare
  ids text[] := array(select item->>'run_id' from unnest(items) as item);
  ended ended_run[];
begin
  with open as (
    delete from open_runs run using unnest(items) as item
    where run.id = any(ids) and run.id = item->>'run_id' and run.state in ('executing', 'settling')
      and case final_state
        -- A payment from a wallet is settled by the same transaction that stores the result.
        when 'completed' then run.state = 'settling' or run.admission = item->>'admission'
        else run.state = coalesce(item->>'from_state', run.state) and (item->>'admission' is null or run.admission = item->>'admission')
      end
    returning run.*, item
  ), moved as (
    insert into ended_runs (id, kind, tenant_id, payer, agent_id, session_id, loop_id, action, state, outcome, request_hash, request, terms, price_micro, result,
                            answer_status, answer, answer_receipt_at, receipt_id, admission, created_at, deadline_at, finished_at, decided_seq, ended_seq, wallet_id, spender, team, key_id, tags)
    select run.id, run.kind, run.tenant_id, run.payer, run.agent_id, run.session_id, run.loop_id, run.action, final_state, final_state, run.request_hash, run.request,
           -- The answer of a completed run tells the rest, and simulations read the outcomes of its rules. A failed run may need all for a refund.
           case final_state when 'completed' then jsonb_strip_nulls(jsonb_set(run.terms - '{locks,route,pricing,pending_id,input_hash,salt,counter_salt,request_id,escrow_id}'::text[], '{ruling,policy_applied}', (
             select coalesce(jsonb_agg(distinct jsonb_build_object('policy_id', result->'policy_id', 'outcome', result->'outcome', 'verdict', result->'verdict', 'mode', result->'mode')), '[]')
             from jsonb_path_query(run.terms, '$.ruling.policy_applied[*]') as result), false)) else run.terms end,
           run.price_micro, item->'result', (item#>>'{answer,status}')::int, decode(item#>>'{answer,packed}', 'base64'), (item#>>'{answer,receipt_at}')::int, item#>>'{receipt,id}', run.admission, run.created_at,
           run.deadline_at, (item->>'at')::timestamptz, run.decided_seq, nextval('decision_order'), run.wallet_id, run.spender, run.team, run.key_id, run.tags
    from open run order by run.id
  )
  select array_agg(row(run.id, run.kind, run.tenant_id, run.agent_id, run.created_at, run.price_micro, run.holds, run.wallet_id, run.accounts, run.amounts, run.payer, run.payment, run.attempts,
    run.terms->>'settlement_id', run.terms->>'escrow_id',
    case when run.terms#>>'{ruling,approval_id}' is not null or run.terms#>>'{ruling,override_id}' is not null or run.terms#>>'{ruling,preauth_id}' is not null then run.terms->'ruling' end)::ended_run order by run.id)
  into ended from open run;
  return coalesce(ended, '{}');
end $$;

-- Transaction C. The request or the reconciler, whichever comes first, stores the response; the other reads it.
-- item: {run_id, admission?, at, transaction?, block?, shared, escrow?, ledger_id, answer: {status, packed, receipt_at}, result, cost_usd?, latency_ms?, receipt, memory?, events[], audit}
create or replace function complete_runs(items jsonb[], repeated boolean) returns jsonb[] language plpgsql as $$
declare
  ended ended_run[] := move_to_ended(items, 'completed');
begin
  if cardinality(ended) < cardinality(items) then
    return run_ended_before(items);
  end if;
  insert into settlement_records (id, run_id, tenant_id, method, state, network, asset, payer, pay_to, amount_micro, nonce, valid_before, payment, wallet_id,
                                  transaction, shared_transaction, block, attempts, created_at, updated_at)
  select run.settlement_id, run.id, run.tenant_id, 'x402', 'settled', run.payment#>>'{terms,network}', run.payment#>>'{terms,asset}', run.payer, run.payment#>>'{terms,payTo}', run.price_micro,
         run.payment#>>'{authorization,nonce}', (run.payment#>>'{authorization,validBefore}')::bigint, jsonb_build_object('signature', run.payment->'signature'), run.wallet_id,
         item->>'transaction', (item->>'shared')::boolean, (item->>'block')::bigint, run.attempts, run.created_at, (item->>'at')::timestamptz
  from unnest(ended) as run join unnest(items) as item on item->>'run_id' = run.id where run.payment is not null order by run.id;
  perform end_in_wallets(ended, items, true);
  perform write_ledger(ended, items, 'posted');
  perform settle_holds(array_agg(run.holds), array_agg(true), array_agg(run.price_micro)) from unnest(ended) as run where run.holds <> '[]';
  perform close_preauth_of(run.id, 'settled', run.price_micro, item->>'transaction', item#>>'{receipt,id}', (item#>>'{receipt,body}')::jsonb#>>'{settlement,asserted_by}', (item->>'at')::timestamptz)
  from unnest(ended) as run join unnest(items) as item on item->>'run_id' = run.id where run.grants->>'preauth_id' is not null;
  perform write_memory(item->'memory') from unnest(items) as item where item->'memory' <> 'null';
  perform write_journal(ended, items, 'completed');
  return array_fill('{"first": true}'::jsonb, array[cardinality(items)]);
end $$;

-- Transactions A, B and C in one, for runs that a wallet pays and whose work took a moment: it was done before, nothing of it was
-- written down, and until this commits nothing has happened. What the counters would change in an assessment, by a warning or
-- a rule that is gone, is left to a run that is admitted first.
-- item: {id, kind, tenant_id, payer, agent_id, spender, team, key_id, tags, session_id, loop_id, request_hash, request, terms, price_micro, admission, created_at, deadline_at,
--   wallet_id, accounts[], amounts[], keys[], holds[], grants: {rules_version, needs[]}, at, ledger_id, answer: {status, packed, receipt_at}, result, cost_usd, latency_ms, receipt, events[], audits[]}
create or replace function complete_at_once(items jsonb[], repeated boolean) returns jsonb[] language plpgsql as $$
declare
  held jsonb[];
  subscribers text[];
begin
  -- An earlier call that arrives late must not complete a run that was admitted since.
  if exists (select 1 from open_runs run where run.id = any(array(select item->>'id' from unnest(items) as item))) then
    perform refuse(409, 'run_exists', jsonb_build_object('run_id', items[1]->>'id'));
  end if;
  if repeated then
    if cardinality(items) = 1 and exists (select 1 from ended_runs run where run.id = items[1]->>'id' and run.admission = items[1]->>'admission') then
      return array['{}'::jsonb];
    end if;
    if exists (select 1 from ended_runs run where run.id = any(array(select item->>'id' from unnest(items) as item))) then
      perform refuse(409, 'run_exists', jsonb_build_object('run_id', items[1]->>'id'));
    end if;
  end if;
  perform claim_keys(items);
  perform require_rules_version(assessed.tenant_id, assessed.rules_version)
  from (select distinct item->>'tenant_id' as tenant_id, (item#>>'{grants,rules_version}')::bigint as rules_version from unnest(items) as item) assessed;
  perform require_same_room(item#>'{grants,needs}', (item->>'created_at')::timestamptz) from unnest(items) as item where item#>'{grants,needs}' <> '[]';
  held := hold_limits(array(select item->'holds' from unnest(items) with ordinality as listed(item, place) order by place), (items[1]->>'created_at')::timestamptz);
  if exists (
    select 1 from unnest(items, held) as listed(item, counted)
    where jsonb_array_length(counted->'holds') <> jsonb_array_length(item->'holds') or counted->'states' @? '$[*] ? (@.over_limit == true || @.over_soft == true)')
  then
    perform refuse(409, 'assessment_changed');
  end if;
  perform settle_holds(array_agg(counted->'holds'), array_agg(true), array_agg((item->>'price_micro')::bigint))
  from unnest(items, held) as listed(item, counted) where counted->'holds' <> '[]';
  perform move_in_wallet(total.wallet_id, -total.amount, 0, 0, 0)
  from (select item->>'wallet_id' as wallet_id, sum((item->>'price_micro')::bigint)::bigint as amount from unnest(items) as item group by 1 order by 1) total;

  insert into ended_runs (id, kind, tenant_id, payer, agent_id, session_id, loop_id, action, state, outcome, request_hash, request, terms, price_micro, result,
                          answer_status, answer, answer_receipt_at, receipt_id, admission, created_at, deadline_at, finished_at, decided_seq, ended_seq, wallet_id, spender, team, key_id, tags)
  select item->>'id', item->>'kind', item->>'tenant_id', item->>'payer', item->>'agent_id', item->>'session_id', item->>'loop_id', item->>'kind', 'completed', 'completed', item->>'request_hash', item->'request',
         item->'terms', (item->>'price_micro')::bigint, item->'result', (item#>>'{answer,status}')::int, decode(item#>>'{answer,packed}', 'base64'), (item#>>'{answer,receipt_at}')::int, item#>>'{receipt,id}',
         item->>'admission', (item->>'created_at')::timestamptz, (item->>'deadline_at')::timestamptz, (item->>'at')::timestamptz, nextval('decision_order'), nextval('decision_order'),
         item->>'wallet_id', item->>'spender', item->>'team', item->>'key_id', nullif(item->'tags', 'null')
  from unnest(items) with ordinality as listed(item, place) order by place;
  insert into ledger (id, tenant_id, status, code, ref, asset, accounts, amounts, created_at)
  select item->>'ledger_id', item->>'tenant_id', 'posted', item->>'kind', item->>'id', 'USDC',
         array(select jsonb_array_elements_text(item->'accounts')), array(select jsonb_array_elements_text(item->'amounts')::bigint), (item->>'at')::timestamptz
  from unnest(items) with ordinality as listed(item, place) order by place;
  perform write_receipts(items);
  subscribers := array(select subscription.tenant_id from webhook_subscriptions subscription where subscription.tenant_id = any(array(select item->>'tenant_id' from unnest(items) as item)) and subscription.deleted_at is null);
  insert into journal (tenant_id, at, events, audits, receipt_id, ledger_id, ended)
  select item->>'tenant_id', (item->>'at')::timestamptz, case when item->>'tenant_id' = any(subscribers) then item->'events' end, item->'audits', item#>>'{receipt,id}', item->>'ledger_id',
         ended_figures(item, item->>'kind', item->>'agent_id', 'completed', (item->>'created_at')::timestamptz, (item->>'price_micro')::bigint)
           || jsonb_build_object('spend', spend_names('completed', item->>'spender', item->>'team', item->>'key_id', item->>'wallet_id', nullif(item->'tags', 'null')))
  from unnest(items) with ordinality as listed(item, place) order by place;
  return array_fill('{}'::jsonb, array[cardinality(items)]);
end $$;

-- Ends runs that failed before money moved: nothing is charged, everything held is released.
-- item: {run_id, from_state?, admission?, at, reason, escrow?, ledger_id, answer: {status, packed, receipt_at}, result, cost_usd?, latency_ms?, receipt, events[], audit}
create or replace function abandon_runs(items jsonb[], repeated boolean) returns jsonb[] language plpgsql as $$
declare
  ended ended_run[] := move_to_ended(items, 'failed');
begin
  if cardinality(ended) < cardinality(items) then
    return run_ended_before(items);
  end if;
  -- Anyone who has seen the payment can still submit it to the chain, so the reconciler keeps watching it.
  insert into settlement_records (id, run_id, tenant_id, method, state, network, asset, payer, pay_to, amount_micro, nonce, valid_before, payment, wallet_id,
                                  reason, attempts, next_attempt_at, created_at, updated_at)
  select run.settlement_id, run.id, run.tenant_id, 'x402', 'failed', run.payment#>>'{terms,network}', run.payment#>>'{terms,asset}', run.payer, run.payment#>>'{terms,payTo}', run.price_micro,
         run.payment#>>'{authorization,nonce}', (run.payment#>>'{authorization,validBefore}')::bigint, run.payment, run.wallet_id,
         item->>'reason', run.attempts, (item->>'at')::timestamptz + interval '60 seconds', run.created_at, (item->>'at')::timestamptz
  from unnest(ended) as run join unnest(items) as item on item->>'run_id' = run.id where run.payment is not null order by run.id;
  perform end_in_wallets(ended, items, false);
  perform write_ledger(ended, items, 'voided');
  perform settle_holds(array_agg(run.holds), array_agg(false), array_agg(0::bigint)) from unnest(ended) as run where run.holds <> '[]';
  perform restore_grants(run.id, run.grants, (item->>'at')::timestamptz) from unnest(ended) as run join unnest(items) as item on item->>'run_id' = run.id where run.grants is not null;
  perform write_journal(ended, items, 'failed');
  return array_fill('{"first": true}'::jsonb, array[cardinality(items)]);
end $$;

-- What `complete_runs` and `abandon_runs` answer when a run of theirs has ended before: its response is stored.
create or replace function run_ended_before(items jsonb[]) returns jsonb[] language plpgsql as $$
begin
  if cardinality(items) = 1 and exists (select 1 from ended_runs where id = items[1]->>'run_id') then
    return array['{"first": false}'::jsonb];
  end if;
  perform refuse(409, 'run_not_open', jsonb_build_object('run_id', items[1]->>'run_id'));
end $$;

-- A voided transaction keeps the id under which it was pending; a posting has its own.
create or replace function write_ledger(ended ended_run[], items jsonb[], final_status text) returns void language sql as $$
  insert into ledger (id, tenant_id, status, code, ref, asset, accounts, amounts, created_at)
  select item->>'ledger_id', run.tenant_id, final_status, run.kind, run.id, 'USDC', run.accounts, run.amounts, (item->>'at')::timestamptz
  from unnest(ended) as run join unnest(items) as item on item->>'run_id' = run.id where run.accounts <> '{}' order by run.id
$$;

-- The receipts of ended runs.
create or replace function write_receipts(items jsonb[]) returns void language sql as $$
  insert into receipts (id, run_id, tenant_id, kind, agent_id, payer, issued_at, body, hash, prev_hash)
  select item#>>'{receipt,id}', item#>>'{receipt,run_id}', item#>>'{receipt,tenant_id}', item#>>'{receipt,kind}', item#>>'{receipt,agent_id}', item#>>'{receipt,payer}', (item#>>'{receipt,issued_at}')::timestamptz,
         item#>>'{receipt,body}', item#>>'{receipt,hash}', item#>>'{receipt,prev_hash}'
  from unnest(items) as item
$$;

-- What the sums of tenants, hours and lanes take of a run that has ended.
create or replace function ended_figures(item jsonb, kind text, agent_id text, final_state text, created_at timestamptz, price_micro bigint) returns jsonb language sql stable as $$
  select jsonb_build_object('kind', kind, 'agent_id', agent_id, 'state', final_state, 'created_at', created_at, 'price_micro', price_micro, 'cost_usd', item->'cost_usd', 'latency_ms', item->'latency_ms')
$$;

-- Who has spent it and how, of a run that was charged, as `spend_entries` says; null of any other.
create or replace function spend_names(final_state text, spender text, team text, key_id text, wallet_id text, tags jsonb) returns jsonb language sql immutable as $$
  select case when final_state = 'completed' then jsonb_strip_nulls(jsonb_build_object(
    'spender', coalesce(spender, 'key:' || key_id, 'unknown'), 'team', team, 'key_id', key_id, 'rail', case when wallet_id is null then 'x402' else 'wallet' end, 'tags', tags)) end
$$;

-- The receipts of ended runs, and one row of the journal for each run: the sequencer writes events, audit, balances, sums and the
-- place in the log from it. Events are left out when nobody has subscribed, and nothing is recorded for a guest but receipt and sums.
create or replace function write_journal(ended ended_run[], items jsonb[], final_state text) returns void language sql as $$
  select write_receipts(items);
  insert into journal (tenant_id, at, events, audits, receipt_id, ledger_id, ended)
  select run.tenant_id, (item->>'at')::timestamptz, case when exists (select 1 from webhook_subscriptions subscription where subscription.tenant_id = run.tenant_id and subscription.deleted_at is null) then item->'events' end,
         case when run.tenant_id is not null then jsonb_build_array(item->'audit') end, item#>>'{receipt,id}', case when run.tenant_id is not null and final_state = 'completed' then item->>'ledger_id' end,
         ended_figures(item, run.kind, run.agent_id, final_state, run.created_at, run.price_micro)
           || jsonb_build_object('spend', (select spend_names(final_state, who.spender, who.team, who.key_id, who.wallet_id, who.tags) from ended_runs who where who.id = run.id and final_state = 'completed'))
  from unnest(ended) as run join unnest(items) as item on item->>'run_id' = run.id order by run.id
$$;

-- The payment of a failed run has arrived after all. Its run reported no charge, so the money is owed back.
-- input: {settlement_id, at, transaction, block, shared, ledger, payout, receipt, events[], audit}
create or replace function note_arrival(input jsonb) returns jsonb language plpgsql as $$
begin
  update settlement_records set state = 'settled', transaction = input->>'transaction', shared_transaction = (input->>'shared')::boolean, block = (input->>'block')::bigint,
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
  update settlement_records set state = 'refunded', updated_at = (input->>'at')::timestamptz where id = input->>'settlement_id';
  perform issue_receipt(input->'receipt');
  perform emit_event(event) from jsonb_array_elements(input->'events') as event;
  perform audit_event(input->'audit');
  return jsonb_build_object('first', true);
end $$;

-- Drops the partitions of ended runs whose every id is below that of a time. Of a run that was paid by x402 a row stays, in the
-- default partition and without its request: its payment never runs again, and the same payment still gets its answer.
create or replace function drop_ended_runs(before timestamptz) returns int language plpgsql as $$
declare
  partition record;
  dropped int := 0;
begin
  for partition in
    select child.oid::regclass as name, substring(pg_get_expr(child.relpartbound, child.oid) from $bound$TO \('([^']+)'\)$bound$) as bound
    from pg_inherits join pg_class child on child.oid = inhrelid where inhparent = 'ended_runs'::regclass
  loop
    continue when partition.bound is null or partition.bound > first_id('run', before);
    create temporary table paid_runs on commit drop as select * from ended_runs with no data;
    execute format('insert into paid_runs select run.* from ended_runs run where run.tableoid = %L::regclass and exists (select 1 from settlement_records settlement where settlement.run_id = run.id and settlement.method = %L)', partition.name, 'x402');
    update paid_runs set request = '{}';
    execute format('drop table %s', partition.name);
    insert into ended_runs select * from paid_runs;
    drop table paid_runs;
    insert into retention (table_name, dropped_below) values ('ended_runs', partition.bound)
    on conflict (table_name) do update set dropped_below = greatest(retention.dropped_below, excluded.dropped_below);
    dropped := dropped + 1;
  end loop;
  return dropped;
end $$;
