-- What a tenant used since a moment. A run's id begins with its time, so the range of ids stands for the range of times.
create or replace function tenant_usage(tenant text, since timestamptz)
returns table (runs bigint, spend_micro bigint, webhook_subscriptions bigint) language sql stable as $$
  select (select count(*) from runs r where r.tenant_id = tenant and r.created_at >= since and r.state in ('settling', 'completed')),
         (select coalesce(sum(r.price_micro), 0)::bigint from runs r where r.tenant_id = tenant and r.created_at >= since and r.state = 'completed'),
         (select count(*) from webhook_subscriptions w where w.tenant_id = tenant and w.deleted_at is null)
$$;
