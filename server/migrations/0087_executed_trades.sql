-- A trade that waited belongs to the time of its approval, when its amount was held.
create index rh_runs_held on rh_runs (tenant_id, coalesce(approved_at, created_at)) where state = 'executed';
