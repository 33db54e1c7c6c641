-- What `/api/runs` shows of a pre-authorisation, kept beside it, so that looking for one outcome reads only those.
alter table preauths add column outcome text not null generated always as (
  case
    when status = 'pending_approval' then 'pending'
    when status = 'rejected' then 'blocked'
    when status = 'escalated' then 'escalated'
    when status in ('open', 'in_use') then 'approved'
    when close_outcome = 'settled' then 'completed'
    else 'failed'
  end
) stored;
create index preauths_by_outcome on preauths (tenant_id, outcome, run_id desc) where not taken_by_run;
