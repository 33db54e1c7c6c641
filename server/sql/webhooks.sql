-- input: {id, tenant_id, type, data, created_at}. A guest's event is not written, because it cannot have subscribers.
create or replace function emit_event(input jsonb) returns void language sql as $$
  insert into journal (tenant_id, at, events)
  select input->>'tenant_id', (input->>'created_at')::timestamptz,
         jsonb_build_array(jsonb_build_object('id', input->'id', 'type', input->'type', 'data', input->'data'))
  where input->>'tenant_id' is not null
$$;

-- Claims due deliveries for one worker until its lease ends; other workers skip them. A worker gets at most `per_subscription`
-- deliveries of one subscription, including those it is already sending (`busy`), so that one backlog cannot crowd out another.
-- The query steps from one waiting subscription to the next and never scans the backlog itself.
create or replace function claim_deliveries(at timestamptz, lease interval, max_rows int, per_subscription int, lane_standing text, busy jsonb, worker text)
returns setof webhook_deliveries language sql as $$
  with recursive waiting as (
    (select subscription_id from webhook_deliveries where state = 'pending' order by subscription_id limit 1)
    union all
    select (select delivery.subscription_id from webhook_deliveries delivery
            where delivery.state = 'pending' and delivery.subscription_id > waiting_subscription.subscription_id order by delivery.subscription_id limit 1)
    from waiting waiting_subscription where waiting_subscription.subscription_id is not null
  ), ready as (
    select subscription.id, per_subscription - coalesce((busy->>subscription.id)::int, 0) as room, earliest.next_attempt_at
    from waiting waiting_subscription
    join webhook_subscriptions subscription on subscription.id = waiting_subscription.subscription_id
    cross join lateral (
      select delivery.next_attempt_at from webhook_deliveries delivery
      where delivery.subscription_id = subscription.id and delivery.state = 'pending' order by delivery.next_attempt_at limit 1
    ) as earliest
    where subscription.is_active and subscription.deleted_at is null and subscription.standing = lane_standing and earliest.next_attempt_at <= at
      and coalesce((busy->>subscription.id)::int, 0) < per_subscription
    order by earliest.next_attempt_at limit max_rows
  ), due as (
    select due_delivery.id from ready
    cross join lateral (
      select delivery.id from webhook_deliveries delivery
      where delivery.subscription_id = ready.id and delivery.state = 'pending' and delivery.next_attempt_at <= at
      order by delivery.next_attempt_at, delivery.seq limit ready.room for update skip locked
    ) as due_delivery
    limit max_rows
  )
  update webhook_deliveries set next_attempt_at = at + lease, claim = worker where id in (select id from due)
  returning *
$$;

-- Records the outcome of one attempt. input: {id, claim, at, ok, status, error, ms, timestamp, signature, answer, next_attempt_at, standing, switch_off}
-- An outcome whose claim has expired is dropped: another worker has the delivery now.
create or replace function finish_delivery(input jsonb) returns jsonb language plpgsql as $$
declare
  at timestamptz := (input->>'at')::timestamptz;
  ok boolean := (input->>'ok')::boolean;
  finished_subscription text;
  switched_off boolean := false;
begin
  update webhook_deliveries delivery set
    state = case when ok then 'delivered' when input->>'next_attempt_at' is null then 'exhausted' else 'pending' end,
    attempts = attempts + 1, round_attempts = round_attempts + 1,
    next_attempt_at = (input->>'next_attempt_at')::timestamptz, claim = null,
    last_status = (input->>'status')::int, last_error = input->>'error', last_ms = (input->>'ms')::int, last_attempt_at = at,
    history = case when jsonb_array_length(history) >= 20 then history - 0 else history end
      || jsonb_build_object('at', input->'at', 'status', input->'status', 'error', input->'error', 'ms', input->'ms',
        'timestamp', input->'timestamp', 'signature', input->'signature', 'answer', input->'answer'),
    delivered_at = case when ok then at else delivered_at end
  where delivery.id = input->>'id' and delivery.claim = input->>'claim' and delivery.state = 'pending'
  returning subscription_id into finished_subscription;
  if finished_subscription is null then
    return jsonb_build_object('dropped', true, 'switched_off', false);
  end if;
  if ok then
    update webhook_subscriptions set failures = 0, failing_since = null, standing = input->>'standing'
    where id = finished_subscription and (failures > 0 or failing_since is not null or standing <> input->>'standing');
  else
    -- An attempt that was under way when its owner switched the subscription off does not make it a failing one.
    update webhook_subscriptions set failures = failures + 1, failing_since = case when is_active then coalesce(failing_since, at) else failing_since end, standing = 'poor'
    where id = finished_subscription;
  end if;
  if input->>'switch_off' is not null then
    update webhook_subscriptions set is_active = false, disabled_reason = input->>'switch_off', disabled_at = at, updated_at = at
    where id = finished_subscription and is_active;
    switched_off := found;
  end if;
  return jsonb_build_object('dropped', false, 'switched_off', switched_off);
end $$;

-- What is active and what is failing, for `?status=` of the list and for the control tower.
create or replace view webhook_states as
select id, tenant_id, is_active, failing_since is not null or disabled_reason is not null as is_failing
from webhook_subscriptions where deleted_at is null;

-- Deliveries that will still be tried: the rows of `/api/webhook-deliveries` and `pending_deliveries` of the control tower.
create or replace view waiting_deliveries as
select delivery.id, subscription.tenant_id, delivery.subscription_id, delivery.created_at
from webhook_states subscription join webhook_deliveries delivery on delivery.subscription_id = subscription.id and delivery.state = 'pending'
where subscription.is_active;
