-- Who ended a trade: the key or recipient that rejected or stopped it, the clock, or the worker.
alter table rh_runs add column ended_by text;

-- Trades that a person was asked about, newest first.
create index rh_runs_asked on rh_runs (tenant_id, id desc) where approval is not null;
