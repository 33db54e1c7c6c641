-- One counter for budgets, velocity, mandates and payer exposure; nothing else may write `limits`.
-- Every caller has taken the advisory lock `limit:<scope>` of each counter first, in the order of `lock_names`.

-- Holds an amount in each counter, for one holder or for a batch: each counter is updated once, by the sum of the batch.
-- demands: for each holder [{scope, period, amount_micro, on_success, measure?, on_refusal?, event_id?} and either
--     `limit_micro`, or `defined: true` with `enforce`]
-- The promises of a payer in flight have two limits. `open_limit_micro` is for the amount reserved, whatever was spent. `limit_micro` is
-- the payer's balance and what had been spent just before it was read, `settled_micro`: so what was settled since is not counted
-- as still there. A counter that has spent less than that was deleted meanwhile, and the balance has to be read again.
-- A defined limit is read here, in the transaction that counts, so that a stale cache cannot decide.
-- A refusal raises an error. For a batch it says only that the batch does not fit as a whole: `run_set` then tries each alone.
-- A rolling window is one counter as well: what its ended slices had is taken out first. `slice_ends_at` tells when the amount of a
-- hold leaves the window; it is kept with the hold, because a spend belongs to the time of its hold.
-- Returns for each holder {holds, states}: `holds` is stored by the caller in the row of the holder, because a hold without
-- a holder would never be released; `states` has, for each defined counter, its use before this hold and whether its limits
-- are passed, for rules that only warn.
create or replace function hold_limits(demands jsonb[], at timestamptz) returns jsonb[] language plpgsql as $$
declare
  -- One element for each counter, by scope and period.
  scopes text[];
  periods text[];
  amounts bigint[];
  hard_limits bigint[];
  soft_limits bigint[];
  enforced_limits boolean[];
  firsts jsonb[];
  open_limits bigint[];
  settled_sums bigint[];
  counters limits[];
  missing int;
  added int;
  held jsonb[];
