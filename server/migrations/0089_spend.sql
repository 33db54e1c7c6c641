-- What `/api/spend` reads of a range of time. Runs and loops are found by their ids, which are in the order of time.
create index preauths_spent on preauths (tenant_id, (coalesce(issued_at, created_at))) where status = 'closed' and close_outcome = 'settled' and not taken_by_run;
create index rh_runs_executed on rh_runs (tenant_id, created_at) where state = 'executed';
