-- Runs one step function over a batch. Each item has its own exception block: a refusal undoes that item alone.
-- Locks are taken first and in one order, so that two processes with the same items in another order cannot deadlock.
create or replace function each_item(step text, items jsonb, locks text[]) returns jsonb language plpgsql as $$
declare
  lock_key bigint;
  item jsonb;
  result jsonb;
  results jsonb[] := '{}';
  error_state text;
  error_message text;
  error_detail text;
begin
  for lock_key in select distinct hashtextextended(name, 0) from unnest(locks) as name order by 1 loop
    perform pg_advisory_xact_lock(lock_key);
  end loop;
  for item in select value from jsonb_array_elements(items) loop
    begin
      execute format('select %I($1)', step) into result using item;
      results := results || jsonb_build_object('ok', true, 'result', result);
    exception when others then
      get stacked diagnostics error_state = returned_sqlstate, error_message = message_text, error_detail = pg_exception_detail;
      -- These errors fail the whole batch and do not mean that this item is refused: the caller tries each item alone.
      if left(error_state, 2) in ('40', '53', '57') then
        raise;
      end if;
      results := results || jsonb_build_object('ok', false, 'sqlstate', error_state, 'message', error_message, 'detail', error_detail);
    end;
  end loop;
  return to_jsonb(results);
end $$;

-- Raises a refusal: an HTTP status, a reason, and the details that the response needs.
create or replace function refuse(status int, reason text, detail jsonb default '{}') returns void language plpgsql as $$
begin
  raise exception using errcode = 'CS' || status, message = reason, detail = detail::text;
end $$;
