import { sql } from 'kysely'
import type { Db } from '../../platform/db.ts'
import type { Log } from '../../platform/log.ts'
import { outsideTenantReads } from '../../platform/tenant-reads.ts'

/** What a page of the dashboard shows, as far as a change of it can be noticed. */
export const towerTopics = [
  'tower',
  'runs',
  'approvals',
  'trades',
  'preauths',
  'decisions',
  'alerts',
  'settlements',
  'webhooks',
  'deliveries',
  'budgets',
  'policies',
  'mandates',
  'wallets',
  'escrow',
  'ledger',
  'spend',
  'analytics',
  'keys',
  'audit',
  'channels',
  'frozen',
  'plan',
  'settings',
] as const
export type TowerTopic = (typeof towerTopics)[number]

export type TowerListener = {
  /** From now on no change is missed: what is read afterwards is kept up to date by `onChange`. */
  onReady(): void
  onChange(topics: TowerTopic[]): void
}

export type TowerWatch = ReturnType<typeof createTowerWatch>

const POLL_MS = 400
/** A slow database is asked less often: at most a fifth of the time. */
const REST_FACTOR = 4

/** Money moves with each of these. */
const MONEY: TowerTopic[] = ['settlements', 'budgets', 'mandates', 'wallets', 'escrow', 'ledger', 'spend', 'analytics']

/** Which topics a changed mark stands for. */
const topicsOfMark: Record<MarkName, TowerTopic[]> = {
  runs: ['runs', ...MONEY],
  approvals: ['approvals', 'runs', 'preauths'],
  trades: ['trades', 'approvals', ...MONEY],
  preauths: ['preauths', 'runs', ...MONEY],
  decisions: ['decisions'],
  alerts: ['alerts'],
  webhooks: ['webhooks'],
  deliveries: ['deliveries'],
  audit: ['audit'],
  // Everything that people change is in the audit trail.
  changes: [
    'policies',
    'budgets',
    'mandates',
    'keys',
    'channels',
    'frozen',
    'plan',
    'settings',
    'wallets',
    'escrow',
    'webhooks',
    'approvals',
    'decisions',
  ],
}

type MarkName =
  | 'runs'
  | 'approvals'
  | 'trades'
  | 'preauths'
  | 'decisions'
  | 'alerts'
  | 'webhooks'
  | 'deliveries'
  | 'audit'
  | 'changes'
type Marks = Record<MarkName, string | null>

/**
 * Tells listeners which topics of their tenant have changed, whichever process changed them. One statement reads a mark for
 * each topic of all watched tenants, and none is sent while nobody watches. A mark is compared, never shown.
 */
export function createTowerWatch({ db, log }: { db: Db; log: Log }) {
  const listeners = new Map<string, Set<TowerListener>>()
  const readyListeners = new WeakSet<TowerListener>()
  const marks = new Map<string, Marks>()
  let timer: NodeJS.Timeout | undefined
  let isPolling = false

  const poll = async () => {
    isPolling = true
    const startedAt = performance.now()
    const watched = [...listeners].map(([tenantId, ofTenant]) => [tenantId, [...ofTenant]] as const)
    try {
      const read = await readMarks(
        db,
        watched.map(([tenantId]) => tenantId),
      )
      for (const [tenantId, ofTenant] of watched) {
        const newMarks = read.get(tenantId)
        if (newMarks) tell(tenantId, ofTenant, newMarks)
      }
    } catch (error) {
      log.warn({ err: error }, 'the changes of tenants could not be read')
    }
    isPolling = false
    const pauseMs = Math.max(POLL_MS, (performance.now() - startedAt) * REST_FACTOR)
    if (listeners.size > 0) timer = setTimeout(() => void poll(), pauseMs).unref()
    else timer = undefined
  }

  const tell = (tenantId: string, ofTenant: readonly TowerListener[], newMarks: Marks) => {
    const topics = changedTopics(marks.get(tenantId), newMarks)
    if (listeners.has(tenantId)) marks.set(tenantId, newMarks)
    for (const listener of ofTenant) {
      if (!readyListeners.has(listener)) {
        readyListeners.add(listener)
        listener.onReady()
      } else if (topics.length > 0) listener.onChange(topics)
    }
  }

  return {
    follow(tenantId: string, listener: TowerListener): () => void {
      const ofTenant = listeners.get(tenantId) ?? new Set()
      listeners.set(tenantId, ofTenant.add(listener))
      // The first read does not wait for its turn: a page shows that it is live once it is done.
      if (!isPolling) {
        clearTimeout(timer)
        outsideTenantReads(() => void poll())
      }
      return () => {
        ofTenant.delete(listener)
        if (ofTenant.size > 0 || listeners.get(tenantId) !== ofTenant) return
        listeners.delete(tenantId)
        marks.delete(tenantId)
      }
    },
  }
}

