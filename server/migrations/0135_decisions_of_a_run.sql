-- The page of a refused run reads its decision.
create index decisions_of_run on decisions (tenant_id, run_id);
