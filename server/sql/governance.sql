-- Raises the version of a tenant's rules and notifies every process.
create or replace function rules_changed(tenant text) returns void language sql as $$
  insert into governance_versions (tenant_id, version) values (tenant, 1)
  on conflict (tenant_id) do update set version = governance_versions.version + 1;
  select pg_notify('governance', tenant)
$$;

-- Refuses an action that was assessed by rules that have changed since; the caller assesses it again.
create or replace function require_rules_version(tenant text, assessed_version bigint) returns void language plpgsql as $$
begin
  if assessed_version is distinct from coalesce((select version from governance_versions where tenant_id = tenant), 0) then
    perform refuse(409, 'rules_changed');
  end if;
end $$;

-- Consumes the approval, the override and the pre-authorisation of an admission, each once. The caller takes over the holds of
-- the pre-authorisation.
-- grants: {rules_version, action_hash, agent_id, amount_micro, merchant, needs[]?, approval_id?, override_id?, preauth_id?}; a guest has none.
create or replace function consume_grants(grants jsonb, tenant text, run_id text, at timestamptz) returns void language plpgsql as $$
begin
  if tenant is null or grants->>'rules_version' is null then
    return;
  end if;
  perform require_rules_version(tenant, (grants->>'rules_version')::bigint);
  if grants ? 'needs' then
    perform require_same_room(grants->'needs', at);
  end if;
  if grants->>'approval_id' is not null then
    perform use_approval(grants, tenant, run_id, at);
  end if;
  if grants->>'override_id' is not null then
    perform use_override(grants, tenant, run_id, at);
  end if;
  if grants->>'preauth_id' is not null then
    update preauths preauth set status = 'in_use', taken_by_run = true
    where preauth.id = grants->>'preauth_id' and preauth.tenant_id = tenant and preauth.status = 'open' and preauth.expires_at > at and preauth.run_id = consume_grants.run_id
      and preauth.agent_id = grants->>'agent_id' and preauth.merchant_id = grants->>'merchant' and preauth.amount_micro >= (grants->>'amount_micro')::bigint;
    if not found then
      perform refuse(409, 'preauth_used');
    end if;
  end if;
end $$;

create or replace function use_approval(grants jsonb, tenant text, consumer_id text, at timestamptz) returns void language plpgsql as $$
begin
  update approvals set consumed_by = consumer_id, consumed_at = at, start_at = null
  where id = grants->>'approval_id' and tenant_id = tenant and status = 'approved' and consumed_by is null and lapsed_at is null and expires_at > at
    and action_hash = grants->>'action_hash';
  if not found then
    perform refuse(409, 'approval_used');
  end if;
end $$;

create or replace function use_override(grants jsonb, tenant text, consumer_id text, at timestamptz) returns void language plpgsql as $$
begin
  update overrides set used_by = consumer_id, used_at = at
  where id = grants->>'override_id' and tenant_id = tenant and used_by is null and expires_at > at
    and agent_id = grants->>'agent_id' and merchant = grants->>'merchant' and amount_micro = (grants->>'amount_micro')::bigint;
  if not found then
    perform refuse(409, 'override_used');
  end if;
end $$;

-- A run that failed without a charge returns its approval and its override. Its pre-authorisation is closed as failed.
create or replace function restore_grants(run_id text, ruling jsonb, at timestamptz) returns void language plpgsql as $$
begin
  if ruling->>'approval_id' is not null then
    update approvals set consumed_by = null, consumed_at = null where consumed_by = restore_grants.run_id;
  end if;
  if ruling->>'override_id' is not null then
    update overrides set used_by = null, used_at = null where used_by = restore_grants.run_id;
  end if;
  if ruling->>'preauth_id' is not null then
    perform close_preauth_of(restore_grants.run_id, 'failed', 0, null, null, 'ledger', at);
  end if;
end $$;

-- Closes the pre-authorisation that a run took over; `asserted` is who says that the run was paid.
create or replace function close_preauth_of(for_run_id text, end_outcome text, charged bigint, paid_transaction text, receipt_ref text, asserted text, at timestamptz) returns void language sql as $$
  update preauths set status = 'closed', closed_at = at, close_outcome = end_outcome, charged_micro = charged, late = at >= close_by,
    transaction = paid_transaction, receipt_id = receipt_ref, verified_onchain = case when end_outcome = 'settled' and asserted = 'chain' then true end,
    settlement_status = end_outcome, asserted_by = asserted, ended_seq = nextval('decision_order')
  where run_id = for_run_id and taken_by_run and status in ('in_use', 'escalated')
$$;

