/**
 * Admissions of runs under one hot budget by the service's own step, which commits those that wait together: the budget
 * is held, the open run and its journal row are written. As with row-lock.ts there is no HTTP and no work.
 */

import type { AdmissionItem } from '../../src/modules/runs/runs.steps.ts'
import { createRunSteps } from '../../src/modules/runs/runs.store.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { openDatabase } from '../../src/platform/db.ts'
import { createIds } from '../../src/platform/ids.ts'
import { createLog } from '../../src/platform/log.ts'
import { createMetrics } from '../../src/platform/metrics.ts'
import { answerParent } from './child.ts'
import type { RowLockResult } from './row-lock.ts'

type Start = { socketFolder: string; inFlight: number }
type Round = { seconds: number }

const SCOPE = 'budget:ten_bench:bud_bench'
const PRICE_MICRO = 10_000n
const POOL = 10

const ids = createIds(systemClock)
let admit: ReturnType<typeof createRunSteps>['admit']
let inFlight = 0

answerParent(async (message: Start | Round) => ('inFlight' in message ? start(message) : runRound(message)))

async function start(message: Start) {
  inFlight = message.inFlight
  const connection = { host: message.socketFolder, port: 5432, user: 'countersign', database: 'countersign' }
  const { pool } = openDatabase(connection, { max: POOL, log: createLog('silent') })
  await pool.query(
    `insert into tenants (id, org_name, email, created_at, updated_at) values ('ten_bench', 'Bench', 'bench@example.com', now(), now())`,
  )
  await pool.query('select define_limit($1)', [
    JSON.stringify({
      scope: SCOPE,
      tenant_id: 'ten_bench',
      limit_micro: '1000000000000',
      soft_limit_micro: null,
      enforced: true,
      thresholds_micro: [],
      subject: {},
    }),
  ])
  admit = createRunSteps(pool, createMetrics()).admit
}

async function runRound({ seconds }: Round): Promise<RowLockResult> {
  const startedAt = performance.now()
  const deadline = startedAt + seconds * 1000
  let count = 0
  await Promise.all(
    Array.from({ length: inFlight }, async () => {
      while (performance.now() < deadline) {
        await admit(createAdmission(), [`limit:${SCOPE}`], { owner: 'ten_bench' })
        count += 1
      }
    }),
  )
  return { perSecond: count / ((performance.now() - startedAt) / 1000) }
}

/** As `POST /api/run` makes it for a tenant with one budget. */
function createAdmission(): AdmissionItem {
  const at = new Date().toISOString()
  const id = ids.next('run')
  const requestHash = `sha256:${'0'.repeat(64)}`
  return {
    id,
    kind: 'run',
    tenant_id: 'ten_bench',
    payer: 'wal_bench',
    agent_id: 'comedian-v1',
    spender: null,
    team: null,
    key_id: null,
    tags: null,
    session_id: ids.next('ses'),
    loop_id: ids.next('loop'),
    request_hash: requestHash,
    request: { task: 'Say 1.', agent_id: 'comedian-v1' },
    terms: {
      ruling: {
        decision: 'approved',
        budget_outcome: 'pass',
        policy_applied: [],
        policy_hash: null,
        mandate_id: null,
        preauth_id: null,
        override_id: null,
        approval_id: null,
        asked_by: 'key_bench',
        decided_at: at,
        merchant: 'countersign',
      },
    },
    price_micro: PRICE_MICRO,
    instance: 'bench',
    admission: ids.next('adm'),
    created_at: at,
    deadline_at: at,
    wallet_id: null,
    accounts: [],
    amounts: [],
    payment: null,
    nonce: null,
    keys: [],
    escrow: null,
    holds: [
      {
        scope: SCOPE,
        period: 'total',
        amount_micro: PRICE_MICRO,
        on_success: 'spend',
        measure: 'money',
        defined: true,
      },
    ],
    grants: null,
    audit: {
      id: ids.next('aud'),
      type: 'run.admitted',
      occurred_at: at,
      actor: 'key_bench',
      subject: id,
      decision: 'approved',
      policy_ids: [],
      input_hash: requestHash,
      data: { agent_id: 'comedian-v1', amount: `${PRICE_MICRO}` },
    },
    result: null,
    next_attempt_at: null,
  }
}
