-- The failed settlements of a tenant that paid from a wallet: without it a list of them reads every run that has ended.
create index ended_runs_failed on ended_runs (tenant_id, id) where state = 'failed' and wallet_id is not null;