-- Corrects an assessment by the counters as they were when the run was admitted: warnings of rules that only warn, and the
-- soft limits of budgets. counter_states: the result of `hold_limits`.
create or replace function correct_assessment(assessment jsonb, counter_states jsonb) returns jsonb language plpgsql immutable as $$
declare
  results jsonb;
  warned boolean;
  budget_warned boolean;
begin
  if jsonb_array_length(counter_states) = 0 then
    return assessment;
  end if;
  -- Nothing to correct: no counter is past a limit, and nothing was said to be.
  if not counter_states @? '$[*] ? (@.over_limit == true || @.over_soft == true)' and not assessment->'policy_applied' @? '$[*] ? (@.outcome == "warning" || @.verdict == "blocked")' then
    return assessment;
  end if;
  select jsonb_agg(case
           when counter.value is null then result.value
           when result.value ? 'budget_id' then result.value || jsonb_build_object('outcome', case when (counter.value->>'over_soft')::boolean then 'warning' else 'pass' end)
           when result.value->>'mode' = 'enforce' then result.value
           else result.value || jsonb_build_object(
             'verdict', case when (counter.value->>'over_limit')::boolean then 'blocked' else 'pass' end,
             'outcome', case when (counter.value->>'over_limit')::boolean and result.value->>'mode' = 'warn' then 'warning' else 'pass' end)
         end order by result.place)
  into results
  from jsonb_array_elements(assessment->'policy_applied') with ordinality as result(value, place)
  left join jsonb_array_elements(counter_states) as counter(value) on counter.value->>'scope' = result.value->>'counter';
  if results is null or results = assessment->'policy_applied' then
    return assessment;
  end if;
  select coalesce(bool_or(value->>'outcome' = 'warning'), false), coalesce(bool_or(value->>'outcome' = 'warning' and value ? 'budget_id'), false)
  into warned, budget_warned from jsonb_array_elements(results);
  return assessment || jsonb_build_object(
    'policy_applied', results,
    'decision', case when assessment->>'decision' in ('approved', 'warning') then case when warned then 'warning' else 'approved' end else assessment->>'decision' end,
    'budget_outcome', case when assessment->>'budget_outcome' in ('pass', 'warning') then case when budget_warned then 'warning' else 'pass' end else assessment->>'budget_outcome' end);
end $$;

-- A refusal is recorded only while every counter still has, or still lacks, the room it had when the refusal was assessed.
-- Otherwise the recorded decisions could contradict each other, so the caller assesses again.
-- needs: [{scope, period, amount_micro, room}]
create or replace function require_same_room(needs jsonb, at timestamptz) returns void language plpgsql as $$
begin
  if exists (
    select 1 from jsonb_array_elements(needs) as need
    left join limit_definitions definition on definition.scope = need->>'scope'
    where definition.scope is null
       or (counter_use(need->>'scope', need->>'period', at) + (need->>'amount_micro')::bigint <= definition.limit_micro) <> (need->>'room')::boolean
  ) then
    perform refuse(409, 'room_changed');
  end if;
end $$;

