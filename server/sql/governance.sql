-- Rules change under everybody's eyes: the version moves on, and every process hears whose rules changed.
create or replace function rules_changed(tenant text) returns void language sql as $$
  insert into governance_versions (tenant_id, version) values (tenant, 1)
  on conflict (tenant_id) do update set version = governance_versions.version + 1;
  select pg_notify('governance', tenant)
$$;

-- Refuses what was judged by rules that have changed since; the caller judges it anew.
create or replace function need_rules_version(tenant text, judged_by bigint) returns void language plpgsql as $$
begin
  if judged_by is distinct from coalesce((select version from governance_versions where tenant_id = tenant), 0) then
    perform refuse(409, 'rules_changed');
  end if;
end $$;

-- Grants are used up together with the admission: approval, override, pre-authorisation, each once.
-- i.grants: {rules_version, action_hash, agent_id, amount_micro, merchant, approval_id?, override_id?, preauth_id?}; a guest has none.
create or replace function consume_grants(i jsonb, run_id text, at timestamptz) returns void language plpgsql as $$
declare
  g jsonb := i->'grants';
  tenant text := i#>>'{run,tenant_id}';
begin
  if tenant is null or g->>'rules_version' is null then
    return;
  end if;
  perform need_rules_version(tenant, (g->>'rules_version')::bigint);
  if g->>'approval_id' is not null then
    perform use_approval(g, tenant, run_id, at);
  end if;
  if g->>'override_id' is not null then
    perform use_override(g, tenant, run_id, at);
  end if;
  if g->>'preauth_id' is not null then
    update preauths p set status = 'in_use', taken_by_run = true
    where p.id = g->>'preauth_id' and p.tenant_id = tenant and p.status = 'open' and p.expires_at > at and p.run_id = consume_grants.run_id
      and p.agent_id = g->>'agent_id' and p.merchant_id = g->>'merchant' and p.amount_micro >= (g->>'amount_micro')::bigint;
    if not found then
      perform refuse(409, 'preauth_used');
    end if;
    perform take_over_holds(g->>'preauth_id', run_id);
  end if;
end $$;

create or replace function use_approval(g jsonb, tenant text, user_id text, at timestamptz) returns void language plpgsql as $$
begin
  update approvals set consumed_by = user_id, consumed_at = at
  where id = g->>'approval_id' and tenant_id = tenant and status = 'approved' and consumed_by is null and expires_at > at
    and action_hash = g->>'action_hash';
  if not found then
    perform refuse(409, 'approval_used');
  end if;
end $$;

create or replace function use_override(g jsonb, tenant text, user_id text, at timestamptz) returns void language plpgsql as $$
begin
  update overrides set used_by = user_id, used_at = at
  where id = g->>'override_id' and tenant_id = tenant and used_by is null and expires_at > at
    and agent_id = g->>'agent_id' and merchant = g->>'merchant' and amount_micro = (g->>'amount_micro')::bigint;
  if not found then
    perform refuse(409, 'override_used');
  end if;
end $$;

-- A run that failed uncharged gives its approval and its override back. Its pre-authorisation is closed: what came of it is known.
create or replace function restore_grants(run_id text, at timestamptz) returns void language plpgsql as $$
begin
  update approvals set consumed_by = null, consumed_at = null where consumed_by = restore_grants.run_id;
  update overrides set used_by = null, used_at = null where used_by = restore_grants.run_id;
  perform close_preauth_of(restore_grants.run_id, 'failed', 0, null, null, at);
end $$;

-- A run that was paid from a wallet left nothing on the chain that could be verified.
create or replace function close_preauth_of(run text, how text, charged bigint, paid_in text, receipt text, at timestamptz) returns void language sql as $$
  update preauths set status = 'closed', closed_at = at, close_outcome = how, charged_micro = charged, late = at >= close_by,
    transaction = paid_in, receipt_id = receipt, verified_onchain = case when how = 'settled' and paid_in is not null then true end, ended_seq = nextval('decision_order')
  where run_id = run and taken_by_run and status in ('in_use', 'escalated')
$$;

-- What was counted at the moment of admission corrects what was foreseen when the run was judged: warnings of rules that
-- only warn, and the soft limits of budgets. counted: as `hold_limits` answers.
create or replace function ruling_as_counted(ruling jsonb, counted jsonb) returns jsonb language plpgsql immutable as $$
declare
  results jsonb;
  warned boolean;
  budget_warned boolean;
