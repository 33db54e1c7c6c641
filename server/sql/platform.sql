-- Runs one step function over a batch. Each item has its own exception block: a refusal undoes that item alone.
-- Locks are taken first and in one order, so that two processes with the same items in another order cannot deadlock.
create or replace function each_item(step text, items jsonb, locks text[]) returns jsonb language plpgsql as $$
declare
  lock_key bigint;
  item jsonb;
  result jsonb;
  verdicts jsonb[] := '{}';
  state text;
  words text;
  more text;
begin
  for lock_key in select distinct hashtextextended(name, 0) from unnest(locks) as name order by 1 loop
    perform pg_advisory_xact_lock(lock_key);
  end loop;
  for item in select value from jsonb_array_elements(items) loop
    begin
      execute format('select %I($1)', step) into result using item;
      verdicts := verdicts || jsonb_build_object('ok', true, 'result', result);
    exception when others then
      get stacked diagnostics state = returned_sqlstate, words = message_text, more = pg_exception_detail;
      -- These are the batch's own misfortune, not a judgement of this item: the caller tries each alone.
      if left(state, 2) in ('40', '53', '57') then
        raise;
      end if;
      verdicts := verdicts || jsonb_build_object('ok', false, 'sqlstate', state, 'message', words, 'detail', more);
    end;
  end loop;
  return to_jsonb(verdicts);
end $$;

-- A refusal that the caller will read: an HTTP status, a reason, and what the program needs to answer well.
create or replace function refuse(status int, reason text, detail jsonb default '{}') returns void language plpgsql as $$
begin
  raise exception using errcode = 'CS' || status, message = reason, detail = detail::text;
end $$;
