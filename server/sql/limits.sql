-- Holds money for one run inside the run's own step: a hold without its run is a leak.
-- i: [{scope, period, limit_micro, soft_limit_micro?, amount_micro, on_success, on_refusal: {status, reason, detail}}], in scope order.
-- A refusal raises; the step's other writes are undone with it, its neighbours in the batch are not.
create or replace function hold_limits(who text, i jsonb, at timestamptz) returns void language plpgsql as $$
declare
  hold jsonb;
begin
  for hold in select value from jsonb_array_elements(i) order by value->>'scope', value->>'period' loop
    insert into limits (scope, period, limit_micro, soft_limit_micro)
    values (hold->>'scope', hold->>'period', (hold->>'limit_micro')::bigint, (hold->>'soft_limit_micro')::bigint)
    on conflict (scope, period) do nothing;
    update limits
    set reserved_micro = reserved_micro + (hold->>'amount_micro')::bigint,
        -- The definition may have been raised since the counter was made; it is never lowered below what is taken.
        limit_micro = greatest((hold->>'limit_micro')::bigint, spent_micro + reserved_micro + (hold->>'amount_micro')::bigint),
        soft_limit_micro = (hold->>'soft_limit_micro')::bigint
    where scope = hold->>'scope' and period = hold->>'period'
      and spent_micro + reserved_micro + (hold->>'amount_micro')::bigint <= (hold->>'limit_micro')::bigint;
    if not found then
      perform refuse(
        coalesce((hold#>>'{on_refusal,status}')::int, 429), coalesce(hold#>>'{on_refusal,reason}', 'limit exceeded'),
        coalesce(hold#>'{on_refusal,detail}', '{}') || jsonb_build_object('scope', hold->>'scope', 'period', hold->>'period',
          'remaining_micro', (select ((hold->>'limit_micro')::bigint - spent_micro - reserved_micro)::text from limits
                              where scope = hold->>'scope' and period = hold->>'period')));
    end if;
    insert into holds (holder, scope, period, amount_micro, on_success, created_at)
    values (who, hold->>'scope', hold->>'period', (hold->>'amount_micro')::bigint, hold->>'on_success', at);
  end loop;
end $$;

-- Ends a holder's open holds. `taken_micro` is what was really spent, at most what was held; null means all of it.
create or replace function settle_holds(who text, success boolean, taken_micro bigint default null) returns void language plpgsql as $$
declare
  hold holds;
  spent bigint;
begin
  for hold in select * from holds where holder = who and state = 'open' order by scope, period for update loop
    spent := case when success and hold.on_success = 'spend' then least(hold.amount_micro, coalesce(taken_micro, hold.amount_micro)) else 0 end;
    update limits set reserved_micro = reserved_micro - hold.amount_micro, spent_micro = spent_micro + spent
    where scope = hold.scope and period = hold.period;
    update holds set state = case when spent > 0 then 'spent' else 'released' end
    where holder = hold.holder and scope = hold.scope and period = hold.period;
  end loop;
end $$;