-- Rows made before traces had a limit may repeat whole lists: of a large one the first results are shown, without lists.
create or replace function bounded_trace(results jsonb) returns jsonb language sql immutable as $$
  select case when octet_length(results::text) <= 131072 then results
    else (
      select jsonb_agg(
        case when jsonb_typeof(result->'limit') = 'array' then result || jsonb_build_object('limit', jsonb_build_object('entries', jsonb_array_length(result->'limit'))) else result end
          #- '{smallest_change,from}' #- '{smallest_change,to}' order by place)
      from jsonb_array_elements(jsonb_path_query_array(results, '$[0 to 99]')) with ordinality as listed(result, place))
    end
$$;

-- The results of a decision: from the traces, or as rows made before there were traces have them.
create or replace function trace_of(tenant text, trace_hash text, results jsonb) returns jsonb language sql stable as $$
  select coalesce((select trace.results from rule_traces trace where trace.tenant_id = tenant and trace.hash = trace_hash), bounded_trace(results))
$$;

-- What a simulation needs of a recorded ruling: the different outcomes, and which of them are those of the replaced policy.
create or replace function recorded_outcomes(tenant text, ruling jsonb, replaced text) returns jsonb language sql stable as $$
  select coalesce(jsonb_agg(distinct jsonb_build_object('policy_id', case when result->>'policy_id' = replaced then replaced end,
    'outcome', result->'outcome', 'verdict', result->'verdict', 'mode', result->'mode')), '[]')
  from jsonb_array_elements(case when ruling->>'trace_hash' is null then ruling->'policy_applied'
    else (select trace.results from rule_traces trace where trace.tenant_id = tenant and trace.hash = ruling->>'trace_hash') end) as result
$$;

-- How many messages about approvals a tenant may cause in an hour, so that nobody floods a mailbox through the service.
create or replace function approval_messages_per_hour() returns int language sql immutable as 'select 500';

create or replace function approval_messages_left(tenant text, at timestamptz) returns int language sql stable as $$
  select greatest(0, approval_messages_per_hour() - count(*)::int) from approval_messages
  where tenant_id = tenant and created_at > at - interval '1 hour'
$$;

-- Writes the intent to tell every recipient of the tenant's active channels, in the transaction that records the approval.
-- Messages beyond the hourly limit are recorded as failed.
create or replace function queue_approval_messages(tenant text, domain text, approval_id text, at timestamptz) returns void language sql as $$
  insert into approval_messages (id, tenant_id, channel_id, recipient_id, domain, approval_id, state, last_error, next_attempt_at, created_at)
  select 'msg_' || regexp_replace(queue_approval_messages.approval_id, '^[a-z]+_', '') || '-' || position, tenant, channel_id, recipient_id, queue_approval_messages.domain,
         queue_approval_messages.approval_id, case when position <= room then 'pending' else 'failed' end,
         case when position > room then 'more than ' || approval_messages_per_hour() || ' messages in an hour' end, case when position <= room then at end, at
  from (
    select channel.id as channel_id, recipient.id as recipient_id, row_number() over (order by recipient.id) as position
    from approval_channels channel join approval_recipients recipient on recipient.channel_id = channel.id and recipient.removed_at is null
    where channel.tenant_id = tenant and channel.is_active and channel.deleted_at is null
  ) as addressed, lateral (select approval_messages_left(tenant, at) as room) as allowance
$$;

-- Records a tenant's refusal: its row, the decision, the approval it asks for, audit and events.
-- input: {run?, preauth?, decision, approval?, needs[], rules_version, audit, events[], asked_event?}
-- The same action, requested again by the same identity while its approval is pending, gets that approval.
create or replace function record_refusal(input jsonb) returns jsonb language plpgsql as $$
declare
  decision jsonb := input->'decision';
  approval jsonb := input->'approval';
  run jsonb := input->'run';
  preauth jsonb := input->'preauth';
  at timestamptz := (decision->>'created_at')::timestamptz;
  existing approvals;
begin
  if exists (select 1 from decisions where id = decision->>'id') then
    return jsonb_build_object('decision_id', decision->>'id', 'run_id', decision->>'run_id', 'preauth_id', decision->>'preauth_id', 'approval_id', approval->>'id');
  end if;
  perform require_rules_version(decision->>'tenant_id', (input->>'rules_version')::bigint);
  perform require_same_room(input->'needs', at);
  if approval <> 'null' then
    select * into existing from approvals
    where tenant_id = decision->>'tenant_id' and action_hash = approval->>'action_hash' and consumed_by is null and lapsed_at is null and status <> 'rejected' and expires_at > at
      and approval->'same_identity' ? requested_by
    order by id desc limit 1;
    if found then
      return jsonb_build_object('decision_id', existing.decision_id, 'run_id', existing.run_id, 'preauth_id', existing.preauth_id, 'approval_id', existing.id);
    end if;
    -- An expired approval does not block a new one, even before the sweep has marked it.
    for existing in
      update approvals set status = 'rejected', resolution = 'expired', resolved_at = at
      where tenant_id = decision->>'tenant_id' and action_hash = approval->>'action_hash' and status = 'pending' and expires_at <= at returning *
    loop
      perform end_refused(existing, at);
    end loop;
  end if;
  if run <> 'null' then
    if approval <> 'null' then
      insert into open_runs (id, kind, tenant_id, agent_id, session_id, loop_id, action, state, outcome, request_hash, request, terms, price_micro, created_at, deadline_at, decided_seq, updated_at, spender, team, key_id, tags)
      values (run->>'id', run->>'kind', decision->>'tenant_id', decision->>'agent_id', run->>'session_id', run->>'loop_id', run->>'kind', 'pending_approval', 'pending',
              run->>'request_hash', run->'request', run->'terms', (decision->>'amount_micro')::bigint, at, at, nextval('decision_order'), at, decision->>'spender', decision->>'team', decision->>'asked_by', nullif(decision->'tags', 'null'));
    else
      insert into ended_runs (id, kind, tenant_id, agent_id, session_id, loop_id, action, state, outcome, request_hash, request, terms, price_micro, created_at, deadline_at, decided_seq, spender, team, key_id, tags)
      values (run->>'id', run->>'kind', decision->>'tenant_id', decision->>'agent_id', run->>'session_id', run->>'loop_id', run->>'kind', 'blocked', 'blocked',
              run->>'request_hash', run->'request', run->'terms', (decision->>'amount_micro')::bigint, at, at, nextval('decision_order'), decision->>'spender', decision->>'team', decision->>'asked_by', nullif(decision->'tags', 'null'));
      perform journal_ended(blocked, at) from ended_runs blocked where blocked.id = run->>'id';
    end if;
  end if;
  if preauth <> 'null' then
    perform insert_preauth(preauth || jsonb_build_object('status', case when approval <> 'null' then 'pending_approval' else 'rejected' end, 'approval_id', approval->>'id'));
  end if;
  insert into rule_traces (tenant_id, hash, results, created_at) values (decision->>'tenant_id', decision->>'trace_hash', decision->'results', at)
  on conflict (tenant_id, hash) do nothing;
  insert into decisions (id, tenant_id, kind, run_id, preauth_id, agent_id, merchant, amount_micro, outcome, error, message, overridable, results, trace_hash, action_hash, asked_by, created_at, spender, team, tags)
  values (decision->>'id', decision->>'tenant_id', decision->>'kind', decision->>'run_id', decision->>'preauth_id', decision->>'agent_id', decision->>'merchant', (decision->>'amount_micro')::bigint, decision->>'outcome',
          decision->>'error', decision->>'message', (decision->>'overridable')::boolean, '[]', decision->>'trace_hash', decision->>'action_hash', decision->>'asked_by', at, decision->>'spender', decision->>'team', nullif(decision->'tags', 'null'));
  if approval <> 'null' then
    insert into approvals (id, tenant_id, kind, status, action, agent_id, run_id, preauth_id, decision_id, requested_by, reason, amount_micro, merchant,
                           risk_summary, action_hash, approvals_required, separate_approver, expires_at, created_at, spender, team, tags, content, rule, payment_method)
    values (approval->>'id', decision->>'tenant_id', decision->>'kind', 'pending', approval->>'action', decision->>'agent_id', decision->>'run_id', decision->>'preauth_id', decision->>'id', decision->>'asked_by',
            approval->>'reason', (decision->>'amount_micro')::bigint, decision->>'merchant', approval->'risk_summary', approval->>'action_hash', (approval->>'approvals_required')::int,
            (approval->>'separate_approver')::boolean, (approval->>'expires_at')::timestamptz, at, decision->>'spender', decision->>'team', nullif(decision->'tags', 'null'),
            approval->>'content', approval->'rule', approval->>'payment_method');
    perform queue_approval_messages(decision->>'tenant_id', 'core', approval->>'id', at);
  end if;
  perform audit_event(input->'audit');
  perform emit_event(event) from jsonb_array_elements(input->'events') as event;
  return jsonb_build_object('decision_id', decision->>'id', 'run_id', decision->>'run_id', 'preauth_id', decision->>'preauth_id', 'approval_id', approval->>'id');
end $$;

create or replace function insert_preauth(preauth jsonb) returns void language sql as $$
  insert into preauths (id, tenant_id, run_id, status, agent_id, mandate_id, merchant_id, merchant, amount_micro, asset, network, purpose, request_hash,
                        action_hash, policy_hash, policy_results, decision_id, override_id, approval_id, ttl_seconds, asked_by, created_at,
                        issued_at, expires_at, close_by, locks, decided_seq, holds, payer, spender, team, tags, named_mandate_id)
  values (preauth->>'id', preauth->>'tenant_id', preauth->>'run_id', preauth->>'status', preauth->>'agent_id', preauth->>'mandate_id', preauth->>'merchant_id', preauth->'merchant',
          (preauth->>'amount_micro')::bigint, preauth->>'asset', preauth->>'network', preauth->>'purpose', preauth->>'request_hash', preauth->>'action_hash', preauth->>'policy_hash',
          preauth->'policy_results', preauth->>'decision_id', preauth->>'override_id', preauth->>'approval_id', (preauth->>'ttl_seconds')::int, preauth->>'asked_by',
          (preauth->>'created_at')::timestamptz, (preauth->>'issued_at')::timestamptz, (preauth->>'expires_at')::timestamptz, (preauth->>'close_by')::timestamptz,
          array(select jsonb_array_elements_text(preauth->'locks')), nextval('decision_order'), coalesce(preauth->'holds', '[]'), preauth->>'payer',
          preauth->>'spender', preauth->>'team', nullif(preauth->'tags', 'null'), preauth->>'named_mandate_id')
$$;

-- Opens a pre-authorisation: its holds, the grants it uses, its row. input: {preauth, holds[], grants, audit, events[]}
create or replace function open_preauth(input jsonb) returns jsonb language plpgsql as $$
declare
  preauth jsonb := input->'preauth';
  grants jsonb := input->'grants';
  at timestamptz := (preauth->>'created_at')::timestamptz;
  held jsonb;
begin
  perform require_rules_version(preauth->>'tenant_id', (grants->>'rules_version')::bigint);
  perform require_same_room(grants->'needs', at);
  if grants->>'override_id' is not null then
    perform use_override(grants, preauth->>'tenant_id', preauth->>'id', at);
  end if;
  held := (hold_limits(array[input->'holds'], at))[1];
  preauth := preauth || jsonb_build_object('holds', held->'holds',
    'policy_results', correct_assessment(jsonb_build_object('policy_applied', preauth->'policy_results'), held->'states')->'policy_applied');
  perform insert_preauth(preauth || jsonb_build_object('status', 'open'));
  perform audit_event(input->'audit');
  perform emit_event(event) from jsonb_array_elements(input->'events') as event;
  return preauth->'policy_results';
end $$;

-- How many other pre-authorisations a transaction has closed with transfers of this amount. A transfer is one payment of a tenant. What
-- another tenant has reported does not count: it may not have been that tenant's payment. One transaction may pay several
-- merchants, so pre-authorisations for another address are not counted.
create or replace function closed_by_transaction(preauth preauths, paid_transaction text, charged bigint) returns bigint language sql stable as $$
  select count(*) from preauths other where other.transaction = paid_transaction and other.charged_micro = charged and other.verified_onchain
    and other.id <> preauth.id and other.tenant_id = preauth.tenant_id and coalesce(other.payer = preauth.payer, true)
    and coalesce(lower(other.merchant->>'pay_to') = lower(preauth.merchant->>'pay_to'), true)
$$;

-- How many other pre-authorisations, of any tenant, have named this transaction for a payment of the same amount to the same address.
create or replace function named_transaction(preauth preauths, paid_transaction text) returns bigint language sql stable as $$
  select count(*) from preauths other where other.transaction = paid_transaction and other.charged_micro = preauth.charged_micro
    and other.id <> preauth.id and other.settlement_status in ('settled', 'reported')
    and coalesce(lower(other.merchant->>'pay_to') = lower(preauth.merchant->>'pay_to'), true)
$$;

-- Closes a pre-authorisation; closing it again is refused.
-- input: {preauth_id, tenant_id, at, outcome, charged_micro, transaction?, verified_onchain?, matching?, settlement_status, asserted_by, check_at?,
--   receipt, receipt_salt?, receipt_counters, holds[], paid_run_id?, audit, events[]}
-- holds: what the receipt says that was counted.
-- paid_run_id: the run that the payment was for. It counts the money itself, so the hold is released.
-- matching: the number of transfers of the transaction that match; each can close one pre-authorisation.
-- check_at: when the chain is asked again about a payment that nobody but the tenant has seen.
create or replace function close_preauth(input jsonb) returns jsonb language plpgsql as $$
declare
  preauth preauths;
  at timestamptz := (input->>'at')::timestamptz;
  charged bigint := (input->>'charged_micro')::bigint;
begin
  select * into preauth from preauths where id = input->>'preauth_id' and tenant_id = input->>'tenant_id' for update;
  if not found then
    perform refuse(404, 'no_preauth');
  end if;
  if preauth.status not in ('open', 'escalated') or (preauth.status = 'escalated' and preauth.taken_by_run) then
    perform refuse(409, 'preauth_' || preauth.status);
  end if;
  if preauth.holds <> input->'holds' then
    perform refuse(409, 'holds_changed');
  end if;
  if charged > preauth.amount_micro then
    perform refuse(409, 'above_reserved');
  end if;
  if (input->>'matching')::int <= closed_by_transaction(preauth, input->>'transaction', charged) then
    perform refuse(409, 'transaction_used');
  end if;
  perform settle_holds(array[preauth.holds], array[input->>'outcome' = 'settled' and input->>'paid_run_id' is null], array[charged]);
  update preauths set holds = '[]', status = 'closed', closed_at = at, close_outcome = input->>'outcome', charged_micro = charged, late = at >= preauth.close_by,
    transaction = input->>'transaction', verified_onchain = (input->>'verified_onchain')::boolean, receipt_id = input#>>'{receipt,id}', receipt_salt = input->>'receipt_salt', receipt_counters = input->'receipt_counters',
    settlement_status = input->>'settlement_status', asserted_by = input->>'asserted_by', settlement_check_at = (input->>'check_at')::timestamptz, paid_run_id = input->>'paid_run_id', ended_seq = nextval('decision_order')
  where id = preauth.id;
  perform issue_receipt(input->'receipt');
  perform audit_event(input->'audit');
  perform emit_event(event) from jsonb_array_elements(input->'events') as event;
  return jsonb_build_object('charged', charged::text, 'released', (preauth.amount_micro - charged)::text, 'late', at >= preauth.close_by);
end $$;

-- What the chain shows of a reported close, once: the payment, or that there is none. The amount stays counted either way: the tenant
-- said that it was spent, and to count less would let whoever spends report a payment that nobody can find, and spend again.
-- transaction: that of the close, or the one that was found for a close which names none. Nobody named that one, so it is refused
-- as soon as any pre-authorisation, of whatever tenant, has named it.
-- input: {preauth_id, settlement_status, reason?, matching?, transaction?, receipt, audit, events[]}
create or replace function correct_close(input jsonb) returns jsonb language plpgsql as $$
declare
  preauth preauths;
begin
  select * into strict preauth from preauths where id = input->>'preauth_id' for update;
  if preauth.settlement_status <> 'reported' then
    return jsonb_build_object('corrected', false);
  end if;
  if (input->>'matching')::int <= closed_by_transaction(preauth, input->>'transaction', preauth.charged_micro) then
    perform refuse(409, 'transaction_used');
  end if;
  if preauth.transaction is null and (input->>'matching')::int <= named_transaction(preauth, input->>'transaction') then
    perform refuse(409, 'transaction_used');
  end if;
  update preauths set transaction = input->>'transaction', settlement_status = input->>'settlement_status', asserted_by = 'chain', verified_onchain = input->>'settlement_status' = 'settled',
    correction_receipt_id = input#>>'{receipt,id}', correction_reason = input->>'reason', settlement_check_at = null
  where id = preauth.id;
  perform issue_receipt(input->'receipt');
  perform audit_event(input->'audit');
  perform emit_event(event) from jsonb_array_elements(input->'events') as event;
  return jsonb_build_object('corrected', true);
end $$;

-- A pre-authorisation that was not closed in time. Its hold stays counted, because it is not known whether the money moved.
-- input: {preauth_id, at, audit, events[]}
create or replace function escalate_preauth(input jsonb) returns jsonb language plpgsql as $$
declare
  preauth preauths;
  at timestamptz := (input->>'at')::timestamptz;
begin
  select * into strict preauth from preauths where id = input->>'preauth_id' for update;
  if preauth.status not in ('open', 'in_use') or preauth.close_by > at then
    return jsonb_build_object('escalated', false);
  end if;
  update preauths set status = 'escalated', escalated_at = at where id = preauth.id;
  if preauth.taken_by_run then
    update open_runs set outcome = 'escalated' where id = preauth.run_id and state in ('executing', 'settling');
  end if;
  perform audit_event(input->'audit');
  perform emit_event(event) from jsonb_array_elements(input->'events') as event;
  return jsonb_build_object('escalated', true);
end $$;

-- One vote on an approval. One rejection ends it; it passes with the required number of approvals.
-- same_person: the keys that are the same identity as the voter. It may vote about what it asked for itself only if
-- may_decide_for_itself; key_count is the number of keys that the tenant had when that was judged.
-- input: {approval_id, tenant_id, key_id, same_person[], may_decide_for_itself, key_count, decision, reason?, at, approved: {preauth?, holds?, grants?, audit, events[]}, rejected: {audit, events[]}, voted: {audit, events[]}}
create or replace function resolve_approval(input jsonb) returns jsonb language plpgsql as $$
declare
  approval approvals;
  at timestamptz := (input->>'at')::timestamptz;
  approve_votes int;
  own boolean;
  approved jsonb := input->'approved';
  preauth jsonb := approved->'preauth';
  grants jsonb := approved->'grants';
begin
  select * into approval from approvals where id = input->>'approval_id' and tenant_id = input->>'tenant_id' for update;
  if not found then
    perform refuse(404, 'no_approval');
  end if;
  if approval.status <> 'pending' then
    perform refuse(409, 'resolved', jsonb_build_object('resolution', approval.resolution));
  end if;
  if approval.expires_at <= at then
    perform refuse(409, 'expired');
  end if;
  -- A key that was made meanwhile may have voted already, as the same identity.
  if (select count(*) from api_keys where tenant_id = approval.tenant_id) <> (input->>'key_count')::int then
    perform refuse(409, 'keys_changed');
  end if;
  own := input->'same_person' ? approval.requested_by;
  if own and not (input->>'may_decide_for_itself')::boolean then
    perform refuse(403, 'own_request');
  end if;
  if own and approval.separate_approver then
    perform refuse(403, 'separate_approver');
  end if;
  if exists (select 1 from approval_votes vote where vote.approval_id = approval.id and input->'same_person' ? vote.key_id) then
    perform refuse(409, 'voted');
  end if;
  insert into approval_votes (approval_id, key_id, decision, reason, created_at) values (approval.id, input->>'key_id', input->>'decision', input->>'reason', at);
  if input->>'decision' = 'reject' then
    update approvals set status = 'rejected', resolution = 'rejected', resolved_at = at, self_approved = false where id = approval.id;
    perform end_refused(approval, at);
    perform audit_and_emit(input->'rejected');
    return jsonb_build_object('status', 'rejected');
  end if;
  if own then
    update approvals set self_approved = true where id = approval.id returning * into approval;
  end if;
  select count(*) into approve_votes from approval_votes where approval_id = approval.id and decision = 'approve';
  if approve_votes < approval.approvals_required then
    perform audit_and_emit(with_self_approved(input->'voted', own));
    return jsonb_build_object('status', 'pending');
  end if;
  update approvals set status = 'approved', resolution = 'approved', resolved_at = at, start_at = case when payment_method = 'wallet' and content is not null then at end where id = approval.id;
  if approval.preauth_id is null then
    update open_runs set state = 'approved', outcome = 'approved' where id = approval.run_id and state = 'pending_approval';
  else
    perform require_rules_version(approval.tenant_id, (grants->>'rules_version')::bigint);
    perform require_same_room(grants->'needs', at);
    perform use_approval(grants, approval.tenant_id, approval.preauth_id, at);
    if grants->>'override_id' is not null then
      perform use_override(grants, approval.tenant_id, approval.preauth_id, at);
    end if;
    update preauths set holds = (hold_limits(array[approved->'holds'], at))[1]->'holds', status = 'open', approval_id = approval.id, mandate_id = preauth->>'mandate_id', override_id = preauth->>'override_id', policy_hash = preauth->>'policy_hash', policy_results = preauth->'policy_results',
      issued_at = (preauth->>'issued_at')::timestamptz, expires_at = (preauth->>'expires_at')::timestamptz,
      close_by = (preauth->>'close_by')::timestamptz, locks = array(select jsonb_array_elements_text(preauth->'locks')),
      decided_seq = nextval('decision_order')
    where id = approval.preauth_id;
  end if;
  perform audit_and_emit(with_self_approved(approved, approval.self_approved));
  return jsonb_build_object('status', 'approved');
end $$;

create or replace function with_self_approved(input jsonb, self_approved boolean) returns jsonb language sql immutable as $$
  select case when self_approved then jsonb_set(input, '{audit,data,self_approved}', 'true') else input end
$$;

create or replace function audit_and_emit(input jsonb) returns void language plpgsql as $$
begin
  perform audit_event(input->'audit');
  perform emit_event(event) from jsonb_array_elements(coalesce(input->'events', '[]')) as event;
end $$;

-- A run whose approval was rejected, has expired or lapsed ends as blocked.
create or replace function end_refused(approval approvals, at timestamptz, with_status int default null, with_body text default null) returns void language sql as $$
  with refused as (
    delete from open_runs where id = approval.run_id and state in ('pending_approval', 'approved') and approval.preauth_id is null returning *
  ), blocked as (
    insert into ended_runs (id, kind, tenant_id, payer, agent_id, session_id, loop_id, action, state, outcome, request_hash, request, terms, price_micro, created_at, deadline_at, finished_at, decided_seq, spender, team, key_id, tags, answer_status, answer_body)
    select id, kind, tenant_id, payer, agent_id, session_id, loop_id, action, 'blocked', 'blocked', request_hash, request, terms, price_micro, created_at, deadline_at, at, decided_seq, spender, team, key_id, tags, with_status, with_body from refused
    returning ended_runs
  )
  select journal_ended(ended_runs, at) from blocked;
  update preauths set status = 'rejected' where id = approval.preauth_id and status = 'pending_approval'
$$;

-- An undecided approval is rejected; one that was approved and never used lapses. input: {approval_id, at, audit, events[]}
create or replace function expire_approval(input jsonb) returns jsonb language plpgsql as $$
declare
  approval approvals;
  at timestamptz := (input->>'at')::timestamptz;
begin
  select * into strict approval from approvals where id = input->>'approval_id' for update;
  if approval.status = 'rejected' or approval.consumed_by is not null or approval.lapsed_at is not null or approval.expires_at > at then
    return jsonb_build_object('expired', false);
  end if;
  if approval.status = 'pending' then
    update approvals set status = 'rejected', resolution = 'expired', resolved_at = at where id = approval.id;
  else
    update approvals set lapsed_at = at, start_at = null where id = approval.id;
  end if;
  perform end_refused(approval, at);
  perform audit_and_emit(input);
  return jsonb_build_object('expired', true);
end $$;

-- An approved run that was refused when the service started it: the approval lapses and the run ends as blocked, with the answer
-- that its caller would have got. Nothing happens when the approval was used meanwhile.
-- input: {approval_id, at, reason, answer: {status, body}, audit, events[]}
create or replace function refuse_approved_run(input jsonb) returns jsonb language plpgsql as $$
declare
  approval approvals;
  at timestamptz := (input->>'at')::timestamptz;
begin
  select * into strict approval from approvals where id = input->>'approval_id' for update;
  if approval.status <> 'approved' or approval.consumed_by is not null or approval.lapsed_at is not null then
    return jsonb_build_object('refused', false);
  end if;
  update approvals set lapsed_at = at, start_at = null, lapse_reason = input->>'reason' where id = approval.id;
  perform end_refused(approval, at, (input#>>'{answer,status}')::int, input#>>'{answer,body}');
  perform audit_and_emit(input);
  return jsonb_build_object('refused', true);
end $$;

-- Takes approved runs that are due to be started, for the time of a lease: a process that dies leaves them to the next.
create or replace function claim_approved_runs(at timestamptz, lease interval, max_rows int) returns setof approvals language sql as $$
  update approvals set start_at = at + lease, start_attempts = start_attempts + 1
  where id in (
    select id from approvals where start_at <= at and status = 'approved' and consumed_by is null and lapsed_at is null and expires_at > at
    order by start_at limit max_rows for update skip locked)
  returning *
$$;

-- The rows of `/api/runs` that are pre-authorised payments which were made elsewhere.
create or replace view preauth_history as
select run_id as id, tenant_id, 'preauth' as kind, 'pre-auth' as action, outcome, agent_id, amount_micro as price_micro, created_at, receipt_id,
       coalesce(spender, agent_id) as spender, team, tags, closed_at as finished_at,
       case when outcome = 'escalated' then 'escalated' when outcome in ('pending', 'approved') then 'waiting' else 'ended' end as progress, mandate_id
from preauths where not taken_by_run;

-- The rows of `/api/runs`, which are also what the control tower counts: runs, loops and top-ups, and pre-authorised payments.
create or replace view run_history as
select id, tenant_id, kind, action, outcome, agent_id, price_micro, created_at,
       case state when 'completed' then coalesce(receipt_id, result->>'receipt_id') when 'failed' then receipt_id end as receipt_id,
       coalesce(spender, 'key:' || key_id, 'unknown') as spender, team, tags, finished_at,
       case when outcome = 'escalated' then 'escalated' when state in ('executing', 'settling') then 'executing'
            when state in ('pending_approval', 'approved') then 'waiting' else 'ended' end as progress,
       terms#>>'{ruling,mandate_id}' as mandate_id
from runs
union all
select id, tenant_id, kind, action, outcome, agent_id, price_micro, created_at, receipt_id, spender, team, tags, finished_at, progress, mandate_id from preauth_history;

-- The id below which a tenant has no run of a range of time. Ids are in the order of time, but a run under a pre-authorisation has that
-- one's id, which is older than the run by the life of the token, ten minutes, and by what its approval took, thirty days at most.
-- `offset 0` keeps PostgreSQL from looking for the lowest id of all pre-authorisations instead of the few that were approved late.
create or replace function first_run_id(tenant text, since timestamptz, until timestamptz) returns text language plpgsql stable as $$
begin
  return (
    select least(first_id('run', since - interval '20 minutes'), min(late.run_id)) from (
      select preauth.run_id from preauths preauth
      where preauth.tenant_id = tenant and preauth.taken_by_run and preauth.issued_at - preauth.created_at > interval '5 minutes'
        and preauth.issued_at >= since - interval '20 minutes' and preauth.issued_at < least(until + interval '1 hour', since + interval '31 days')
      offset 0) late);
end $$;

-- Pre-authorisations whose payment may still be made: `?status=active` of the list, and `preauth.open` of the control tower.
create or replace view active_preauths as
select id, tenant_id, created_at from preauths where status in ('open', 'in_use');
