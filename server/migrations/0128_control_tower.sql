-- Top-ups are few among the runs of a tenant, and the control tower counts them apart from the sums of runs and loops.
create index ended_runs_topups on ended_runs (tenant_id, id) where kind = 'topup';
-- Alerts that nobody has read, for their number and their list.
create index alerts_unread on alerts (tenant_id, id) where read_at is null;
