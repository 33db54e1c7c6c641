-- One counter for budgets, velocity, mandates and payer exposure; nothing else may write `limits` or `holds`.
-- Every caller has taken the advisory lock `limit:<scope>` of each counter first, in the order `each_item` gives them.

-- Holds an amount in each counter for one run or pre-authorisation. Called in the step that writes the holder, because a hold without
-- a holder would never be released.
-- demands: [{scope, period, amount_micro, on_success, measure?, on_refusal?, event_id?, tenant_id?} and either `limit_micro`, or
--     `defined: true` with `enforce`]
-- A defined limit is read here, in the transaction that counts, so that a stale cache cannot decide.
-- A refusal raises an error, which undoes this step and no other step of the batch.
-- Returns, for each defined counter, its use before this hold and whether its limits are passed, for rules that only warn.
create or replace function hold_limits(holder_id text, demands jsonb, at timestamptz) returns jsonb language plpgsql as $$
declare
  hold jsonb;
  definition limit_definitions;
  counter limits;
  hard_limit bigint;
  soft_limit bigint;
  amount bigint;
  enforced boolean;
  counter_states jsonb := '[]';
begin
  for hold in select value from jsonb_array_elements(demands) order by value->>'scope', value->>'period' loop
    amount := (hold->>'amount_micro')::bigint;
    hard_limit := (hold->>'limit_micro')::bigint;
    soft_limit := null;
    enforced := true;
    if hold->'defined' = 'true' then
      select * into definition from limit_definitions where limit_definitions.scope = hold->>'scope';
      -- The rule was removed meanwhile: there is nothing to count.
      continue when not found;
      hard_limit := definition.limit_micro;
      soft_limit := definition.soft_limit_micro;
      enforced := definition.enforced or hold->'enforce' = 'true';
    end if;

    insert into limits (scope, period, limit_micro, soft_limit_micro)
    select hold->>'scope', hold->>'period', hard_limit, soft_limit
    where not exists (select 1 from limits existing where existing.scope = hold->>'scope' and existing.period = hold->>'period')
    on conflict (scope, period) do nothing;
    update limits current
    set reserved_micro = reserved_micro + amount,
        -- At least the amount used, which may exceed a limit that was lowered or that only warns.
        limit_micro = greatest(hard_limit, spent_micro + reserved_micro + amount),
        soft_limit_micro = soft_limit
    where current.scope = hold->>'scope' and current.period = hold->>'period' and (not enforced or spent_micro + reserved_micro + amount <= hard_limit)
    returning * into counter;
    if not found then
      perform refuse(
        coalesce((hold#>>'{on_refusal,status}')::int, 429), coalesce(hold#>>'{on_refusal,reason}', 'limit_reached'),
        coalesce(hold#>'{on_refusal,detail}', '{}') || jsonb_build_object('scope', hold->>'scope', 'period', hold->>'period'));
    end if;
    insert into holds (holder, scope, period, amount_micro, on_success, measure, created_at)
    values (holder_id, hold->>'scope', hold->>'period', amount, hold->>'on_success', coalesce(hold->>'measure', 'money'), at);

    if hold->'defined' = 'true' then
      counter_states := counter_states || jsonb_build_object(
        'scope', counter.scope,
        'used_micro', (counter.spent_micro + counter.reserved_micro - amount)::text,
        'over_limit', counter.spent_micro + counter.reserved_micro > hard_limit,
        'over_soft', soft_limit is not null and counter.spent_micro + counter.reserved_micro > soft_limit);
      perform announce_threshold(definition, counter, hold, at);
    end if;
  end loop;
  return counter_states;
end $$;

-- Emits `budget.threshold_reached` once a window; when several thresholds are passed at once, only the highest is announced.
create or replace function announce_threshold(definition limit_definitions, counter limits, hold jsonb, at timestamptz) returns void language plpgsql as $$
declare
  used bigint := counter.spent_micro + counter.reserved_micro;
  reached bigint;
begin
  if definition.thresholds_micro = '{}' or hold->>'event_id' is null then
    return;
  end if;
  select max(threshold) into reached from unnest(definition.thresholds_micro) as threshold where threshold <= used and threshold > counter.alerted_micro;
  if reached is null then
    return;
  end if;
  update limits set alerted_micro = reached where scope = counter.scope and period = counter.period;
  perform emit_event(jsonb_build_object(
    'id', hold->>'event_id', 'tenant_id', definition.tenant_id, 'type', 'budget.threshold_reached', 'created_at', at,
    'data', definition.subject || jsonb_build_object(
      'period', counter.period, 'threshold', reached::text, 'limit', definition.limit_micro::text, 'soft_limit', definition.soft_limit_micro::text,
      'soft_limit_reached', definition.soft_limit_micro is not null and used >= definition.soft_limit_micro,
      'spent', counter.spent_micro::text, 'reserved', counter.reserved_micro::text)));
end $$;

-- Ends a holder's open holds. `actual_micro` is the amount spent, at most the amount held; null means all of it.
create or replace function settle_holds(holder_id text, success boolean, actual_micro bigint default null) returns void language plpgsql as $$
declare
  hold holds;
  spent bigint;
begin
  for hold in select * from holds where holder = holder_id and state = 'open' order by scope, period for update loop
    spent := case
      when not success or hold.on_success = 'release' then 0
      when hold.measure = 'count' then hold.amount_micro
      else least(hold.amount_micro, coalesce(actual_micro, hold.amount_micro))
    end;
    update limits set reserved_micro = reserved_micro - hold.amount_micro, spent_micro = spent_micro + spent
    where scope = hold.scope and period = hold.period;
    update holds set state = case when spent > 0 then 'spent' else 'released' end, amount_micro = case when spent > 0 then spent else hold.amount_micro end
    where holder = hold.holder and scope = hold.scope and period = hold.period;
  end loop;
end $$;

-- A run with a pre-authorisation takes over its holds instead of taking its own.
create or replace function transfer_holds(from_holder text, to_holder text) returns void language sql as $$
  update holds set holder = to_holder where holder = from_holder and state = 'open'
$$;

-- Reads counters. A counter without any hold yet reads as zero.
create or replace function counters(scopes text[], periods text[])
returns table (scope text, period text, limit_micro bigint, soft_limit_micro bigint, enforced boolean, spent_micro bigint, reserved_micro bigint)
language sql stable as $$
  select definition.scope, requested.period, definition.limit_micro, definition.soft_limit_micro, definition.enforced, coalesce(counter.spent_micro, 0), coalesce(counter.reserved_micro, 0)
  from unnest(scopes, periods) as requested(scope, period)
  join limit_definitions definition on definition.scope = requested.scope
  left join limits counter on counter.scope = requested.scope and counter.period = requested.period
$$;

-- input: {scope, tenant_id, limit_micro, soft_limit_micro?, enforced, thresholds_micro[], subject}
create or replace function define_limit(input jsonb) returns void language sql as $$
  insert into limit_definitions as definition (scope, tenant_id, limit_micro, soft_limit_micro, enforced, thresholds_micro, subject)
  values (input->>'scope', input->>'tenant_id', (input->>'limit_micro')::bigint, (input->>'soft_limit_micro')::bigint, (input->>'enforced')::boolean,
          array(select value::bigint from jsonb_array_elements_text(input->'thresholds_micro')), input->'subject')
  on conflict (scope) do update set limit_micro = excluded.limit_micro, soft_limit_micro = excluded.soft_limit_micro,
    enforced = excluded.enforced, thresholds_micro = excluded.thresholds_micro, subject = excluded.subject
$$;

-- Deletes counters of windows that ended before a time; one that still holds something is kept until it holds nothing.
create or replace function prune_ended_limits(ended_before timestamptz, max_rows int) returns int language plpgsql as $$
declare
  window_name text;
  window_length interval;
  affected int;
  deleted int := 0;
begin
  -- Before holds moved into the rows of their holders, a hold kept its counter for good.
  if to_regclass('holds') is not null then
    return 0;
  end if;
  for window_name, window_length in
    values ('minute', interval '1 minute'), ('day', '1 day'), ('week', '7 days'), ('two_weeks', '14 days'), ('month', '1 month'), ('quarter', '3 months'), ('year', '1 year')
  loop
    delete from limits where (scope, period) in (
      select ended.scope, ended.period from limits ended
      where ended.period collate "C" >= window_name || ':'
        and ended.period collate "C" < window_name || ':' || to_char((ended_before - window_length) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI')
        and ended.reserved_micro = 0
      order by ended.period collate "C" limit max_rows - deleted);
    get diagnostics affected = row_count;
    deleted := deleted + affected;
  end loop;
  return deleted;
end $$;

-- Deletes counters of payers who have nothing under way. Such a counter reads as zero, and so does one that does not exist.
-- Under the counter's lock, because a run may be about to use it.
create or replace function prune_exposure_limits(max_rows int) returns int language plpgsql as $$
declare
  counter_scope text;
  deleted int := 0;
begin
  if to_regclass('holds') is not null then
    return 0;
  end if;
  for counter_scope in
    select scope from limits where period collate "C" = 'open' and reserved_micro = 0 and spent_micro = 0 limit max_rows
  loop
    continue when not pg_try_advisory_xact_lock(hashtextextended('limit:' || counter_scope, 0));
    delete from limits where scope = counter_scope and period = 'open' and reserved_micro = 0 and spent_micro = 0;
    deleted := deleted + 1;
  end loop;
  return deleted;
end $$;