begin
  if jsonb_array_length(counted) = 0 then
    return ruling;
  end if;
  select jsonb_agg(case
           when c.value is null then r.value
           when r.value ? 'budget_id' then r.value || jsonb_build_object('outcome', case when (c.value->>'over_soft')::boolean then 'warning' else 'pass' end)
           when r.value->>'mode' = 'enforce' then r.value
           else r.value || jsonb_build_object(
             'verdict', case when (c.value->>'over_limit')::boolean then 'blocked' else 'pass' end,
             'outcome', case when (c.value->>'over_limit')::boolean and r.value->>'mode' = 'warn' then 'warning' else 'pass' end)
         end order by r.place)
  into results
  from jsonb_array_elements(ruling->'policy_applied') with ordinality as r(value, place)
  left join jsonb_array_elements(counted) as c(value) on c.value->>'scope' = r.value->>'counter';
  if results is null or results = ruling->'policy_applied' then
    return ruling;
  end if;
  select coalesce(bool_or(value->>'outcome' = 'warning'), false), coalesce(bool_or(value->>'outcome' = 'warning' and value ? 'budget_id'), false)
  into warned, budget_warned from jsonb_array_elements(results);
  return ruling || jsonb_build_object(
    'policy_applied', results,
    'decision', case when ruling->>'decision' in ('approved', 'warning') then case when warned then 'warning' else 'approved' end else ruling->>'decision' end,
    'budget_outcome', case when ruling->>'budget_outcome' in ('pass', 'warning') then case when budget_warned then 'warning' else 'pass' end else ruling->>'budget_outcome' end);
end $$;

-- A refusal is written only while every counter is as it was judged, so that it stands in the true order of decisions:
-- one without room has none yet, and one with room has not been filled by somebody else. Else the caller judges anew.
-- needs: [{scope, period, amount_micro, room}]
drop function if exists need_no_room(jsonb);
create or replace function need_same_room(needs jsonb) returns void language plpgsql as $$
begin
  if exists (
    select 1 from jsonb_array_elements(needs) as n
    left join limit_definitions d on d.scope = n->>'scope'
    left join limits l on l.scope = n->>'scope' and l.period = n->>'period'
    where d.scope is null
       or (coalesce(l.spent_micro + l.reserved_micro, 0) + (n->>'amount_micro')::bigint <= d.limit_micro) <> (n->>'room')::boolean
  ) then
    perform refuse(409, 'room_changed');
  end if;
end $$;

-- A tenant's refusal: its row, the decision, the approval it asks for, audit and events.
-- i: {run?, preauth?, decision, approval?, needs[], rules_version, audit, events[], asked_event?}
-- The same action asked for again while its approval is pending finds that approval.
create or replace function record_refusal(i jsonb) returns jsonb language plpgsql as $$
declare
  d jsonb := i->'decision';
  a jsonb := i->'approval';
  r jsonb := i->'run';
  p jsonb := i->'preauth';
  at timestamptz := (d->>'created_at')::timestamptz;
  earlier approvals;
