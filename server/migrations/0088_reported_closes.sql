-- Who saw the payment of a closed pre-authorisation. `reported`: nobody but the tenant; the chain is asked again at
-- `settlement_check_at`. `not_found`: the chain does not show what was reported.
alter table preauths
  add column settlement_status text check (settlement_status in ('settled', 'reported', 'failed', 'voided', 'not_found')),
  add column asserted_by text check (asserted_by in ('chain', 'facilitator', 'ledger', 'reported')),
  -- The receipt that settles or corrects a reported close, and why it was corrected.
  add column correction_receipt_id text,
  add column correction_reason text,
  add column settlement_checks int not null default 0,
  add column settlement_check_at timestamptz;

update preauths set
  settlement_status = case when close_outcome = 'settled' and not taken_by_run and verified_onchain is not true then 'reported' else close_outcome end,
  asserted_by = case when verified_onchain then 'chain' when taken_by_run then 'ledger' else 'reported' end,
  settlement_check_at = case when close_outcome = 'settled' and not taken_by_run and verified_onchain is not true and network = 'eip155:8453' and transaction ~ '^0x[0-9a-f]{64}$' then closed_at end
where status = 'closed';

create index preauths_to_check on preauths (settlement_check_at) where settlement_check_at is not null;
create index preauths_reported on preauths (mandate_id) where settlement_status in ('reported', 'not_found');
