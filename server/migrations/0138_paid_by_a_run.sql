-- The run of the same tenant whose payment closed a pre-authorisation without its token. The run counts that money.
alter table preauths add column paid_run_id text;
