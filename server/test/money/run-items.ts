import type pg from 'pg'
import type {
  abandonRunsStep,
  admitRunsStep,
  completeAtOnceStep,
  completeRunsStep,
} from '../../src/modules/runs/runs.steps.ts'
import { stringifyWithBigints } from '../../src/platform/json.ts'
import type { StepInput } from '../../src/platform/sql-step.ts'

export type RunItem = {
  id: string
  kind: 'run' | 'topup'
  tenantId: string
  walletId: string
  priceMicro: bigint
  pendingId: string
}

const AT = '2026-11-16T15:00:00.000Z'
const PAYER = '0xpayer'

/** What the service sends to admit a run that a wallet pays, or a top-up that an x402 payment pays. */
export function buildAdmission(
  { id, kind, tenantId, walletId, priceMicro, pendingId }: RunItem,
  changes: Partial<StepInput<typeof admitRunsStep>> = {},
): StepInput<typeof admitRunsStep> {
  const isTopUp = kind === 'topup'
  const walletAccount = `liabilities:wallet:${walletId}`
  const nonce = { payer: PAYER, nonce: id, network: 'eip155:8453', asset: 'USDC' }
  const terms = { settlement_id: `stl_${id}`, pending_id: pendingId, asset: 'USDC', pay_to: '0xours', ruling: {} }
  return {
    id,
    kind,
    tenant_id: tenantId,
    payer: PAYER,
    agent_id: 'default',
    spender: null,
    team: null,
    key_id: null,
    tags: null,
    session_id: 'ses_1',
    loop_id: `loop_${id}`,
    request_hash: 'h',
    request: {},
    terms: terms as unknown as StepInput<typeof admitRunsStep>['terms'],
    price_micro: priceMicro,
    instance: 'test',
    admission: `adm_${id}`,
    created_at: AT,
    deadline_at: AT,
    wallet_id: walletId,
    accounts: isTopUp ? ['assets:chain:usdc', walletAccount] : [walletAccount, 'revenue:lane:default'],
    amounts: [priceMicro, -priceMicro],
    payment: isTopUp
      ? {
          terms: { network: nonce.network, asset: nonce.asset, payTo: '0xours' },
          authorization: { nonce: id, validBefore: '4000000000' },
          signature: '0x',
        }
      : null,
    nonce: isTopUp ? nonce : null,
    keys: [],
    escrow: null,
    holds: [],
    grants: null,
    audit: buildAudit(id, tenantId),
    result: isTopUp ? {} : null,
    next_attempt_at: null,
    ...changes,
  }
}

const buildAudit = (subject: string, tenant_id: string) => ({
  id: `aud_${subject}`,
  tenant_id,
  type: 'test',
  occurred_at: AT,
  actor: 'test',
  subject,
})

const buildEnd = ({ id, tenantId }: RunItem, kind: 'run' | 'topup' | 'failure') => ({
  run_id: id,
  at: AT,
  escrow: null,
  answer: { status: 200, packed: '', receipt_at: 11 },
  result: {},
  cost_usd: null,
  latency_ms: null,
  receipt: {
    id: `rcp_${id}`,
    run_id: id,
    tenant_id: tenantId,
    kind,
    agent_id: 'default',
    payer: PAYER,
    issued_at: AT,
    body: `{"run_id":"${id}"}`,
    hash: `sha256:${id}`,
    prev_hash: null,
  },
  events: [],
  audit: buildAudit(id, tenantId),
})

export const buildCompletion = (run: RunItem, postingId: string): StepInput<typeof completeRunsStep> => ({
  ...buildEnd(run, run.kind),
  ledger_id: postingId,
  admission: `adm_${run.id}`,
  transaction: run.kind === 'topup' ? `0x${run.id}` : null,
  block: null,
  shared: false,
  memory: null,
})

/** What the service sends of a run that is done before it is written down. */
export function buildCompletionAtOnce(
  run: RunItem,
  changes: Partial<StepInput<typeof completeAtOnceStep>> = {},
): StepInput<typeof completeAtOnceStep> {
  const { instance, payment, nonce, escrow, next_attempt_at, audit, ...draft } = buildAdmission(run)
  const { answer, cost_usd, latency_ms, receipt, events, at } = buildEnd(run, 'run')
  const { id, tenantId: tenant_id, walletId: wallet_id } = run
  const end = { answer, cost_usd, latency_ms, receipt, events, at, result: {}, ledger_id: `ltx_${id}`, audits: [audit] }
  return { ...draft, ...end, tenant_id, wallet_id, grants: { rules_version: 0n, needs: [] }, ...changes }
}

/** A voided transaction keeps the id under which it was pending. */
export const buildFailure = (run: RunItem): StepInput<typeof abandonRunsStep> => ({
  ...buildEnd(run, 'failure'),
  ledger_id: run.pendingId,
  reason: 'test',
  from_state: null,
  admission: null,
})

/** Calls a set step with a batch, in the same way as the service: for each input its answer, or the reason of its refusal. */
export async function callSet(
  client: Pick<pg.Client | pg.Pool, 'query'>,
  step: string,
  items: unknown[],
  repeated = false,
): Promise<unknown[]> {
  const { rows } = await client.query(`select run_steps($1, $2, $3, '{}', '{}', true, $4) as results`, [
    items.map(() => step),
    items.map(() => true),
    stringifyWithBigints(items),
    repeated,
  ])
  type Result = { ok: boolean; result: unknown; message: string }
  return (rows[0].results as Result[]).map(({ ok, result, message }) => (ok ? result : message))
}

/** Adds up to `maxRows` transactions that wait in the journal to the balances, as the sequencer does. */
export async function countLedger(client: Pick<pg.Client | pg.Pool, 'query'>, maxRows: number): Promise<void> {
  await client.query(
    `with taken as (
       update journal set ledger_id = null from (select id, ledger_id from journal where ledger_id is not null order by id limit $1) as waiting
       where journal.id = waiting.id returning waiting.ledger_id
     ) select count_ledger(array(select ledger_id from taken))`,
    [maxRows],
  )
}