begin
  if exists (select 1 from decisions where id = d->>'id') then
    return jsonb_build_object('decision_id', d->>'id', 'run_id', d->>'run_id', 'preauth_id', d->>'preauth_id', 'approval_id', a->>'id');
  end if;
  perform need_rules_version(d->>'tenant_id', (i->>'rules_version')::bigint);
  perform need_same_room(i->'needs');
  if a <> 'null' then
    select * into earlier from approvals
    where tenant_id = d->>'tenant_id' and action_hash = a->>'action_hash' and consumed_by is null and status <> 'rejected' and expires_at > at
    order by id desc limit 1;
    if found then
      return jsonb_build_object('decision_id', earlier.decision_id, 'run_id', earlier.run_id, 'preauth_id', earlier.preauth_id, 'approval_id', earlier.id);
    end if;
    -- An approval whose time is over no longer stands in the way of a new one, whether the sweep has come by or not.
    for earlier in
      update approvals set status = 'rejected', resolution = 'expired', resolved_at = at
      where tenant_id = d->>'tenant_id' and action_hash = a->>'action_hash' and status = 'pending' returning *
    loop
      perform end_refused(earlier, at);
    end loop;
  end if;
  if r <> 'null' then
    insert into runs (id, kind, tenant_id, agent_id, session_id, loop_id, action, state, outcome, request_hash, request, terms, price_micro, created_at, deadline_at, decided_seq)
    values (r->>'id', r->>'kind', d->>'tenant_id', d->>'agent_id', r->>'session_id', r->>'loop_id', r->>'kind',
            case when a <> 'null' then 'pending_approval' else 'blocked' end, case when a <> 'null' then 'pending' else 'blocked' end,
            r->>'request_hash', r->'request', r->'terms', (d->>'amount_micro')::bigint, at, at, nextval('decision_order'));
  end if;
  if p <> 'null' then
    perform insert_preauth(p || jsonb_build_object('status', case when a <> 'null' then 'pending_approval' else 'rejected' end, 'approval_id', a->>'id'));
  end if;
  insert into decisions (id, tenant_id, kind, run_id, preauth_id, agent_id, merchant, amount_micro, outcome, error, message, overridable, results, action_hash, asked_by, created_at)
  values (d->>'id', d->>'tenant_id', d->>'kind', d->>'run_id', d->>'preauth_id', d->>'agent_id', d->>'merchant', (d->>'amount_micro')::bigint, d->>'outcome',
          d->>'error', d->>'message', (d->>'overridable')::boolean, d->'results', d->>'action_hash', d->>'asked_by', at);
  if a <> 'null' then
    insert into approvals (id, tenant_id, kind, status, action, agent_id, run_id, preauth_id, decision_id, requested_by, reason, amount_micro, merchant,
                           risk_summary, action_hash, approvals_required, separate_approver, expires_at, created_at)
    values (a->>'id', d->>'tenant_id', d->>'kind', 'pending', a->>'action', d->>'agent_id', d->>'run_id', d->>'preauth_id', d->>'id', d->>'asked_by',
            a->>'reason', (d->>'amount_micro')::bigint, d->>'merchant', a->'risk_summary', a->>'action_hash', (a->>'approvals_required')::int,
            (a->>'separate_approver')::boolean, (a->>'expires_at')::timestamptz, at);
  end if;
  perform audit_event(i->'audit');
  perform emit_event(event) from jsonb_array_elements(i->'events') as event;
  return jsonb_build_object('decision_id', d->>'id', 'run_id', d->>'run_id', 'preauth_id', d->>'preauth_id', 'approval_id', a->>'id');
end $$;

create or replace function insert_preauth(p jsonb) returns void language sql as $$
  insert into preauths (id, tenant_id, run_id, status, agent_id, mandate_id, merchant_id, merchant, amount_micro, asset, network, purpose, request_hash,
                        action_hash, policy_hash, policy_results, decision_id, override_id, approval_id, ttl_seconds, asked_by, created_at,
                        issued_at, expires_at, close_by, locks, decided_seq)
  values (p->>'id', p->>'tenant_id', p->>'run_id', p->>'status', p->>'agent_id', p->>'mandate_id', p->>'merchant_id', p->'merchant',
          (p->>'amount_micro')::bigint, p->>'asset', p->>'network', p->>'purpose', p->>'request_hash', p->>'action_hash', p->>'policy_hash',
          p->'policy_results', p->>'decision_id', p->>'override_id', p->>'approval_id', (p->>'ttl_seconds')::int, p->>'asked_by',
          (p->>'created_at')::timestamptz, (p->>'issued_at')::timestamptz, (p->>'expires_at')::timestamptz, (p->>'close_by')::timestamptz,
          array(select jsonb_array_elements_text(p->'locks')), nextval('decision_order'))
$$;

-- Opens a pre-authorisation: its holds, the grants it uses, its row. i: {preauth, holds[], grants, audit, events[]}
create or replace function open_preauth(i jsonb) returns jsonb language plpgsql as $$
declare
  p jsonb := i->'preauth';
  g jsonb := i->'grants';
  at timestamptz := (p->>'created_at')::timestamptz;
  counted jsonb;
