-- Grants (approvals, overrides, pre-authorisations) are consumed together with the admission and restored when a run fails uncharged.
create or replace function consume_grants(i jsonb, run_id text, at timestamptz) returns void language sql as $$ select $$;
create or replace function restore_grants(run_id text, at timestamptz) returns void language sql as $$ select $$;
