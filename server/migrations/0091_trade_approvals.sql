-- A trade that waits for an approval keeps its request, encrypted, and the approvals that it has so far.
alter table rh_runs
  add column content text,
  add column votes jsonb not null default '[]';
create index rh_runs_content on rh_runs (finished_at) where content is not null;

-- Trades that were refused or wait leave a decision too; a trade need not name an agent.
alter table decisions
  drop constraint decisions_kind_check,
  add constraint decisions_kind_check check (kind in ('run', 'loop', 'preauth', 'trade')),
  alter column agent_id drop not null;
