-- Acquires or renews the lease to ingest; returns false while another process holds it.
create or replace function take_basis_turn(candidate text, at timestamptz, ends_at timestamptz) returns boolean language sql as $$
  with acquired as (
    insert into basis_turn as current (holder, until) values (candidate, ends_at)
    on conflict (one) do update set holder = candidate, until = ends_at where current.holder = candidate or current.until <= at
    returning 1
  )
  select exists (select 1 from acquired)
$$;

-- The last reading of each time interval, oldest first.
create or replace function basis_history(for_asset text, from_time timestamptz, until_time timestamptz, step interval, max_rows int)
returns table (
  bucket timestamptz,
  as_of timestamptz,
  wrapper_price double precision,
  reference_price double precision,
  basis_bps double precision,
  near_reference_usd double precision,
  underlying_state text,
  window_score double precision,
  window_status text
) language sql stable as $$
  select distinct on (1)
    date_bin(step, reading.as_of, timestamptz '2000-01-01 00:00:00Z') as bucket,
    reading.as_of, reading.wrapper_price, reading.reference_price, reading.basis_bps, reading.near_reference_usd, reading.underlying_state, reading.window_score, reading.window_status
  from basis_readings reading
  where reading.asset = for_asset and reading.as_of >= from_time and reading.as_of < until_time
  order by 1, reading.as_of desc
  limit max_rows
$$;

-- Deletes old bodies, fetches, attestations and readings, a limited number at a time, so that a sweep never holds locks for long.
create or replace function prune_basis(bodies_before timestamptz, readings_before timestamptz, max_rows int) returns int language plpgsql as $$
declare
  deleted int := 0;
  affected int;
begin
  delete from basis_fetches where id in (select id from basis_fetches where fetched_at < bodies_before order by fetched_at limit max_rows);
  get diagnostics affected = row_count;
  deleted := deleted + affected;
  delete from basis_bodies where sha256 in (select sha256 from basis_bodies where stored_at < bodies_before order by stored_at limit max_rows);
  get diagnostics affected = row_count;
  deleted := deleted + affected;
  update basis_readings set attestation = null
  where (asset, seq) in (
    select asset, seq from basis_readings where as_of < bodies_before and attestation is not null order by as_of limit max_rows
  );
  get diagnostics affected = row_count;
  deleted := deleted + affected;
  delete from basis_readings where (asset, seq) in (select asset, seq from basis_readings where as_of < readings_before order by as_of limit max_rows);
  get diagnostics affected = row_count;
  return deleted + affected;
end $$;

-- Makes an attestation an entry of the public log, once, before it is handed out for the first time. Answers it as it was first handed out.
-- input: {id, asset, symbol, chain, as_of, seq, body, receipt}
create or replace function log_attestation(input jsonb) returns jsonb language plpgsql as $$
begin
  insert into basis_attestations (id, asset, symbol, chain, as_of, seq, body)
  values (input->>'id', input->>'asset', input->>'symbol', input->>'chain', (input->>'as_of')::timestamptz, (input->>'seq')::bigint, input->>'body')
  on conflict (id) do nothing;
  if found then
    perform issue_receipt(input->'receipt');
  end if;
  return (select jsonb_build_object('body', body) from basis_attestations where id = input->>'id');
end $$;
