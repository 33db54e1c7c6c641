-- Takes or keeps the turn to ingest; false when another process holds it and its time has not run out.
create or replace function take_basis_turn(wanted text, at timestamptz, ends timestamptz) returns boolean language sql as $$
  with taken as (
    insert into basis_turn as t (holder, until) values (wanted, ends)
    on conflict (one) do update set holder = wanted, until = ends where t.holder = wanted or t.until <= at
    returning 1
  )
  select exists (select 1 from taken)
$$;

-- The last reading of each span of time, oldest first.
create or replace function basis_history(wanted text, starts timestamptz, ends timestamptz, step interval, most int)
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
    date_bin(step, r.as_of, timestamptz '2000-01-01 00:00:00Z') as bucket,
    r.as_of, r.wrapper_price, r.reference_price, r.basis_bps, r.near_reference_usd, r.underlying_state, r.window_score, r.window_status
  from basis_readings r
  where r.asset = wanted and r.as_of >= starts and r.as_of < ends
  order by 1, r.as_of desc
  limit most
$$;

-- Old bodies, questions, attestations and readings go, a limited number at a time, so that a sweep never holds the tables for long.
create or replace function prune_basis(bodies_before timestamptz, readings_before timestamptz, most int) returns int language plpgsql as $$
declare
  gone int := 0;
  part int;
begin
  delete from basis_fetches where id in (select id from basis_fetches where fetched_at < bodies_before order by fetched_at limit most);
  get diagnostics part = row_count;
  gone := gone + part;
  delete from basis_bodies where sha256 in (select sha256 from basis_bodies where stored_at < bodies_before order by stored_at limit most);
  get diagnostics part = row_count;
  gone := gone + part;
  update basis_readings set attestation = null
  where (asset, seq) in (
    select asset, seq from basis_readings where as_of < bodies_before and attestation is not null order by as_of limit most
  );
  get diagnostics part = row_count;
  gone := gone + part;
  delete from basis_readings where (asset, seq) in (select asset, seq from basis_readings where as_of < readings_before order by as_of limit most);
  get diagnostics part = row_count;
  return gone + part;
end $$;
