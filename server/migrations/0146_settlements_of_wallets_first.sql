-- As before, with the payments from wallets first: a reader who names a run and takes one row stops at the part that has it.
create or replace view settlements as
select run.terms->>'settlement_id' as id, run.id as run_id, run.tenant_id, 'wallet' as method, case run.state when 'completed' then 'settled' else 'failed' end as state,
       'eip155:8453' as network, run.terms->>'asset' as asset, run.payer, run.terms->>'pay_to' as pay_to, run.price_micro as amount_micro,
       run.terms->>'settlement_id' as nonce, 0::bigint as valid_before, null::jsonb as payment, null as transaction, false as shared_transaction, null::bigint as block, run.result->>'reason' as reason,
       0 as attempts, null::timestamptz as next_attempt_at, run.created_at, run.finished_at as updated_at, run.wallet_id
from ended_runs run where run.wallet_id is not null and run.kind <> 'topup'
union all
select run.terms->>'settlement_id', run.id, run.tenant_id, case when run.payment is null then 'wallet' else 'x402' end, coalesce(run.payment_state, 'pending'),
       coalesce(run.payment#>>'{terms,network}', 'eip155:8453'), run.terms->>'asset', run.payer, run.terms->>'pay_to', run.price_micro,
       coalesce(run.payment#>>'{authorization,nonce}', run.terms->>'settlement_id'), coalesce((run.payment#>>'{authorization,validBefore}')::bigint, 0), run.payment, null, false, null, run.reason,
       run.attempts, run.next_attempt_at, run.created_at, run.updated_at, run.wallet_id
from open_runs run where run.accounts is not null
union all
select id, run_id, tenant_id, method, state, network, asset, payer, pay_to, amount_micro, nonce, valid_before, payment, transaction, shared_transaction, block, reason,
       attempts, next_attempt_at, created_at, updated_at, wallet_id
from settlement_records;