begin
  perform need_rules_version(p->>'tenant_id', (g->>'rules_version')::bigint);
  if g->>'override_id' is not null then
    perform use_override(g, p->>'tenant_id', p->>'id', at);
  end if;
  counted := hold_limits(p->>'id', i->'holds', at);
  p := p || jsonb_build_object('policy_results', ruling_as_counted(jsonb_build_object('policy_applied', p->'policy_results'), counted)->'policy_applied');
  perform insert_preauth(p || jsonb_build_object('status', 'open'));
  perform audit_event(i->'audit');
  perform emit_event(event) from jsonb_array_elements(i->'events') as event;
  return p->'policy_results';
end $$;

-- Ends a pre-authorisation once, however often and by whomever it is tried.
-- i: {preauth_id, tenant_id, at, outcome, charged_micro, transaction?, verified_onchain?, matching?, receipt, audit, events[]}
-- matching: how many transfers of the transaction fit; each can stand for one pre-authorisation. One transaction may pay
-- several merchants: those paid at another address have used other transfers of it.
create or replace function close_preauth(i jsonb) returns jsonb language plpgsql as $$
declare
  p preauths;
  at timestamptz := (i->>'at')::timestamptz;
  charged bigint := (i->>'charged_micro')::bigint;
begin
  select * into p from preauths where id = i->>'preauth_id' and tenant_id = i->>'tenant_id' for update;
  if not found then
    perform refuse(404, 'no_preauth');
  end if;
  if p.status not in ('open', 'escalated') or (p.status = 'escalated' and p.taken_by_run) then
    perform refuse(409, 'preauth_' || p.status);
  end if;
  if charged > p.amount_micro then
    perform refuse(409, 'above_reserved');
  end if;
  if (i->>'matching')::int <= (
    select count(*) from preauths q where q.transaction = i->>'transaction' and q.charged_micro = charged and q.verified_onchain
      and coalesce(lower(q.merchant->>'pay_to') = lower(p.merchant->>'pay_to'), true)
  ) then
    perform refuse(409, 'transaction_used');
  end if;
  perform settle_holds(p.id, i->>'outcome' = 'settled', charged);
  update preauths set status = 'closed', closed_at = at, close_outcome = i->>'outcome', charged_micro = charged, late = at >= p.close_by,
    transaction = i->>'transaction', verified_onchain = (i->>'verified_onchain')::boolean, receipt_id = i#>>'{receipt,id}', ended_seq = nextval('decision_order')
  where id = p.id;
  perform issue_receipt(i->'receipt');
  perform audit_event(i->'audit');
  perform emit_event(event) from jsonb_array_elements(i->'events') as event;
  return jsonb_build_object('charged', charged::text, 'released', (p.amount_micro - charged)::text, 'late', at >= p.close_by);
end $$;

-- Ten minutes without a word. The hold stays counted: whether the money is gone, nobody knows yet.
-- i: {preauth_id, at, audit, events[]}
create or replace function escalate_preauth(i jsonb) returns jsonb language plpgsql as $$
declare
  p preauths;
  at timestamptz := (i->>'at')::timestamptz;
begin
  select * into strict p from preauths where id = i->>'preauth_id' for update;
  if p.status not in ('open', 'in_use') or p.close_by > at then
    return jsonb_build_object('escalated', false);
  end if;
  update preauths set status = 'escalated', escalated_at = at where id = p.id;
  if p.taken_by_run then
    update runs set outcome = 'escalated' where id = p.run_id and state in ('executing', 'settling');
  end if;
  perform audit_event(i->'audit');
  perform emit_event(event) from jsonb_array_elements(i->'events') as event;
  return jsonb_build_object('escalated', true);
end $$;

-- One vote on an approval. One rejection ends it; as many approvals as were asked for pass it.
-- i: {approval_id, tenant_id, key_id, same_person[], decision, reason?, at, approved: {preauth?, holds?, grants?, audit, events[]}, rejected: {audit, events[]}, voted: {audit}}
create or replace function resolve_approval(i jsonb) returns jsonb language plpgsql as $$
declare
  a approvals;
  at timestamptz := (i->>'at')::timestamptz;
  so_far int;