begin
  if demands <@ array['[]'::jsonb] then
    return array(select '{"holds": [], "states": []}'::jsonb from generate_series(1, cardinality(demands)));
  end if;
  select array_agg(total.scope), array_agg(total.period), array_agg(total.amount), array_agg(total.hard_limit), array_agg(total.soft_limit), array_agg(total.enforced), array_agg(total.first), array_agg(total.open_limit), array_agg(total.settled)
  into scopes, periods, amounts, hard_limits, soft_limits, enforced_limits, firsts, open_limits, settled_sums
  from (
    select demand.scope, demand.period, sum(demand.amount)::bigint as amount, min(demand.hard_limit) as hard_limit, min(demand.soft_limit) as soft_limit,
           min((demand.value->>'open_limit_micro')::bigint) as open_limit, max((demand.value->>'settled_micro')::bigint) as settled,
           bool_or(demand.enforced) as enforced, (array_agg(demand.value order by demand.place))[1] as first
    from limit_demands(demands) demand group by demand.scope, demand.period order by demand.scope, demand.period
  ) total;

  if exists (select 1 from unnest(periods) as period where period ^@ 'rolling_') then
    perform end_slices(scopes, periods, at);
  end if;
  for attempt in 1 .. 2 loop
    with held_now as (
      update limits current
      set reserved_micro = reserved_micro + total.amount,
          -- At least the amount used, which may exceed a limit that was lowered or that only warns.
          limit_micro = greatest(total.hard_limit, spent_micro + reserved_micro + total.amount),
          soft_limit_micro = total.soft_limit
      from unnest(scopes, periods, amounts, hard_limits, soft_limits, enforced_limits, open_limits, settled_sums) as total(scope, period, amount, hard_limit, soft_limit, enforced, open_limit, settled)
      where current.scope = total.scope and current.period = total.period
        and (not total.enforced or spent_micro + reserved_micro + total.amount <= total.hard_limit)
        and (total.open_limit is null or (reserved_micro + total.amount <= total.open_limit and spent_micro >= total.settled))
        and (attempt = 1 or not exists (select 1 from unnest(counters) as done where done.scope = total.scope and done.period = total.period))
      returning current as counter
    )
    select coalesce(counters, '{}') || coalesce(array_agg(held_now.counter), '{}') into counters from held_now;
    missing := coalesce(cardinality(scopes), 0) - cardinality(counters);
    exit when missing = 0 or attempt = 2;
    insert into limits (scope, period, limit_micro, soft_limit_micro)
    select total.scope, total.period, total.hard_limit, total.soft_limit from unnest(scopes, periods, hard_limits, soft_limits) as total(scope, period, hard_limit, soft_limit)
    where not exists (select 1 from limits existing where existing.scope = total.scope and existing.period = total.period)
    on conflict (scope, period) do nothing;
    get diagnostics added = row_count;
    -- A counter that exists and was not updated has no room.
    exit when added < missing;
  end loop;
  if missing > 0 then
    perform refuse(
      coalesce((total.first#>>'{on_refusal,status}')::int, 429), coalesce(total.first#>>'{on_refusal,reason}', 'limit_reached'),
      coalesce(total.first#>'{on_refusal,detail}', '{}') || jsonb_build_object('scope', total.scope, 'period', total.period))
    from (
      select full_counter.* from unnest(scopes, periods, firsts) with ordinality as full_counter(scope, period, first, place)
      where not exists (select 1 from unnest(counters) as done where done.scope = full_counter.scope and done.period = full_counter.period)
        -- One that was only just added may fit, and has not been tried.
        and exists (select 1 from limits existing where existing.scope = full_counter.scope and existing.period = full_counter.period and existing.spent_micro + existing.reserved_micro + amounts[full_counter.place] > hard_limits[full_counter.place])
        and open_limits[full_counter.place] is null
      order by full_counter.place limit 1
    ) total;
    perform refuse(429, case when counter.reserved_micro + payer.amount > payer.open_limit then 'payer_exposure' else 'payer_funds' end,
      jsonb_build_object('spent_micro', counter.spent_micro::text, 'reserved_micro', counter.reserved_micro::text))
    from unnest(scopes, periods, amounts, hard_limits, open_limits, settled_sums) as payer(scope, period, amount, hard_limit, open_limit, settled)
    join limits counter on counter.scope = payer.scope and counter.period = payer.period
    where payer.open_limit is not null and not exists (select 1 from unnest(counters) as done where done.scope = payer.scope and done.period = payer.period)
      and (counter.reserved_micro + payer.amount > payer.open_limit or counter.spent_micro < payer.settled or counter.spent_micro + counter.reserved_micro + payer.amount > payer.hard_limit);
    -- Whatever the reason, nothing may be admitted that is not held.
    perform refuse(429, 'limit_reached');
  end if;
  perform announce_threshold(counter, total.first, cardinality(demands) = 1, at)
  from unnest(scopes, periods, firsts) as total(scope, period, first)
  join unnest(counters) as counter on counter.scope = total.scope and counter.period = total.period
  where total.first->'defined' = 'true' and total.first->>'event_id' is not null;

  select array_agg(jsonb_build_object('holds', coalesce(holder.holds, '[]'), 'states', coalesce(holder.states, '[]')) order by places.place) into held
  from generate_series(1, cardinality(demands)) as places(place)
  left join (
    select counted.place,
      jsonb_agg(jsonb_build_object('scope', counted.scope, 'period', counted.period, 'amount_micro', counted.amount::text, 'on_success', counted.value->'on_success', 'measure', coalesce(counted.value->>'measure', 'money'))
        || case when counted.value ? 'slice_ends_at' then jsonb_build_object('slice_ends_at', counted.value->'slice_ends_at') else '{}' end) as holds,
      jsonb_agg(jsonb_build_object('scope', counted.scope, 'used_micro', (counted.used - counted.amount)::text, 'over_limit', counted.used > counted.hard_limit,
        'over_soft', counted.soft_limit is not null and counted.used > counted.soft_limit)) filter (where counted.value->'defined' = 'true') as states
    from (
      select demand.*, counter.spent_micro + counter.reserved_micro - total.amount + sum(demand.amount) over (partition by demand.scope, demand.period order by demand.place) as used
      from limit_demands(demands) demand
      join unnest(scopes, periods, amounts) as total(scope, period, amount) on total.scope = demand.scope and total.period = demand.period
      join unnest(counters) as counter on counter.scope = demand.scope and counter.period = demand.period
    ) counted
    group by counted.place
  ) holder on holder.place = places.place;
  return held;
end $$;

-- Takes out of rolling counters what was spent in slices that have ended. A threshold may be announced again once the use has fallen below it.
create or replace function end_slices(scopes text[], periods text[], at timestamptz) returns void language sql as $$
  with ended as (
    delete from limit_slices slice using unnest(scopes, periods) as counter(scope, period)
    where slice.scope = counter.scope and slice.period = counter.period and slice.ends_at <= at
    returning slice.scope, slice.period, slice.spent_micro
  ), total as (
    select scope, period, sum(spent_micro)::bigint as spent from ended group by scope, period
  )
  update limits set spent_micro = spent_micro - total.spent, alerted_micro = least(alerted_micro, spent_micro - total.spent + reserved_micro)
  from total where limits.scope = total.scope and limits.period = total.period
$$;

-- What was spent in slices of a rolling counter that have ended and are not taken out yet.
create or replace function ended_slices(counter_scope text, counter_period text, at timestamptz) returns bigint language sql stable as $$
  select case when counter_period ^@ 'rolling_'
    then (select coalesce(sum(spent_micro), 0)::bigint from limit_slices where scope = counter_scope and period = counter_period and ends_at <= at)
    else 0 end
$$;

-- What is spent and reserved in a counter.
create or replace function counter_use(counter_scope text, counter_period text, at timestamptz) returns bigint language sql stable as $$
  select coalesce((select spent_micro + reserved_micro from limits where scope = counter_scope and period = counter_period), 0) - ended_slices(counter_scope, counter_period, at)
$$;

-- Each demand with the limit that is in force. The demand of a rule that was removed meanwhile is left out: there is nothing to count.
create or replace function limit_demands(demands jsonb[])
returns table (place bigint, value jsonb, scope text, period text, amount bigint, hard_limit bigint, soft_limit bigint, enforced boolean) language sql stable as $$
  select holder.place, demand.value, demand.value->>'scope', demand.value->>'period', (demand.value->>'amount_micro')::bigint,
         coalesce(definition.limit_micro, (demand.value->>'limit_micro')::bigint), definition.soft_limit_micro,
         definition.scope is null or definition.enforced or demand.value->'enforce' = 'true'
  from unnest(demands) with ordinality as holder(demands, place)
  cross join jsonb_array_elements(holder.demands) as demand(value)
  left join limit_definitions definition on demand.value->'defined' = 'true' and definition.scope = demand.value->>'scope'
  where demand.value->'defined' is distinct from 'true' or definition.scope is not null
$$;

-- Emits `budget.threshold_reached` once a window; when several thresholds are passed at once, only the highest is announced.
-- In a batch it cannot be said which holder reached it, so the batch is refused and each holder tried alone.
create or replace function announce_threshold(counter limits, hold jsonb, alone boolean, at timestamptz) returns void language plpgsql as $$
declare
  definition limit_definitions;
  used bigint := counter.spent_micro + counter.reserved_micro;
  reached bigint;
begin
  select * into definition from limit_definitions where scope = counter.scope and thresholds_micro <> '{}';
  if not found then
    return;
  end if;
  select max(threshold) into reached from unnest(definition.thresholds_micro) as threshold where threshold <= used and threshold > counter.alerted_micro;
  if reached is null then
    return;
  end if;
  if not alone then
    perform refuse(409, 'threshold_in_batch');
  end if;
  update limits set alerted_micro = reached where scope = counter.scope and period = counter.period;
  perform emit_event(jsonb_build_object(
    'id', hold->>'event_id', 'tenant_id', definition.tenant_id, 'type', 'budget.threshold_reached', 'created_at', at,
    'data', definition.subject || jsonb_build_object(
      'period', counter.period, 'threshold', reached::text, 'limit', definition.limit_micro::text, 'soft_limit', definition.soft_limit_micro::text,
      'soft_limit_reached', definition.soft_limit_micro is not null and used >= definition.soft_limit_micro,
      'spent', counter.spent_micro::text, 'reserved', counter.reserved_micro::text)));
end $$;

-- Ends the holds of one holder or of a batch; each counter is updated once. `actual` is the amount that each holder spent, at
-- most the amount held; null means all of it, and zero means that the holder failed.
create or replace function settle_holds(holds jsonb[], success boolean[], actual bigint[]) returns void language sql as $$
  insert into limit_slices as slice (scope, period, ends_at, spent_micro)
  select hold.value->>'scope', hold.value->>'period', (hold.value->>'slice_ends_at')::timestamptz,
         sum(least((hold.value->>'amount_micro')::bigint, coalesce(holder.actual, (hold.value->>'amount_micro')::bigint)))::bigint
  from unnest(holds, success, actual) as holder(holds, success, actual)
  cross join jsonb_array_elements(holder.holds) as hold(value)
  where holder.success and hold.value ? 'slice_ends_at' and hold.value->>'on_success' = 'spend'
  group by 1, 2, 3
  on conflict (scope, period, ends_at) do update set spent_micro = slice.spent_micro + excluded.spent_micro;
  update limits set reserved_micro = reserved_micro - total.reserved, spent_micro = spent_micro + total.spent
  from (
    select hold.value->>'scope' as scope, hold.value->>'period' as period, sum((hold.value->>'amount_micro')::bigint)::bigint as reserved,
           sum(case
             when not holder.success or hold.value->>'on_success' = 'release' then 0
             when hold.value->>'measure' = 'count' then (hold.value->>'amount_micro')::bigint
             else least((hold.value->>'amount_micro')::bigint, coalesce(holder.actual, (hold.value->>'amount_micro')::bigint))
           end)::bigint as spent
    from unnest(holds, success, actual) as holder(holds, success, actual)
    cross join jsonb_array_elements(holder.holds) as hold(value)
    group by 1, 2
  ) total
  where limits.scope = total.scope and limits.period = total.period
$$;

-- Reads counters. A counter without any hold yet reads as zero.
create or replace function counters(scopes text[], periods text[], at timestamptz)
returns table (scope text, period text, limit_micro bigint, soft_limit_micro bigint, enforced boolean, spent_micro bigint, reserved_micro bigint)
language sql stable set plan_cache_mode = force_generic_plan as $$
  select definition.scope, requested.period, definition.limit_micro, definition.soft_limit_micro, definition.enforced,
         coalesce(counter.spent_micro, 0) - ended_slices(requested.scope, requested.period, at), coalesce(counter.reserved_micro, 0)
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
  delete from limit_slices slice where slice.ends_at < ended_before and not exists (select 1 from limit_definitions definition where definition.scope = slice.scope);
  return deleted;
end $$;

-- Deletes counters of payers who have had nothing under way for ten minutes, longer than any check of a payment takes: a check reads
-- `spent_micro` before and after. The first call that finds a payer idle notes the time in `soft_limit_micro`, which these counters do
-- not use and every hold clears. Under the counter's lock, because a run may be about to use it.
create or replace function prune_exposure_limits(max_rows int) returns int language plpgsql as $$
declare
  counter_scope text;
  seconds bigint := extract(epoch from now());
  deleted int := 0;
begin
  for counter_scope in
    select scope from limits where period collate "C" = 'open' and reserved_micro = 0 and (spent_micro = 0 or soft_limit_micro is null or soft_limit_micro < seconds - 600) limit max_rows
  loop
    continue when not pg_try_advisory_xact_lock(hashtextextended('limit:' || counter_scope, 0));
    delete from limits where scope = counter_scope and period = 'open' and reserved_micro = 0 and (spent_micro = 0 or soft_limit_micro < seconds - 600);
    if found then
      deleted := deleted + 1;
    else
      update limits set soft_limit_micro = seconds where scope = counter_scope and period = 'open' and reserved_micro = 0 and soft_limit_micro is null;
    end if;
  end loop;
  return deleted;
end $$;
