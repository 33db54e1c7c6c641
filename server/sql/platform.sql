-- Takes advisory locks in one order, so that two transactions with the same locks in another order cannot deadlock.
create or replace function lock_names(names text[]) returns void language plpgsql as $$
declare
  lock_key bigint;
begin
  for lock_key in select distinct hashtextextended(name, 0) from unnest(names) as name order by 1 loop
    perform pg_advisory_xact_lock(lock_key);
  end loop;
end $$;

-- Runs a batch of inputs, each of its own step, in one transaction, and returns for each {ok, result},
-- {ok, sqlstate, message, detail} or {busy: the name of a lock}.
-- A set step takes all its inputs at once. If that is refused, or if the step has no set form, each input runs in its own
-- exception block, so that a refusal undoes that input alone.
-- locks, lock_places: the locks and the place of the input that needs each. Without `wait`, an input whose lock another
-- transaction holds is returned as busy, so that it delays nobody else in the batch.
-- repeated: some inputs may have been committed before, and only the reply was lost.
-- Plans are kept. Those of tables that are almost empty, like the open runs, would read the whole table for good when they are
-- made just after a vacuum: no step may, where an index will do.
create or replace function run_steps(steps text[], is_set boolean[], inputs jsonb, locks text[], lock_places int[], wait boolean, repeated boolean) returns jsonb language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  -- The name of a lock that each busy input waits for, by its place.
  busy jsonb := '{}';
  batch record;
  answers jsonb[];
  answer jsonb;
  results jsonb[] := array_fill(null::jsonb, array[cardinality(steps)]);
  error_state text;
  error_message text;
  error_detail text;
begin
  if wait then
    set local lock_timeout = '10s';
    perform lock_names(locks);
  else
    select coalesce(jsonb_object_agg(needed.place::text, needed.name), '{}') into busy
    from unnest(locks, lock_places) as needed(name, place)
    -- Each name is tried once, however many inputs need it.
    where needed.name in (select tried.name from (select distinct name from unnest(locks) as name) tried where not pg_try_advisory_xact_lock(hashtextextended(tried.name, 0)));
  end if;

  for batch in
    select each_step.step, each_step.is_set, array_agg(input.value order by input.place) as inputs, array_agg(input.place::int order by input.place) as places
    from jsonb_array_elements(inputs) with ordinality as input(value, place)
    join unnest(steps, is_set) with ordinality as each_step(step, is_set, place) on each_step.place = input.place
    where not busy ? input.place::text
    group by each_step.step, each_step.is_set order by min(input.place)
  loop
    answers := null;
    if batch.is_set and cardinality(batch.inputs) > 1 then
      begin
        execute format('select %I($1, $2)', batch.step) into answers using batch.inputs, repeated;
        for i in 1 .. cardinality(answers) loop
          results[batch.places[i]] := jsonb_build_object('ok', true, 'result', answers[i]);
        end loop;
      exception when others then
        get stacked diagnostics error_state = returned_sqlstate;
        if is_batch_failure(error_state) then
          raise;
        end if;
        answers := null;
      end;
    end if;
    continue when answers is not null;

    for i in 1 .. cardinality(batch.inputs) loop
      begin
        if batch.is_set then
          execute format('select (%I($1, $2))[1]', batch.step) into answer using batch.inputs[i:i], repeated;
        else
          execute format('select %I($1)', batch.step) into answer using batch.inputs[i];
        end if;
        results[batch.places[i]] := jsonb_build_object('ok', true, 'result', answer);
      exception when others then
        get stacked diagnostics error_state = returned_sqlstate, error_message = message_text, error_detail = pg_exception_detail;
        if is_batch_failure(error_state) then
          raise;
        end if;
        results[batch.places[i]] := jsonb_build_object('ok', false, 'sqlstate', error_state, 'message', error_message, 'detail', error_detail);
      end;
    end loop;
  end loop;

  for i in 1 .. cardinality(results) loop
    if busy ? i::text then
      results[i] := jsonb_build_object('busy', busy->i::text);
    end if;
  end loop;
  return to_jsonb(results);
end $$;

-- These errors (a deadlock, a shutdown, a lock held too long) fail the whole batch and do not mean that one input is refused.
create or replace function is_batch_failure(state text) returns boolean language sql immutable as $$
  select left(state, 2) in ('40', '53', '57') or state = '55P03'
$$;

-- Raises a refusal: an HTTP status, a reason, and the details that the response needs.
create or replace function refuse(status int, reason text, detail jsonb default '{}') returns void language plpgsql as $$
begin
  raise exception using errcode = 'CS' || status, message = reason, detail = detail::text;
end $$;

-- The lowest id of a time: ids are a prefix and a UUIDv7, which begins with the milliseconds, 48 bits of them since 1970.
create or replace function first_id(prefix text, at timestamptz) returns text language sql immutable as $$
  select prefix || '_' || left(time.hex, 8) || '-' || right(time.hex, 4)
  from (select lpad(to_hex(floor(least(greatest(extract(epoch from at) * 1000, 0), 281474976710655))::bigint), 12, '0') as hex) time
$$;

-- Makes the monthly partitions of a table that is partitioned by id, from this month to `ahead` months later. What they do
-- not cover is in its default partition, which must stay without rows of these months.
create or replace function make_partitions(parent text, prefix text, at timestamptz, ahead int) returns int language plpgsql as $$
declare
  month timestamptz;
  made int := 0;
  partition text;
begin
  for step in 0 .. ahead loop
    month := date_trunc('month', at, 'UTC') + make_interval(months => step);
    partition := parent || '_' || to_char(month at time zone 'UTC', 'YYYY_MM');
    continue when to_regclass(partition) is not null;
    begin
      -- Stored as the default partition is.
      execute format('create table %I partition of %I for values from (%L) to (%L) %s', partition, parent, first_id(prefix, month), first_id(prefix, month + interval '1 month'),
        (select 'with (' || array_to_string(reloptions, ', ') || ')' from pg_class where oid = to_regclass(parent || '_default') and reloptions is not null));
      made := made + 1;
    exception when invalid_object_definition or check_violation then
      -- An earlier partition reaches into this month, or the default partition has rows of it: they stay where they are.
      null;
    end;
  end loop;
  return made;
end $$;