export function changedTopics(before: Marks | undefined, after: Marks): TowerTopic[] {
  if (!before) return []
  const changed = (Object.keys(topicsOfMark) as MarkName[]).filter((name) => before[name] !== after[name])
  if (changed.length === 0) return []
  return [...new Set<TowerTopic>(['tower', ...changed.flatMap((name) => topicsOfMark[name])])]
}

/** How many of the newest rows a mark covers: one that commits after younger ones is noticed, too. */
const NEWEST = 20
const MAX_OPEN = 500

async function readMarks(db: Db, tenantIds: readonly string[]): Promise<Map<string, Marks>> {
  if (tenantIds.length === 0) return new Map()
  const { rows } = await sql<Marks & { tenant_id: string }>`
    select tenant.id as tenant_id,
      concat(
        (select md5(string_agg(concat(run.id, run.state, run.outcome, run.payment_state), ',')) from
          (select * from open_runs where tenant_id = tenant.id order by id desc limit ${MAX_OPEN}) run), ' ',
        (select md5(string_agg(run.id, ',')) from (select id from ended_runs where tenant_id = tenant.id order by id desc limit ${NEWEST}) run)) as runs,
      (select md5(string_agg(approval.id, ',')) from (select id from approvals where tenant_id = tenant.id and status = 'pending' order by id desc limit ${MAX_OPEN}) approval) as approvals,
      concat(
        (select md5(string_agg(concat(trade.id, trade.state, trade.updated_at), ',')) from (select id, state, updated_at from rh_runs where tenant_id = tenant.id order by id desc limit ${NEWEST}) trade), ' ',
        (select md5(string_agg(trade.id::text, ',')) from (select id from rh_runs where tenant_id = tenant.id and state = 'pending_approval' order by id desc limit ${MAX_OPEN}) trade)) as trades,
      concat(
        (select md5(string_agg(concat(payment.id, payment.status, payment.settlement_status), ',')) from
          (select id, status, settlement_status from preauths where tenant_id = tenant.id order by id desc limit ${NEWEST}) payment), ' ',
        (select md5(string_agg(payment.id, ',')) from (select id from active_preauths where tenant_id = tenant.id order by created_at limit ${MAX_OPEN}) payment), ' ',
        (select count(*) from preauths where tenant_id = tenant.id and status = 'escalated')) as preauths,
      (select max(decision.id) from decisions decision where decision.tenant_id = tenant.id) as decisions,
      (select concat(count(*), max(alert.id), max(alert.updated_at)) from alerts alert where alert.tenant_id = tenant.id and alert.read_at is null) as alerts,
      (select md5(string_agg(concat(subscription.id, subscription.is_active, subscription.failing_since, subscription.updated_at), ',' order by subscription.id))
        from webhook_subscriptions subscription where subscription.tenant_id = tenant.id and subscription.deleted_at is null) as webhooks,
      concat(
        (select sum(subscription.last_seq) from webhook_subscriptions subscription where subscription.tenant_id = tenant.id and subscription.deleted_at is null), ' ',
        (select count(*) from (select from waiting_deliveries where tenant_id = tenant.id limit ${MAX_OPEN}) delivery)) as deliveries,
      (select head.seq::text from audit_heads head where head.tenant_id = tenant.id) as audit,
      (select max(event.seq)::text from (
        select seq, type from audit_events where tenant_id = tenant.id order by seq desc limit ${NEWEST}) event where event.type !~ '^(run|loop)[.]') as changes
    from unnest(${[...tenantIds]}::text[]) as tenant(id)
  `.execute(db)
  return new Map(rows.map(({ tenant_id, ...tenantMarks }) => [tenant_id, tenantMarks]))
}