begin
  select * into a from approvals where id = i->>'approval_id' and tenant_id = i->>'tenant_id' for update;
  if not found then
    perform refuse(404, 'no_approval');
  end if;
  if a.status <> 'pending' then
    perform refuse(409, 'resolved', jsonb_build_object('resolution', a.resolution));
  end if;
  if a.expires_at <= at then
    perform refuse(409, 'expired');
  end if;
  if a.separate_approver and i->'same_person' ? a.requested_by then
    perform refuse(403, 'own_request');
  end if;
  if exists (select 1 from approval_votes v where v.approval_id = a.id and i->'same_person' ? v.key_id) then
    perform refuse(409, 'voted');
  end if;
  insert into approval_votes (approval_id, key_id, decision, reason, created_at) values (a.id, i->>'key_id', i->>'decision', i->>'reason', at);
  if i->>'decision' = 'reject' then
    update approvals set status = 'rejected', resolution = 'rejected', resolved_at = at where id = a.id;
    perform end_refused(a, at);
    perform tell(i->'rejected');
    return jsonb_build_object('status', 'rejected');
  end if;
  select count(*) into so_far from approval_votes where approval_id = a.id and decision = 'approve';
  if so_far < a.approvals_required then
    perform tell(i->'voted');
    return jsonb_build_object('status', 'pending');
  end if;
  update approvals set status = 'approved', resolution = 'approved', resolved_at = at where id = a.id;
  if a.preauth_id is null then
    update runs set state = 'approved', outcome = 'approved' where id = a.run_id and state = 'pending_approval';
  else
    perform need_rules_version(a.tenant_id, (i#>>'{approved,grants,rules_version}')::bigint);
    perform use_approval(i#>'{approved,grants}', a.tenant_id, a.preauth_id, at);
    if i#>>'{approved,grants,override_id}' is not null then
      perform use_override(i#>'{approved,grants}', a.tenant_id, a.preauth_id, at);
    end if;
    perform hold_limits(a.preauth_id, i#>'{approved,holds}', at);
    update preauths set status = 'open', approval_id = a.id, override_id = i#>>'{approved,preauth,override_id}', policy_hash = i#>>'{approved,preauth,policy_hash}', policy_results = i#>'{approved,preauth,policy_results}',
      issued_at = (i#>>'{approved,preauth,issued_at}')::timestamptz, expires_at = (i#>>'{approved,preauth,expires_at}')::timestamptz,
      close_by = (i#>>'{approved,preauth,close_by}')::timestamptz, locks = array(select jsonb_array_elements_text(i#>'{approved,preauth,locks}')),
      decided_seq = nextval('decision_order')
    where id = a.preauth_id;
  end if;
  perform tell(i->'approved');
  return jsonb_build_object('status', 'approved');
end $$;

create or replace function tell(i jsonb) returns void language plpgsql as $$
begin
  perform audit_event(i->'audit');
  perform emit_event(event) from jsonb_array_elements(coalesce(i->'events', '[]')) as event;
end $$;

create or replace function end_refused(a approvals, at timestamptz) returns void language sql as $$
  update runs set state = 'blocked', outcome = 'blocked', finished_at = at where id = a.run_id and state in ('pending_approval', 'approved') and a.preauth_id is null;
  update preauths set status = 'rejected' where id = a.preauth_id and status = 'pending_approval'
$$;

-- Time is over: what is undecided is rejected, what was approved and never used can no longer be. i: {approval_id, at, audit, events[]}
create or replace function expire_approval(i jsonb) returns jsonb language plpgsql as $$
declare
  a approvals;
  at timestamptz := (i->>'at')::timestamptz;
begin
  select * into strict a from approvals where id = i->>'approval_id' for update;
  if a.status = 'rejected' or a.consumed_by is not null or a.lapsed_at is not null or a.expires_at > at then
    return jsonb_build_object('expired', false);
  end if;
  if a.status = 'pending' then
    update approvals set status = 'rejected', resolution = 'expired', resolved_at = at where id = a.id;
  else
    update approvals set lapsed_at = at where id = a.id;
  end if;
  perform end_refused(a, at);
  perform tell(i);
  return jsonb_build_object('expired', true);
end $$;

-- Everything `/api/runs` shows: runs and loops, and payments that were pre-authorised and made elsewhere.
create or replace view run_history as
select id, tenant_id, kind, action, outcome, agent_id, price_micro, created_at,
       case when state = 'completed' then result->>'receipt_id' end as receipt_id
from runs
union all
select run_id, tenant_id, 'preauth', 'pre-auth', outcome, agent_id, amount_micro, created_at, receipt_id
from preauths where not taken_by_run;
