import { readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type pg from 'pg'
import { Type } from 'typebox'
import { Check } from 'typebox/value'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { StepDefinition } from '../src/platform/sql-step.ts'
import { createTestDatabase } from './harness.ts'

/**
 * Every SQL step is called with a value made from its schema, on a connection whose JSON operators report each key that
 * they read. A key that SQL reads and the schema lacks would be a silent NULL; a key that SQL never reads is an error too.
 */
const source = resolve(import.meta.dirname, '../src')
const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.steps.ts'))
const isStep = (value: unknown): value is StepDefinition =>
  typeof value === 'object' && value !== null && 'name' in value && 'input' in value && 'answer' in value
const definitions = (
  await Promise.all(files.map(async (name) => Object.values(await import(pathToFileURL(join(source, name)).href))))
)
  .flat()
  .filter(isStep)

/** Steps whose input has no schema yet. Do not add to this list. */
const untypedStepNames: string[] = []

/** Values that a step stores whole in the journal, where the sequencer reads them. */
const journaled: Record<string, string[]> = {
  admit_runs: ['audit'],
  complete_runs: ['events', 'audit'],
  complete_at_once: ['events', 'audits'],
  abandon_runs: ['events', 'audit'],
}

/** The JSON Schema keywords that the schemas of steps use. */
type Schema = {
  type?: string
  const?: Json
  format?: string
  pattern?: string
  properties?: Record<string, Schema>
  items?: Schema
  anyOf?: Schema[]
}
type Json = string | number | boolean | null | Json[] | { [key: string]: Json }
/** `input` replaces values of the sample by their path. A case that must be refused names the reason or the constraint. */
type Case = { prepare: string[]; input: Record<string, Json>; refusal?: string; repeated?: boolean }

const TENANT = `insert into tenants (id, org_name, email, created_at, updated_at) values ('ten_1', 'Tenant', 't@example.com', now(), now())`
const WALLET = `insert into wallets (id, tenant_id, name, available_micro, reserved_micro, escrowed_micro, created_at) values ('wal_1', 'ten_1', 'Wallet', 900, 50, 50, now())`
const PAYMENT = `'{"terms": {"network": "n", "asset": "a", "payTo": "t"}, "authorization": {"nonce": "nonce_1", "validBefore": "4000000000"}, "signature": "s"}'`
const OPEN_RUN = ({ state = 'executing', wallet = false, escrow = false }) => [
  TENANT,
  WALLET,
  `insert into open_runs (id, kind, tenant_id, payer, agent_id, session_id, loop_id, action, state, outcome, request_hash, request, terms, price_micro, admission, created_at, deadline_at,
     wallet_id, accounts, amounts, payment, payment_state, updated_at)
   values ('run_1', 'run', 'ten_1', 'p', 'default', 'ses_1', 'loop_1', 'run', '${state}', 'pending', 'h', '{}', '{"settlement_id": "stl_1", "ruling": {}${escrow ? ', "escrow_id": "esc_1"' : ''}}', 50, 'adm_1', now(), now(),
     ${wallet ? "'wal_1'" : 'null'}, '{a,b}', '{50,-50}', ${wallet ? 'null, null' : `${PAYMENT}, 'pending'`}, now())`,
]
const SUBSCRIPTION = `insert into webhook_subscriptions (id, tenant_id, url, events, secret, is_active, standing, created_at, updated_at)
   values ('whk_1', 'ten_1', 'http://127.0.0.1/', '{run.completed}', 's', true, 'good', now(), now())`
const ENDED_RUN = [
  TENANT,
  `insert into ended_runs (id, kind, action, agent_id, session_id, loop_id, state, outcome, request_hash, request, terms, price_micro, created_at, deadline_at)
   values ('run_1', 'run', 'run', 'default', 'ses_1', 'loop_1', 'completed', 'completed', 'h', '{}', '{}', 50, now(), now())`,
]
const ESCROW = `insert into escrows (id, tenant_id, wallet_id, run_id, amount_micro, state, expires_at, created_at) values ('esc_1', 'ten_1', 'wal_1', 'run_1', 50, 'held', now(), now())`
const SETTLEMENT = (state: string) => [
  TENANT,
  `insert into settlement_records (id, run_id, method, state, network, asset, payer, pay_to, amount_micro, nonce, valid_before, payment, created_at, updated_at)
   values ('stl_1', 'run_1', 'x402', '${state}', 'n', 'a', 'p', 't', 50, 'nonce', 4000000000, '{}', now(), now())`,
]
const PAYOUT = `insert into payouts (id, kind, settlement_id, to_address, amount_micro, method, state, pending_id, accounts, amounts, requested_by, created_at, updated_at)
   values ('pay_1', 'refund', 'stl_1', '0x0', 50, 'chain', 'pending', 'ltx_1', '{a,b}', '{50,-50}', 'service', now(), now())`
const GRANTS = [
  TENANT,
  `insert into decisions (id, tenant_id, kind, run_id, agent_id, merchant, amount_micro, outcome, error, message, overridable, results, action_hash, asked_by, created_at)
   values ('dec_1', 'ten_1', 'run', 'run_1', 'agent_1', 'mer_1', 50, 'blocked', 'e', 'm', true, '[]', 'action_1', 'k', now())`,
  `insert into approvals (id, tenant_id, kind, status, resolution, action, agent_id, run_id, decision_id, requested_by, reason, amount_micro, merchant, risk_summary, action_hash, approvals_required, separate_approver, expires_at, created_at)
   values ('apr_1', 'ten_1', 'run', 'approved', 'approved', 'a', 'agent_1', 'run_1', 'dec_1', 'k', 'r', 50, 'mer_1', '{}', 'action_1', 1, false, '2100-01-01', now())`,
  `insert into overrides (id, tenant_id, hash, agent_id, amount_micro, merchant, reason, decision_id, issued_by, created_at, expires_at)
   values ('ovr_1', 'ten_1', 'h', 'agent_1', 50, 'mer_1', 'r', 'dec_1', 'k', now(), '2100-01-01')`,
  `insert into preauths (id, tenant_id, run_id, status, agent_id, merchant_id, merchant, amount_micro, asset, network, action_hash, policy_results, ttl_seconds, asked_by, created_at, expires_at)
   values ('pa_1', 'ten_1', 'run_1', 'open', 'agent_1', 'mer_1', '{}', 50, 'a', 'n', 'action_1', '[]', 60, 'k', now(), '2100-01-01')`,
]
const WITH_TENANT = { 'receipt.tenant_id': 'ten_1', 'audit.tenant_id': 'ten_1', 'events.0.tenant_id': 'ten_1' }
const CLOSABLE = [...GRANTS, `update preauths set close_by = '2100-01-01', settlement_status = 'settled'`]
const CLOSE = {
  ...WITH_TENANT,
  holds: [],
  preauth_id: 'pa_1',
  tenant_id: 'ten_1',
  outcome: 'settled',
  charged_micro: '50',
  matching: 1,
}
const REPORTED = [
  ...GRANTS,
  `update preauths set status = 'closed', closed_at = now(), close_outcome = 'settled', charged_micro = 50, settlement_status = 'reported'`,
]
const CORRECTION = { ...WITH_TENANT, preauth_id: 'pa_1', matching: 1 }
const ESCALATION = { preauth_id: 'pa_1', 'audit.tenant_id': 'ten_1', 'events.0.tenant_id': 'ten_1' }
const definedHold: Record<string, Json> = {
  scope: 'budget:1',
  period: 'day:1',
  amount_micro: 50,
  on_success: 'spend',
  measure: 'money',
  defined: true,
  enforce: true,
  event_id: 'evt_1',
}
const hold: Record<string, Json> = {
  scope: 'payer:1',
  period: 'total',
  amount_micro: 50,
  on_success: 'release',
  measure: 'money',
  limit_micro: 49,
  on_refusal: { status: 429, reason: 'payer_exposure', detail: { limit: 49 } },
}
const TRADE_ID = { run_id: '00000000-0000-7000-8000-000000000001' }
const TRADE_INPUT = { ...TRADE_ID, tenant_id: 'ten_1', rules_version: '0', needs: [] }
const TRADE = [
  TENANT,
  `insert into rh_runs (id, tenant_id, key_id, instrument_type, symbol, broker, mode, state, notional_micro, terms, instrument, policy, execute_by, created_at, updated_at, holds)
   values ('${TRADE_ID.run_id}', 'ten_1', 'k', 'spend', 's', 'paper', 'paper', 'executing', 50, '{}', '{}', '{}', now(), now(), now(),
     '[{"scope": "budget:1", "period": "total", "amount_micro": "50", "on_success": "spend", "measure": "money"}]')`,
]
const PENDING = [
  ...GRANTS,
  `update approvals set status = 'pending', resolution = null, requested_by = 'key_1', preauth_id = 'pa_1'`,
  `update preauths set status = 'pending_approval'`,
]
const VOTE: Record<string, Json> = {
  approval_id: 'apr_1',
  tenant_id: 'ten_1',
  key_id: 'key_2',
  same_person: ['key_2'],
  may_decide_for_itself: false,
  key_count: 0,
  decision: 'approve',
  'approved.audit.tenant_id': 'ten_1',
  'approved.events.0.tenant_id': 'ten_1',
  'approved.preauth.mandate_id': null,
  'approved.holds': [],
  'approved.grants.rules_version': 0,
  'approved.grants.needs': [],
  'approved.grants.approval_id': 'apr_1',
  'approved.grants.action_hash': 'action_1',
  'approved.grants.override_id': 'ovr_1',
  'approved.grants.agent_id': 'agent_1',
  'approved.grants.merchant': 'mer_1',
  'approved.grants.amount_micro': 50,
  'rejected.audit.tenant_id': 'ten_1',
  'rejected.events.0.tenant_id': 'ten_1',
  'voted.audit.tenant_id': 'ten_1',
  'voted.events.0.tenant_id': 'ten_1',
}
const OWN_VOTE = { ...VOTE, same_person: ['key_1', 'key_2'] }
const TWO_VOTES = `update approvals set approvals_required = 2`
const BUDGET = `insert into limit_definitions (scope, tenant_id, limit_micro, enforced, thresholds_micro, subject) values ('budget:1', 'ten_1', 100, false, '{40}', '{}')`
const entriesOf = (amount: number): Json => [
  { account: `from-${amount}`, amount_micro: amount },
  { account: `to-${amount}`, amount_micro: -amount },
]
const DELIVERY = [
  TENANT,
  SUBSCRIPTION,
  `insert into events (id, tenant_id, type, data, created_at) values ('evt_1', 'ten_1', 'run.completed', '{}', now())`,
  `insert into webhook_deliveries (id, subscription_id, tenant_id, event_id, seq, state, next_attempt_at, claim, created_at)
   values ('dlv_1', 'whk_1', 'ten_1', 'evt_1', 1, 'pending', now(), 'worker', now())`,
]

const APPROVAL = ({ status }: { status: 'pending' | 'approved' | 'rejected' }) => [
  TENANT,
  `insert into decisions (id, tenant_id, kind, run_id, agent_id, merchant, amount_micro, outcome, error, message, overridable, results, action_hash, asked_by, created_at)
   values ('dec_1', 'ten_1', 'run', 'run_1', 'agent_1', 'mer_1', 50, 'review_required', 'e', 'm', true, '[]', 'action_1', 'k', now())`,
  `insert into approvals (id, tenant_id, kind, status, resolution, action, agent_id, run_id, decision_id, requested_by, reason, amount_micro, merchant, risk_summary, action_hash, approvals_required, separate_approver, expires_at, created_at)
   values ('apr_1', 'ten_1', 'run', '${status}', ${status === 'pending' ? 'null' : `'${status}'`}, 'a', 'agent_1', 'run_1', 'dec_1', 'k', 'r', 50, 'mer_1', '{}', 'action_1', 1, false, '2020-01-01', now())`,
  `insert into open_runs (id, kind, tenant_id, agent_id, session_id, loop_id, action, state, outcome, request_hash, request, terms, price_micro, created_at, deadline_at, updated_at)
   values ('run_1', 'run', 'ten_1', 'default', 'ses_1', 'loop_1', 'run', 'approved', 'approved', 'h', '{}', '{}', 50, now(), now(), now())`,
]
const ENDED_APPROVAL = { 'events.0.tenant_id': 'ten_1', 'audit.tenant_id': 'ten_1' }

const PREAUTH: Json = {
  id: 'pa_1',
  tenant_id: 'ten_1',
  run_id: 'run_1',
  agent_id: 'a',
  merchant_id: 'm',
  merchant: {},
  amount_micro: 50,
  asset: 'a',
  network: 'n',
  action_hash: 'h',
  policy_results: [],
  ttl_seconds: 60,
  asked_by: 'k',
  created_at: '2026-01-01T00:00:00Z',
  locks: [],
}

const OPENING: Record<string, Json> = {
  preauth: PREAUTH,
  holds: [],
  'grants.rules_version': 0,
  'grants.needs': [],
  'grants.override_id': null,
  'grants.agent_id': 'agent_1',
  'grants.merchant': 'mer_1',
  'grants.amount_micro': 50,
  'events.0.tenant_id': 'ten_1',
  'audit.tenant_id': 'ten_1',
}

function refusalCases(): Case[] {
  const refusal: Record<string, Json> = {
    'decision.tenant_id': 'ten_1',
    'decision.kind': 'run',
    'decision.outcome': 'blocked',
    rules_version: 0,
    needs: [],
    'events.0.tenant_id': 'ten_1',
    'audit.tenant_id': 'ten_1',
  }
  const review = {
    'approval.action_hash': 'action_1',
    'approval.same_identity.0': 'k',
    'approval.approvals_required': 1,
    'approval.payment_method': 'wallet',
  }
  const need = { scope: 'budget:1', period: 'day:1', amount_micro: 50, room: false }
  return [
    { prepare: [TENANT], input: { ...refusal, 'run.kind': 'run', preauth: null, approval: null } },
    { prepare: [TENANT], input: { ...refusal, 'run.kind': 'run', preauth: null, ...review } },
    { prepare: [TENANT], input: { ...refusal, run: null, preauth: PREAUTH, ...review } },
    {
      prepare: APPROVAL({ status: 'pending' }).map((text) => text.replace('2020-01-01', '2100-01-01')),
      input: { ...refusal, 'run.kind': 'run', preauth: null, ...review },
    },
    {
      prepare: [
        TENANT,
        BUDGET,
        `insert into limits (scope, period, limit_micro, spent_micro, reserved_micro) values ('budget:1', 'day:1', 100, 0, 0)`,
      ],
      input: { ...refusal, needs: [need], run: null, preauth: null, approval: null },
      refusal: 'room_changed',
    },
    { prepare: [TENANT], input: { ...refusal, rules_version: 1 }, refusal: 'rules_changed' },
  ]
}

/** The rows a step needs, and one case for each branch that reads other keys. */
const cases: Record<string, Case[]> = {
  emit_event: [{ prepare: [TENANT], input: { tenant_id: 'ten_1' } }],
  audit_event: [{ prepare: [TENANT], input: { tenant_id: 'ten_1' } }],
  issue_receipt: [{ prepare: [TENANT], input: { tenant_id: 'ten_1' } }],
  write_memory: [{ prepare: [TENANT], input: { tenant_id: 'ten_1' } }],
  raise_alert: [{ prepare: [TENANT], input: { tenant_id: 'ten_1' } }],
  admit_trade: [
    {
      prepare: [...TRADE, BUDGET],
      input: {
        ...TRADE_INPUT,
        holds: [definedHold, { ...hold, limit_micro: 50 }],
        needs: [{ scope: 'budget:1', period: 'day:2', amount_micro: 150, room: false }],
      },
    },
    { prepare: TRADE, input: { ...TRADE_INPUT, holds: [hold] }, refusal: 'payer_exposure' },
    { prepare: TRADE, input: { ...TRADE_INPUT, rules_version: '1' }, refusal: 'rules_changed' },
  ],
  settle_trade: [
    { prepare: TRADE, input: { ...TRADE_ID, spent_micro: '50' } },
    { prepare: TRADE, input: { ...TRADE_ID, spent_micro: null } },
  ],
  record_refusal: refusalCases(),
  open_preauth: [
    {
      prepare: [...GRANTS, BUDGET, `delete from preauths`],
      input: {
        ...OPENING,
        holds: [definedHold, { ...hold, limit_micro: 50 }],
        'grants.needs': [{ scope: 'budget:1', period: 'day:2', amount_micro: 150, room: false }],
        'grants.override_id': 'ovr_1',
      },
    },
    { prepare: [TENANT], input: { ...OPENING, holds: [hold] }, refusal: 'payer_exposure' },
    { prepare: [TENANT], input: { ...OPENING, 'grants.rules_version': 1 }, refusal: 'rules_changed' },
  ],
  expire_approval: [
    { prepare: APPROVAL({ status: 'pending' }), input: { approval_id: 'apr_1', ...ENDED_APPROVAL } },
    { prepare: APPROVAL({ status: 'approved' }), input: { approval_id: 'apr_1', ...ENDED_APPROVAL } },
    { prepare: APPROVAL({ status: 'rejected' }), input: { approval_id: 'apr_1' } },
  ],
  refuse_approved_run: [
    { prepare: APPROVAL({ status: 'approved' }), input: { approval_id: 'apr_1', ...ENDED_APPROVAL } },
    { prepare: APPROVAL({ status: 'rejected' }), input: { approval_id: 'apr_1' } },
  ],
  log_attestation: [{ prepare: [], input: {} }],
  define_limit: [{ prepare: [TENANT], input: { tenant_id: 'ten_1' } }],
  finish_delivery: [
    { prepare: DELIVERY, input: { id: 'dlv_1', claim: 'worker', ok: true } },
    { prepare: DELIVERY, input: { id: 'dlv_1', claim: 'worker', ok: false } },
  ],
  close_preauth: [
    { prepare: CLOSABLE, input: CLOSE },
    { prepare: CLOSABLE, input: { ...CLOSE, matching: 0 }, refusal: 'transaction_used' },
    { prepare: GRANTS, input: { ...CLOSE, charged_micro: '51' }, refusal: 'above_reserved' },
    { prepare: [], input: CLOSE, refusal: 'no_preauth' },
    { prepare: [...CLOSABLE, `update preauths set holds = '[{}]'`], input: CLOSE, refusal: 'holds_changed' },
  ],
  correct_close: [
    { prepare: REPORTED, input: CORRECTION },
    { prepare: REPORTED, input: { ...CORRECTION, matching: 0 }, refusal: 'transaction_used' },
    { prepare: CLOSABLE, input: { preauth_id: 'pa_1' } },
  ],
  escalate_preauth: [
    { prepare: [...GRANTS, `update preauths set close_by = '2000-01-01'`], input: ESCALATION },
    { prepare: [...GRANTS, `update preauths set status = 'rejected'`], input: ESCALATION },
  ],
  resolve_approval: [
    { prepare: PENDING, input: VOTE },
    { prepare: PENDING, input: { ...VOTE, decision: 'reject' } },
    { prepare: [...PENDING, TWO_VOTES], input: VOTE },
    { prepare: PENDING, input: { ...OWN_VOTE, may_decide_for_itself: true } },
    { prepare: [...PENDING, TWO_VOTES], input: { ...OWN_VOTE, may_decide_for_itself: true } },
    { prepare: PENDING, input: OWN_VOTE, refusal: 'own_request' },
    {
      prepare: [...PENDING, `update approvals set separate_approver = true`],
      input: { ...OWN_VOTE, may_decide_for_itself: true },
      refusal: 'separate_approver',
    },
    {
      prepare: [
        ...PENDING,
        `insert into approval_votes (approval_id, key_id, decision, created_at) values ('apr_1', 'key_3', 'approve', now())`,
      ],
      input: { ...VOTE, same_person: ['key_2', 'key_3'] },
      refusal: 'voted',
    },
    // A key was made after the identity was judged.
    { prepare: PENDING, input: { ...VOTE, key_count: 1 }, refusal: 'keys_changed' },
    { prepare: [...PENDING, BUDGET], input: { ...VOTE, 'approved.holds': [definedHold] } },
    { prepare: PENDING, input: { ...VOTE, 'approved.holds': [hold] }, refusal: 'payer_exposure' },
    { prepare: PENDING, input: { ...VOTE, 'approved.grants.rules_version': 1 }, refusal: 'rules_changed' },
    {
      prepare: [...PENDING, BUDGET],
      input: {
        ...VOTE,
        'approved.grants.needs': [{ scope: 'budget:1', period: 'total', amount_micro: 100, room: false }],
      },
      refusal: 'room_changed',
    },
    { prepare: GRANTS, input: VOTE, refusal: 'resolved' },
    { prepare: [], input: VOTE, refusal: 'no_approval' },
  ],
  note_unknown: [
    { prepare: OPEN_RUN({ state: 'settling' }), input: { run_id: 'run_1', 'event.tenant_id': 'ten_1' } },
    { prepare: ENDED_RUN, input: { run_id: 'run_1' } },
  ],
  ...runCases(),
  note_arrival: [
    {
      prepare: SETTLEMENT('failed'),
      input: {
        settlement_id: 'stl_1',
        'ledger.tenant_id': 'ten_1',
        'ledger.entries': entriesOf(51),
        'payout.kind': 'refund',
        'payout.tenant_id': 'ten_1',
        'payout.wallet_id': null,
        'payout.settlement_id': 'stl_1',
        'payout.method': 'chain',
        'payout.next_attempt_at': '2026-01-01T00:00:00Z',
        'payout.ledger.entries': entriesOf(52),
        'payout.audit.tenant_id': 'ten_1',
        'receipt.tenant_id': 'ten_1',
        'events.0.tenant_id': 'ten_1',
        'audit.tenant_id': 'ten_1',
      },
    },
    { prepare: SETTLEMENT('settled'), input: { settlement_id: 'stl_1' } },
  ],
  finish_refund: [
    {
      prepare: [...SETTLEMENT('settled'), PAYOUT],
      input: {
        settlement_id: 'stl_1',
        'payout.id': 'pay_1',
        'payout.state': 'paid',
        'payout.audit.tenant_id': 'ten_1',
        'receipt.tenant_id': 'ten_1',
        'events.0.tenant_id': 'ten_1',
        'audit.tenant_id': 'ten_1',
      },
    },
    { prepare: [], input: {} },
  ],
  ledger_direct: [{ prepare: [TENANT], input: { tenant_id: 'ten_1', entries: entriesOf(51) } }],
  hold_escrow: [
    {
      prepare: [TENANT, WALLET],
      input: {
        tenant_id: 'ten_1',
        wallet_id: 'wal_1',
        to_wallet_id: null,
        amount_micro: 50,
        'ledger.tenant_id': 'ten_1',
        'ledger.entries': entriesOf(51),
        'event.tenant_id': 'ten_1',
        'audit.tenant_id': 'ten_1',
      },
    },
  ],
  end_escrow: [
    { prepare: [TENANT, WALLET, ESCROW], input: escrowEnd('', 'released') },
    { prepare: [TENANT, WALLET, ESCROW], input: escrowEnd('', 'refunded') },
    {
      prepare: [TENANT, WALLET, ESCROW],
      input: { ...escrowEnd('', 'released'), from: ['disputed'] },
      refusal: 'escrow_ended',
    },
  ],
  request_payout: [
    {
      prepare: [TENANT, WALLET],
      input: {
        kind: 'withdrawal',
        tenant_id: 'ten_1',
        wallet_id: 'wal_1',
        settlement_id: null,
        amount_micro: 50,
        method: 'manual',
        next_attempt_at: '2026-01-01T00:00:00Z',
        'ledger.entries': entriesOf(51),
        'audit.tenant_id': 'ten_1',
      },
    },
  ],
  end_payout: [
    {
      prepare: [...SETTLEMENT('settled'), PAYOUT],
      input: { id: 'pay_1', state: 'paid', 'audit.tenant_id': 'ten_1' },
    },
    {
      prepare: [...SETTLEMENT('settled'), PAYOUT],
      input: { id: 'pay_1', state: 'cancelled', transaction: null, audit: null },
    },
    { prepare: [], input: {} },
  ],
}

function escrowEnd(path: string, state: string): Record<string, Json> {
  return {
    [`${path}id`]: 'esc_1',
    [`${path}from`]: ['held'],
    [`${path}state`]: state,
    [`${path}ledger.0.tenant_id`]: 'ten_1',
    [`${path}ledger.0.entries`]: entriesOf(53),
    [`${path}events.0.tenant_id`]: 'ten_1',
    [`${path}audits.0.tenant_id`]: 'ten_1',
  }
}

function runCases(): Record<string, Case[]> {
  const admission: Record<string, Json> = {
    id: 'run_1',
    kind: 'run',
    tenant_id: 'ten_1',
    price_micro: 50,
    accounts: ['from', 'to'],
    amounts: [50, -50],
    wallet_id: 'wal_1',
    payment: null,
    nonce: null,
    keys: [],
    escrow: null,
    holds: [],
    grants: null,
    'audit.tenant_id': 'ten_1',
    result: null,
    next_attempt_at: null,
  }
  const without = (keys: string[]) =>
    Object.fromEntries(Object.entries(admission).filter(([name]) => !keys.includes(name)))
  const nonce = { payer: 'p', nonce: 'nonce_1', network: 'n', asset: 'a' }
  const key = { scope: 's', route: 'r', key: 'k', body_hash: 'b', expires_at: '2100-01-01T00:00:00Z' }
  const end: Record<string, Json> = {
    run_id: 'run_1',
    escrow: null,
    'answer.packed': 'AAAA',
    'receipt.tenant_id': 'ten_1',
    'events.0.tenant_id': 'ten_1',
    'audit.tenant_id': 'ten_1',
  }
  const completion: Record<string, Json> = { ...end, admission: 'adm_1', memory: null }
  const abandonment: Record<string, Json> = { ...end, admission: 'adm_1', from_state: 'executing' }
  const { escrow: _, ...endWithEscrow } = end
  const atOnce: Record<string, Json> = {
    id: 'run_1',
    kind: 'run',
    tenant_id: 'ten_1',
    wallet_id: 'wal_1',
    price_micro: 50,
    accounts: ['from', 'to'],
    amounts: [50, -50],
    keys: [],
    holds: [],
    'grants.rules_version': 0,
    'grants.needs': [],
    'answer.packed': 'AAAA',
    'receipt.tenant_id': 'ten_1',
    'events.0.tenant_id': 'ten_1',
    'audits.0.tenant_id': 'ten_1',
  }
  return {
    admit_runs: [
      { prepare: [TENANT, WALLET], input: admission },
      {
        prepare: [TENANT],
        input: {
          ...without(['payment', 'nonce', 'keys', 'grants', 'next_attempt_at']),
          wallet_id: null,
          grants: { rules_version: 0 },
        },
      },
      {
        prepare: [...GRANTS, BUDGET],
        input: {
          ...without(['grants']),
          wallet_id: null,
          'grants.rules_version': 0,
          'grants.action_hash': 'action_1',
          'grants.agent_id': 'agent_1',
          'grants.amount_micro': 50,
          'grants.merchant': 'mer_1',
          'grants.needs': [{ scope: 'budget:1', period: 'total', amount_micro: 101, room: false }],
          'grants.approval_id': 'apr_1',
          'grants.override_id': 'ovr_1',
          'grants.preauth_id': 'pa_1',
        },
      },
      { prepare: [TENANT], input: { ...admission, grants: { rules_version: 1 } }, refusal: 'rules_changed' },
      {
        prepare: [TENANT, BUDGET],
        input: {
          ...admission,
          grants: { rules_version: 0, needs: [{ scope: 'budget:1', period: 'total', amount_micro: 100, room: false }] },
        },
        refusal: 'room_changed',
      },
      {
        prepare: [TENANT, WALLET],
        input: {
          ...without(['escrow']),
          'escrow.tenant_id': 'ten_1',
          'escrow.wallet_id': 'wal_1',
          'escrow.to_wallet_id': null,
          'escrow.amount_micro': 50,
          'escrow.ledger.tenant_id': 'ten_1',
          'escrow.ledger.entries': entriesOf(54),
          'escrow.event.tenant_id': 'ten_1',
          'escrow.audit.tenant_id': 'ten_1',
        },
      },
      {
        prepare: [TENANT, WALLET],
        input: { ...without(['payment', 'nonce', 'result', 'next_attempt_at']), kind: 'topup' },
      },
      {
        prepare: [TENANT, WALLET, BUDGET],
        input: { ...admission, holds: [definedHold, { ...hold, limit_micro: 50 }] },
      },
      { prepare: [TENANT, WALLET], input: { ...admission, holds: [hold] }, refusal: 'payer_exposure' },
      {
        prepare: [
          TENANT,
          WALLET,
          `insert into run_keys (scope, route, key, body_hash, run_id, expires_at) values ('s', 'r', 'k', 'b', 'run_0', '2100-01-01')`,
        ],
        input: { ...admission, keys: [key] },
        refusal: 'key_used',
      },
      {
        prepare: [
          TENANT,
          `insert into nonces (payer, nonce, network, asset, run_id) values ('p', 'nonce_1', 'n', 'a', 'run_0')`,
        ],
        input: { ...admission, wallet_id: null, nonce },
        refusal: 'nonce_used',
      },
      { prepare: OPEN_RUN({ wallet: true }), input: admission, refusal: 'open_runs_pkey' },
      { prepare: OPEN_RUN({ wallet: true }), input: { ...admission, admission: 'adm_1' }, repeated: true },
      { prepare: [...ENDED_RUN, WALLET], input: admission, repeated: true, refusal: 'run_exists' },
    ],
    keep_runs: [
      { prepare: OPEN_RUN({}), input: { run_id: 'run_1', admission: 'adm_1' } },
      { prepare: [], input: {}, refusal: 'run_taken_over' },
    ],
    complete_runs: [
      { prepare: [...OPEN_RUN({ wallet: true }), SUBSCRIPTION], input: completion },
      { prepare: OPEN_RUN({ state: 'settling' }), input: { ...completion, admission: null } },
      {
        prepare: [...OPEN_RUN({ wallet: true, escrow: true }), ESCROW],
        input: { ...endWithEscrow, admission: 'adm_1', memory: null, ...escrowEnd('escrow.', 'released') },
      },
      {
        prepare: OPEN_RUN({ wallet: true }),
        input: { ...end, admission: 'adm_1', 'memory.tenant_id': 'ten_1' },
      },
      { prepare: ENDED_RUN, input: completion },
      { prepare: [], input: completion, refusal: 'run_not_open' },
    ],
    complete_at_once: [
      { prepare: [TENANT, WALLET, SUBSCRIPTION], input: { ...atOnce, keys: [key] } },
      {
        prepare: [TENANT, WALLET, BUDGET],
        input: { ...atOnce, holds: [definedHold, { ...hold, limit_micro: 50 }] },
      },
      { prepare: [TENANT, WALLET], input: { ...atOnce, holds: [hold] }, refusal: 'payer_exposure' },
      { prepare: [TENANT, WALLET], input: { ...atOnce, 'grants.rules_version': 1 }, refusal: 'rules_changed' },
      { prepare: [TENANT, WALLET], input: { ...atOnce, price_micro: 901 }, refusal: 'wallet_balance' },
      // The budget only warns, so it is the assessment that is out of date.
      {
        prepare: [TENANT, WALLET, BUDGET],
        input: { ...atOnce, holds: [{ ...definedHold, amount_micro: 101, enforce: false }] },
        refusal: 'assessment_changed',
      },
      // Its budget is gone, so nothing would be counted.
      { prepare: [TENANT, WALLET], input: { ...atOnce, holds: [definedHold] }, refusal: 'assessment_changed' },
      {
        prepare: [TENANT, WALLET, BUDGET],
        input: { ...atOnce, 'grants.needs': [{ scope: 'budget:1', period: 'total', amount_micro: 100, room: false }] },
        refusal: 'room_changed',
      },
      { prepare: [...ENDED_RUN, WALLET], input: atOnce, repeated: true, refusal: 'run_exists' },
      { prepare: OPEN_RUN({ wallet: true }), input: atOnce, refusal: 'run_exists' },
      {
        prepare: [...ENDED_RUN, WALLET, `update ended_runs set admission = 'adm_1'`],
        input: { ...atOnce, admission: 'adm_1' },
        repeated: true,
      },
    ],
    abandon_runs: [
      { prepare: [...OPEN_RUN({ wallet: true }), SUBSCRIPTION], input: abandonment },
      { prepare: OPEN_RUN({ state: 'settling' }), input: { ...abandonment, from_state: null, admission: null } },
      {
        prepare: [...OPEN_RUN({ wallet: true, escrow: true }), ESCROW],
        input: { ...endWithEscrow, ...escrowEnd('escrow.', 'refunded'), from_state: null, admission: 'adm_1' },
      },
      { prepare: ENDED_RUN, input: abandonment },
      { prepare: [], input: abandonment, refusal: 'run_not_open' },
      { prepare: OPEN_RUN({ state: 'settling' }), input: abandonment, refusal: 'run_not_open' },
      { prepare: OPEN_RUN({}), input: { ...abandonment, admission: 'adm_2' }, refusal: 'run_not_open' },
    ],
  }
}

// Reported as notices, because an exception undoes rows but not notices.
const REPORTING_OPERATORS = `
  create schema reporting;
  create function reporting.report(value jsonb, key text) returns void language plpgsql as $$
  begin
    raise notice 'step key %', jsonb_build_object('value', value, 'key', key);
  end $$;
  create function reporting.get(value jsonb, key text) returns jsonb language plpgsql as $$
  begin
    perform reporting.report(value, key);
    return jsonb_object_field(value, key);
  end $$;
  create function reporting.get_text(value jsonb, key text) returns text language plpgsql as $$
  begin
    perform reporting.report(value, key);
    return jsonb_object_field_text(value, key);
  end $$;
  create function reporting.get_path(value jsonb, path text[]) returns jsonb language plpgsql as $$
  begin
    for depth in 1 .. cardinality(path) loop
      perform reporting.report(value, path[depth]);
      value := jsonb_object_field(value, path[depth]);
    end loop;
    return value;
  end $$;
  create function reporting.get_path_text(value jsonb, path text[]) returns text language plpgsql as $$
  begin
    return reporting.get_path(value, path) operator(pg_catalog.#>>) '{}';
  end $$;
  create function reporting.has(value jsonb, key text) returns boolean language plpgsql as $$
  begin
    perform reporting.report(value, key);
    return jsonb_exists(value, key);
  end $$;
  create operator reporting.-> (leftarg = jsonb, rightarg = text, function = reporting.get);
  create operator reporting.->> (leftarg = jsonb, rightarg = text, function = reporting.get_text);
  create operator reporting.#> (leftarg = jsonb, rightarg = text[], function = reporting.get_path);
  create operator reporting.#>> (leftarg = jsonb, rightarg = text[], function = reporting.get_path_text);
  create operator reporting.? (leftarg = jsonb, rightarg = text, function = reporting.has);`

let scratch: Awaited<ReturnType<typeof createTestDatabase>>
let client: pg.Client
beforeAll(async () => {
  scratch = await createTestDatabase()
  const database = scratch.open(1)
  client = await database.connect()
  await client.query(REPORTING_OPERATORS)
  await client.query('set client_min_messages = notice; set search_path = reporting, pg_catalog, public')
  await database.close()
})
afterAll(async () => {
  await client.end()
  await scratch.drop()
})

test('every step has a schema and cases, except the listed ones', () => {
  const isUntyped = ({ input }: StepDefinition) => JSON.stringify(input) === JSON.stringify(Type.Unknown())
  const names = (steps: StepDefinition[]) => steps.map(({ name }) => name).sort()
  expect(names(definitions.filter(isUntyped))).toEqual(untypedStepNames)
  expect(names(definitions.filter((step) => !isUntyped(step)))).toEqual(Object.keys(cases).sort())
})

const helperReads = new Set<string>()
const detectedReads = new Set<string>()

describe.each(definitions.filter(({ name }) => name in cases))('$name', (definition) => {
  test('reads exactly the keys of its input schema, and its answer matches the answer schema', async () => {
    const { missing, unread, answers, notJournaled } = await callWithReport(definition)
    for (const [index, { refusal }] of cases[definition.name]!.entries()) {
      const answer = answers[index]
      if (refusal) expect(answer).toMatchObject({ message: expect.stringContaining(refusal) })
      else if (answer instanceof Error) throw answer
      else if ((definition.answer as Schema).type === 'void') expect(answer || null).toBeNull()
      else expect(Check(definition.answer, answer), JSON.stringify(answer)).toBe(true)
    }
    expect({ missing, unread, notJournaled }).toEqual({ missing: [], unread: [], notJournaled: [] })
  })

  test('a key renamed in SQL is detected, in the step and in the functions that it calls', async () => {
    const own = await readSource(definition.name)
    const helpers = await findHelpers(own)
    const keys = [...shapeOf(definition.input as Schema).keys]
    const required = Object.keys((definition.input as Schema).properties!).filter((key) => own.includes(`>'${key}'`))
    expect(required.length + helpers.length).toBeGreaterThan(0)
    for (const key of required)
      await withSource(own, own.replaceAll(`>'${key}'`, `>'${key}_renamed'`), async () => {
        const { missing, unread } = await callWithReport(definition)
        expect(missing, key).toContain(`${key}_renamed`)
        if (
          ![own, ...helpers].some(
            (source) => source.includes(`'{${key},`) || (source !== own && source.includes(`'${key}'`)),
          )
        )
          expect(unread, key).toContain(key)
      })
    for (const helper of helpers)
      for (const [read, variable, operator, path] of readsOfInput(helper)) {
        const [, key] = /(\w+)\}?$/.exec(path!)!
        // A function may be called by several steps and read a key that only one of them has.
        if (!keys.some((name) => name === key || name.endsWith(`.${key}`))) continue
        const renamed = `${variable}${operator}'${path!.replace(/(\w+)(\}?)$/, '$1_renamed$2')}'`
        const place = `${read} in ${/FUNCTION public\.(\w+)/.exec(helper)![1]}`
        helperReads.add(place)
        await withSource(helper, helper.replaceAll(read, renamed), async () => {
          const { missing } = await callWithReport(definition, `${key}_renamed`)
          if (missing.some((name) => name.split('.').at(-1) === `${key}_renamed`)) detectedReads.add(place)
        })
      }
  })
})

