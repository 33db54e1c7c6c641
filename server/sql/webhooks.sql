-- i: {id, tenant_id, type, data, created_at}. An event nobody can subscribe to (a guest's) is not written.
create or replace function emit_event(i jsonb) returns void language sql as $$
  insert into events (id, tenant_id, type, data, created_at)
  select i->>'id', i->>'tenant_id', i->>'type', i->'data', (i->>'created_at')::timestamptz
  where i->>'tenant_id' is not null
$$;

-- Hands due deliveries to one worker for the length of its lease; others skip them. Each subscription gives at most
-- `a_subscription` less what the worker already has in hand for it (`busy`), so that no backlog crowds out another.
-- The walk goes from one waiting subscription to the next, never over the backlog itself.
create or replace function claim_deliveries(at timestamptz, lease interval, most int, a_subscription int, wanted_standing text, busy jsonb, worker text)
returns setof webhook_deliveries language sql as $$
  with recursive waiting as (
    (select subscription_id from webhook_deliveries where state = 'pending' order by subscription_id limit 1)
    union all
    select (select d.subscription_id from webhook_deliveries d
            where d.state = 'pending' and d.subscription_id > w.subscription_id order by d.subscription_id limit 1)
    from waiting w where w.subscription_id is not null
  ), ready as (
    select s.id, a_subscription - coalesce((busy->>s.id)::int, 0) as room, earliest.next_attempt_at
    from waiting w
    join webhook_subscriptions s on s.id = w.subscription_id
    cross join lateral (
      select d.next_attempt_at from webhook_deliveries d
      where d.subscription_id = s.id and d.state = 'pending' order by d.next_attempt_at limit 1
    ) as earliest
    where s.is_active and s.deleted_at is null and s.standing = wanted_standing and earliest.next_attempt_at <= at
      and coalesce((busy->>s.id)::int, 0) < a_subscription
    order by earliest.next_attempt_at limit most
  ), due as (
    select picked.id from ready
    cross join lateral (
      select d.id from webhook_deliveries d
      where d.subscription_id = ready.id and d.state = 'pending' and d.next_attempt_at <= at
      order by d.next_attempt_at, d.seq limit ready.room for update skip locked
    ) as picked
    limit most
  )
  update webhook_deliveries set next_attempt_at = at + lease, claim = worker where id in (select id from due)
  returning *
$$;

-- What came of one attempt. i: {id, claim, at, ok, status, error, ms, next_attempt_at, standing, switch_off}
-- An outcome whose claim has run out meanwhile is dropped: another worker answers for the delivery now.
create or replace function finish_delivery(i jsonb) returns jsonb language plpgsql as $$
declare
  at timestamptz := (i->>'at')::timestamptz;
  ok boolean := (i->>'ok')::boolean;
  subscription text;
  switched boolean := false;
begin
  update webhook_deliveries d set
    state = case when ok then 'delivered' when i->>'next_attempt_at' is null then 'exhausted' else 'pending' end,
    attempts = attempts + 1, round_attempts = round_attempts + 1,
    next_attempt_at = (i->>'next_attempt_at')::timestamptz, claim = null,
    last_status = (i->>'status')::int, last_error = i->>'error', last_ms = (i->>'ms')::int, last_attempt_at = at,
    history = case when jsonb_array_length(history) >= 20 then history - 0 else history end
      || jsonb_build_object('at', i->'at', 'status', i->'status', 'error', i->'error', 'ms', i->'ms'),
    delivered_at = case when ok then at else delivered_at end
  where d.id = i->>'id' and d.claim = i->>'claim' and d.state = 'pending'
  returning subscription_id into subscription;
  if subscription is null then
    return jsonb_build_object('dropped', true, 'switched_off', false);
  end if;
  if ok then
    update webhook_subscriptions set failures = 0, failing_since = null, standing = i->>'standing'
    where id = subscription and (failures > 0 or failing_since is not null or standing <> i->>'standing');
  else
    update webhook_subscriptions set failures = failures + 1, failing_since = coalesce(failing_since, at), standing = 'poor'
    where id = subscription;
  end if;
  if i->>'switch_off' is not null then
    update webhook_subscriptions set is_active = false, disabled_reason = i->>'switch_off', disabled_at = at, updated_at = at
    where id = subscription and is_active;
    switched := found;
  end if;
  return jsonb_build_object('dropped', false, 'switched_off', switched);
end $$;
