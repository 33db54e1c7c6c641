-- One counter for budgets, velocity, mandates and payer exposure; nothing else may write `limits` or `holds`.
-- Every caller has taken the advisory lock `limit:<scope>` of each counter first, in the order `each_item` gives them.

-- Holds room for one run or pre-authorisation inside its own step: a hold without its holder is a leak.
-- i: [{scope, period, amount_micro, on_success, measure?, on_refusal?, event_id?, tenant_id?} and either `limit_micro`, or
--     `defined: true` with `enforce`]
-- A defined limit is read here, in the transaction that counts, so that what some process has cached decides nothing.
-- A refusal raises; the step's other writes are undone with it, its neighbours in the batch are not.
-- Answers what each defined counter stood at before and whether its limits were passed, for rules that only warn.
drop function if exists hold_limits(text, jsonb, timestamptz);
create function hold_limits(who text, i jsonb, at timestamptz) returns jsonb language plpgsql as $$
declare
  hold jsonb;
  definition limit_definitions;
  counter limits;
  cap bigint;
  soft bigint;
  amount bigint;
  enforced boolean;
  counted jsonb := '[]';
begin
  for hold in select value from jsonb_array_elements(i) order by value->>'scope', value->>'period' loop
    amount := (hold->>'amount_micro')::bigint;
    cap := (hold->>'limit_micro')::bigint;
    soft := null;
    enforced := true;
    if hold->'defined' = 'true' then
      select * into definition from limit_definitions d where d.scope = hold->>'scope';
      -- The rule was removed a moment ago: there is nothing to count any more.
      continue when not found;
      cap := definition.limit_micro;
      soft := definition.soft_limit_micro;
      enforced := definition.enforced or hold->'enforce' = 'true';
    end if;

    insert into limits (scope, period, limit_micro, soft_limit_micro)
    select hold->>'scope', hold->>'period', cap, soft
    where not exists (select 1 from limits l where l.scope = hold->>'scope' and l.period = hold->>'period')
    on conflict (scope, period) do nothing;
    update limits l
    set reserved_micro = reserved_micro + amount,
        -- Never below what is taken: a limit may have been lowered since, or only warn.
        limit_micro = greatest(cap, spent_micro + reserved_micro + amount),
        soft_limit_micro = soft
    where l.scope = hold->>'scope' and l.period = hold->>'period' and (not enforced or spent_micro + reserved_micro + amount <= cap)
    returning * into counter;
    if not found then
      perform refuse(
        coalesce((hold#>>'{on_refusal,status}')::int, 429), coalesce(hold#>>'{on_refusal,reason}', 'limit_reached'),
        coalesce(hold#>'{on_refusal,detail}', '{}') || jsonb_build_object('scope', hold->>'scope', 'period', hold->>'period'));
    end if;
    insert into holds (holder, scope, period, amount_micro, on_success, measure, created_at)
    values (who, hold->>'scope', hold->>'period', amount, hold->>'on_success', coalesce(hold->>'measure', 'money'), at);

    if hold->'defined' = 'true' then
      counted := counted || jsonb_build_object(
        'scope', counter.scope,
        'used_micro', (counter.spent_micro + counter.reserved_micro - amount)::text,
        'over_limit', counter.spent_micro + counter.reserved_micro > cap,
        'over_soft', soft is not null and counter.spent_micro + counter.reserved_micro > soft);
      perform announce_threshold(definition, counter, hold, at);
    end if;
  end loop;
  return counted;
end $$;

-- Says once a window that a share of a limit has been taken; the highest one passed speaks for those below it.
create or replace function announce_threshold(definition limit_definitions, counter limits, hold jsonb, at timestamptz) returns void language plpgsql as $$
declare
  taken bigint := counter.spent_micro + counter.reserved_micro;
  reached bigint;
begin
  if definition.thresholds_micro = '{}' or hold->>'event_id' is null then
    return;
  end if;
  select max(t) into reached from unnest(definition.thresholds_micro) as t where t <= taken and t > counter.alerted_micro;
  if reached is null then
    return;
  end if;
  update limits set alerted_micro = reached where scope = counter.scope and period = counter.period;
  perform emit_event(jsonb_build_object(
    'id', hold->>'event_id', 'tenant_id', definition.tenant_id, 'type', 'budget.threshold_reached', 'created_at', at,
    'data', definition.subject || jsonb_build_object(
      'period', counter.period, 'threshold', reached::text, 'limit', definition.limit_micro::text, 'soft_limit', definition.soft_limit_micro::text,
      'soft_limit_reached', definition.soft_limit_micro is not null and taken >= definition.soft_limit_micro,
      'spent', counter.spent_micro::text, 'reserved', counter.reserved_micro::text)));
end $$;

-- Ends a holder's open holds. `taken_micro` is what was really spent, at most what was held; null means all of it.
create or replace function settle_holds(who text, success boolean, taken_micro bigint default null) returns void language plpgsql as $$
declare
  hold holds;
  spent bigint;
begin
  for hold in select * from holds where holder = who and state = 'open' order by scope, period for update loop
    spent := case
      when not success or hold.on_success = 'release' then 0
      when hold.measure = 'count' then hold.amount_micro
      else least(hold.amount_micro, coalesce(taken_micro, hold.amount_micro))
    end;
    update limits set reserved_micro = reserved_micro - hold.amount_micro, spent_micro = spent_micro + spent
    where scope = hold.scope and period = hold.period;
    update holds set state = case when spent > 0 then 'spent' else 'released' end, amount_micro = case when spent > 0 then spent else hold.amount_micro end
    where holder = hold.holder and scope = hold.scope and period = hold.period;
  end loop;
end $$;

-- A run that brings a pre-authorisation goes on with its holds instead of taking its own.
create or replace function take_over_holds(earlier text, later text) returns void language sql as $$
  update holds set holder = later where holder = earlier and state = 'open'
$$;

-- Where counters stand. A counter that nothing was held in yet stands at zero.
create or replace function counters(scopes text[], periods text[])
returns table (scope text, period text, limit_micro bigint, soft_limit_micro bigint, enforced boolean, spent_micro bigint, reserved_micro bigint)
language sql stable as $$
  select d.scope, asked.period, d.limit_micro, d.soft_limit_micro, d.enforced, coalesce(l.spent_micro, 0), coalesce(l.reserved_micro, 0)
  from unnest(scopes, periods) as asked(scope, period)
  join limit_definitions d on d.scope = asked.scope
  left join limits l on l.scope = asked.scope and l.period = asked.period
$$;

-- i: {scope, tenant_id, limit_micro, soft_limit_micro?, enforced, thresholds_micro[], subject}
create or replace function define_limit(i jsonb) returns void language sql as $$
  insert into limit_definitions as d (scope, tenant_id, limit_micro, soft_limit_micro, enforced, thresholds_micro, subject)
  values (i->>'scope', i->>'tenant_id', (i->>'limit_micro')::bigint, (i->>'soft_limit_micro')::bigint, (i->>'enforced')::boolean,
          array(select value::bigint from jsonb_array_elements_text(i->'thresholds_micro')), i->'subject')
  on conflict (scope) do update set limit_micro = excluded.limit_micro, soft_limit_micro = excluded.soft_limit_micro,
    enforced = excluded.enforced, thresholds_micro = excluded.thresholds_micro, subject = excluded.subject
$$;