test('a key renamed in a function is detected by a step that calls it', () => {
  // A function that several steps call may read a key for some of them only.
  expect([...helperReads].filter((place) => !detectedReads.has(place))).toEqual([])
  expect(helperReads.size).toBeGreaterThan(60)
})

async function withSource(original: string, changed: string, work: () => Promise<void>) {
  await client.query(changed)
  try {
    await work()
  } finally {
    await client.query(original)
  }
}

async function readSource(name: string): Promise<string> {
  const { rows } = await client.query<{ source: string }>(
    `select pg_get_functiondef(oid) as source from pg_proc where proname = $1 and pronamespace = 'public'::regnamespace`,
    [name],
  )
  return rows[0]!.source
}

/** The functions that a step calls, directly or not, except other steps, which have their own tests. */
async function findHelpers(source: string): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select proname as name from pg_proc where pronamespace = 'public'::regnamespace and prokind = 'f'`,
  )
  const names = rows.map(({ name }) => name).filter((name) => !definitions.some((step) => step.name === name))
  const helpers = new Map<string, string>()
  const pending = [source]
  for (let text = pending.pop(); text !== undefined; text = pending.pop())
    for (const name of names)
      if (!helpers.has(name) && text.includes(`${name}(`)) {
        const helper = await readSource(name)
        helpers.set(name, helper)
        pending.push(helper)
      }
  return [...helpers.values()].filter((helper) => readsOfInput(helper).length > 0)
}

/** Each place where a function reads a key of its input. Values that are read back from a row have other names. */
function readsOfInput(source: string) {
  const reads = [
    ...source.matchAll(
      /\b(item|items\[1\]|input|grants|demand\.value|entry\.value|first_key|first_nonce)(->>?|#>>?)'(\w+|\{[\w,]+\})'/g,
    ),
  ]
  return reads.filter(([read], index) => reads.findIndex(([other]) => other === read) === index)
}

/** `until`: no further case is called when this key was reported as missing. */
async function callWithReport(definition: StepDefinition, until?: string) {
  const shape = shapeOf(definition.input as Schema)
  const read = new Set<string>()
  const missing = new Set<string>()
  const answers: unknown[] = []
  const notJournaled = new Set(journaled[definition.name])
  for (const { prepare, input: replacements, repeated = false } of cases[definition.name]!) {
    const input = sample(definition.input as Schema)
    for (const [path, value] of Object.entries(replacements)) replaceAt(input, path.split('.'), value)
    const paths = pathsOf(input)
    const report = ({ message }: { message?: string }) => {
      if (!message?.startsWith('step key ')) return
      const { value, key } = JSON.parse(message.slice('step key '.length)) as { value: Json; key: string }
      const path = paths.get(stable(value))
      if (path === undefined || shape.opaque.has(path)) return
      const full = path === '' ? key : `${path}.${key}`
      if (shape.keys.has(full)) read.add(full)
      else missing.add(full)
    }
    if (until && [...missing].some((name) => name.split('.').at(-1) === until)) break
    await client.query('begin')
    for (const statement of prepare) await client.query(statement)
    client.on('notice', report)
    try {
      const call = definition.isSet
        ? `(${definition.name}(array[$1::jsonb], ${repeated}))[1]`
        : `${definition.name}($1::jsonb)`
      const { rows } = await client.query(`select ${call} as answer`, [JSON.stringify(input)])
      answers.push(rows[0].answer)
      const { rows: journal } = await client.query('select events, audits from journal')
      const stored = new Set(journal.flatMap((row) => [...(row.events ?? []), ...(row.audits ?? [])]).map(stable))
      for (const name of notJournaled) {
        const values = [(input as Record<string, Json>)[name]!].flat()
        if (values.every((value) => stored.has(stable(value)))) notJournaled.delete(name)
      }
    } catch (error) {
      // A renamed key may break a constraint; the keys have been reported by then.
      answers.push(error)
    } finally {
      await client.query('rollback')
      client.off('notice', report)
    }
  }
  const isJournaled = (key: string) => journaled[definition.name]?.some((name) => key.startsWith(`${name}.`))
  const unread = [...shape.keys].filter((key) => !read.has(key) && !isJournaled(key))
  return { missing: [...missing], unread, answers, notJournaled: [...notJournaled] }
}

/** The paths of all keys of a schema. A value that is stored whole as JSON is opaque: its keys are not listed. */
function shapeOf(schema: Schema, path = '', keys = new Set<string>(), opaque = new Set<string>()) {
  const variant = firstVariant(schema)
  const properties = Object.entries(variant.properties ?? {})
  if (variant.type === 'object' && properties.length === 0) opaque.add(path)
  for (const [name, property] of properties) {
    const full = path === '' ? name : `${path}.${name}`
    keys.add(full)
    shapeOf(property, full, keys, opaque)
  }
  // The members of a list have the path of the list.
  if (variant.items) shapeOf(variant.items, path, keys, opaque)
  return { keys, opaque }
}

const firstVariant = (schema: Schema): Schema =>
  schema.anyOf ? firstVariant(schema.anyOf.find(({ type }) => type !== 'null')!) : schema

let unique = 0
/** A value of the schema in which every leaf is different, so that an object can be identified by its content. */
function sample(schema: Schema): Json {
  const { type, const: literal, format, pattern, properties, items } = firstVariant(schema)
  unique += 1
  if (literal !== undefined) return literal
  if (type === 'string') {
    if (format === 'date-time') return new Date(Date.UTC(2026, 0, 1) + unique * 1_000).toISOString()
    return pattern ? `${unique}` : `text-${unique}`
  }
  if (type === 'integer' || type === 'number') return unique
  if (type === 'boolean') return true
  if (type === 'array') return [sample(items!)]
  const members = Object.entries(properties ?? {})
  if (type === 'object' && members.length === 0) return { [`stored_${unique}`]: unique }
  if (type === 'object') return Object.fromEntries(members.map(([name, member]) => [name, sample(member)]))
  throw new Error(`No sample for ${JSON.stringify(schema)}`)
}

function replaceAt(value: Json, [name, ...rest]: string[], replacement: Json) {
  const object = value as Record<string, Json>
  if (rest.length === 0) object[name!] = replacement
  else replaceAt(object[name!]!, rest, replacement)
}

function pathsOf(value: Json, path = '', paths = new Map<string, string>()): Map<string, string> {
  if (value === null || typeof value !== 'object') return paths
  if (Array.isArray(value)) {
    for (const member of value) pathsOf(member, path, paths)
    return paths
  }
  paths.set(stable(value), path)
  for (const [name, member] of Object.entries(value)) pathsOf(member, path === '' ? name : `${path}.${name}`, paths)
  return paths
}

/** JSON with sorted keys: PostgreSQL stores an object's keys in an order of its own. */
function stable(value: Json): string {
  return JSON.stringify(value, (_, item: Json) =>
    item !== null && typeof item === 'object' && !Array.isArray(item)
      ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)))
      : item,
  )
}
