import type { TenantCaller } from '../../platform/auth-context.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db.ts'
import type { Idempotency, IdempotentResponse } from '../../platform/idempotency.ts'
import type { Ids } from '../../platform/ids.ts'
import type { Outbox } from '../../platform/outbox.ts'
import { toPage } from '../../platform/paging.ts'
import { conflict, invalid, notFound } from '../../platform/problem.ts'
import { defineLimit, markRulesChanged, removeLimits } from './limit-counters.store.ts'
import {
  countPolicies,
  findPolicy,
  listPolicies,
  listVersions,
  lockPolicy,
  type PolicyRow,
  writePolicy,
} from './policies.store.ts'
import { contentHash, type IdentityType, type PolicyContent, velocityOf, velocityScope } from './policy.ts'
import {
  type Constraints,
  checkConstraints,
  type VelocityConstraint,
  velocityConstraints,
} from './policy-constraints.ts'
import { type Rule, type RuleInput, readRule } from './policy-rules.ts'
import type { Mode } from './rule-result.ts'
import type { RulesCache } from './rules-cache.ts'

export type PoliciesDeps = {
  db: Db
  clock: Clock
  ids: Ids
  outbox: Outbox
  idempotency: Idempotency
  books: Pick<RulesCache, 'forget'>
  /** Whose key this is; undefined when it is nobody's. */
  keyOf(apiKey: string): Promise<{ tenantId: string; keyId: string } | undefined>
}

/** Both accepted shapes in one: the legacy one brings rules, the spend policy an identity and constraints. */
export type PolicyInput = {
  name?: string
  rules?: RuleInput[]
  identity_type?: IdentityType
  api_key?: string
  agent_id?: string
  audit_trail_required?: boolean
  mode?: Mode
  status?: 'active' | 'inactive'
  constraints?: Constraints
  idempotency_key?: string
}

export type PolicyChange = Pick<
  PolicyInput,
  'name' | 'rules' | 'audit_trail_required' | 'mode' | 'status' | 'constraints'
>

const MAX_POLICIES = 200

export type Policies = ReturnType<typeof createPolicies>

export function createPolicies(d: PoliciesDeps) {
  const write = async (
    tx: Tx,
    tenant: TenantCaller,
    policy: { id: string; version: number; status: string; content: PolicyContent },
    type: 'created' | 'updated' | 'deleted',
  ): Promise<PolicyRow> => {
    const at = d.clock.now()
    const hash = contentHash(policy.content)
    const row = await writePolicy(tx, { ...policy, tenantId: tenant.tenantId, hash, by: tenant.keyId, at })
    await defineVelocity(tx, tenant.tenantId, policy)
    await markRulesChanged(tx, tenant.tenantId)
    const data = {
      policy_id: row.id,
      name: row.name,
      version: row.version,
      status: row.status,
      mode: row.mode,
      content_hash: hash,
    }
    await d.outbox.emit(tx, {
      tenantId: tenant.tenantId,
      type: type === 'created' ? 'policy.created' : 'policy.updated',
      data,
      at,
    })
    await d.outbox.audit(tx, {
      tenantId: tenant.tenantId,
      type: `policy.${type}`,
      actor: tenant.keyId,
      subject: row.id,
      policyIds: [row.id],
      inputHash: hash,
      data,
      at,
    })
    return row
  }

  const locked = async (tx: Tx, tenant: TenantCaller, id: string) => {
    const row = await lockPolicy(tx, tenant.tenantId, id)
    if (!row) throw notFound('policy')
    return row
  }

  return {
    /** What a draft says, checked as if it were created; nothing is written. */
    draft: (tenant: TenantCaller, input: PolicyInput) => readPolicy(d, tenant, input),

    async create(
      tenant: TenantCaller,
      input: PolicyInput,
      idempotencyKey: string | undefined,
    ): Promise<IdempotentResponse> {
      const content = await readPolicy(d, tenant, input)
      const asked = {
        scope: `tenant:${tenant.tenantId}`,
        route: 'POST /api/policies',
        key: idempotencyKey,
        body: input,
      }
      const answer = await d.idempotency.once(asked, async (tx) => {
        if ((await countPolicies(tx, tenant.tenantId)) >= MAX_POLICIES)
          throw conflict(`A tenant has at most ${MAX_POLICIES} policies; delete one first.`)
        const policy = { id: d.ids.next('pol'), version: 1, status: input.status ?? 'active', content }
        return { status: 201, body: policyRecord(await write(tx, tenant, policy, 'created')) }
      })
      d.books.forget(tenant.tenantId)
      return answer
    },

    async list(tenant: TenantCaller, query: { limit?: number; cursor?: string }) {
      const { rows, ...paging } = toPage(
        await listPolicies(d.db, tenant.tenantId, { limit: query.limit ?? 100, cursor: query.cursor }),
        query.limit ?? 100,
      )
      return { policies: rows.map(policyRecord), ...paging }
    },

    async get(tenant: TenantCaller, id: string) {
      const row = await findPolicy(d.db, tenant.tenantId, id)
      if (!row) throw notFound('policy')
      return policyRecord(row)
    },

    /** As it governs, with whom it is for; undefined when the tenant has none by that id. */
    async find(tenant: TenantCaller, id: string) {
      const row = await findPolicy(d.db, tenant.tenantId, id)
      return row && { ...contentOf(row), id: row.id, status: row.status, content_hash: row.content_hash }
    },

    /** What it said, version by version: a receipt names the hash, and here is what was hashed. */
    async versions(tenant: TenantCaller, id: string, query: { limit?: number; cursor?: number }) {
      if (!(await findPolicy(d.db, tenant.tenantId, id))) throw notFound('policy')
      const limit = query.limit ?? 50
      const { rows, ...paging } = toPage(await listVersions(d.db, id, { limit, before: query.cursor }), limit, (row) =>
        String(row.version),
      )
      const versions = rows.map((row) => {
        const { key_id: _, ...content } = row.content as Record<string, unknown>
        const { version, content_hash, changed_by } = row
        return { version, content_hash, content, changed_by, created_at: row.created_at.toISOString() }
      })
      return { versions, ...paging }
    },

    /** A change is a new version; what it said before stays on record. */
    async change(tenant: TenantCaller, id: string, change: PolicyChange) {
      if (change.constraints) checkConstraints(change.constraints)
      const rules = change.rules?.map(readRule)
      const row = await d.db.transaction().execute(async (tx) => {
        const old = await locked(tx, tenant, id)
        const before = contentOf(old)
        const content: PolicyContent = {
          ...before,
          name: change.name ?? before.name,
          mode: change.mode ?? before.mode,
          audit_trail_required: change.audit_trail_required ?? before.audit_trail_required,
          constraints: change.constraints ?? before.constraints,
          rules: rules ?? before.rules,
        }
        return write(
          tx,
          tenant,
          { id, version: old.version + 1, status: change.status ?? old.status, content },
          'updated',
        )
      })
      d.books.forget(tenant.tenantId)
      return policyRecord(row)
    },

    async remove(tenant: TenantCaller, id: string) {
      const row = await d.db.transaction().execute(async (tx) => {
        const old = await locked(tx, tenant, id)
        return write(
          tx,
          tenant,
          { id, version: old.version + 1, status: 'deleted', content: contentOf(old) },
          'deleted',
        )
      })
      d.books.forget(tenant.tenantId)
      return policyRecord(row)
    },
  }
}

async function readPolicy(
  d: Pick<PoliciesDeps, 'keyOf'>,
  tenant: TenantCaller,
  input: PolicyInput,
): Promise<PolicyContent> {
  if (input.rules === undefined && input.constraints === undefined)
    throw invalid('body must have rules or constraints.')
  if (input.rules !== undefined && input.constraints === undefined && input.name === undefined)
    throw invalid('body must have a name with rules.')
  const constraints = input.constraints ?? {}
  checkConstraints(constraints)
  const rules: Rule[] = (input.rules ?? []).map(readRule)
  const identity_type =
    input.identity_type ?? (input.api_key !== undefined ? 'api_key' : input.agent_id !== undefined ? 'agent' : 'tenant')
  needIdentity(identity_type, input)
  const key = input.api_key === undefined ? undefined : await d.keyOf(input.api_key)
  if (input.api_key !== undefined && key?.tenantId !== tenant.tenantId)
    throw invalid('body/api_key is not a key of this tenant.')
  const about =
    identity_type === 'agent' ? `the agent ${input.agent_id}` : identity_type === 'api_key' ? 'one key' : 'the tenant'
  return {
    name: input.name ?? `Spend policy for ${about}`,
    mode: input.mode ?? 'enforce',
    identity_type,
    agent_id: input.agent_id ?? null,
    key_id: key?.keyId ?? null,
    key_prefix: input.api_key?.slice(0, KEY_PREFIX) ?? null,
    audit_trail_required: input.audit_trail_required ?? false,
    constraints,
    rules,
  }
}

/** As much of a key as the tenant sees everywhere else. */
const KEY_PREFIX = 12

function needIdentity(type: IdentityType, { api_key, agent_id }: PolicyInput): void {
  const wanted = { tenant: [false, false], api_key: [true, false], agent: [false, true] }[type]
  if ((api_key !== undefined) !== wanted[0])
    throw invalid(`body/api_key ${wanted[0] ? 'is missing' : 'does not fit'} with the identity_type '${type}'.`)
  if ((agent_id !== undefined) !== wanted[1])
    throw invalid(`body/agent_id ${wanted[1] ? 'is missing' : 'does not fit'} with the identity_type '${type}'.`)
}

/** A policy that is not active counts nothing; its counters stay as they are until it is again. */
async function defineVelocity(
  tx: Tx,
  tenantId: string,
  { id, status, content }: { id: string; status: string; content: PolicyContent },
): Promise<void> {
  const defined = status === 'active' ? velocityOf(content.constraints) : []
  for (const { name, limitMicro } of defined) {
    const subject = { policy_id: id, rule: name }
    await defineLimit(tx, {
      scope: velocityScope(id, name),
      tenantId,
      limitMicro,
      enforced: content.mode === 'enforce',
      subject,
    })
  }
  const all = Object.keys(velocityConstraints) as VelocityConstraint[]
  const gone = all.filter((name) => !defined.some((one) => one.name === name))
  await removeLimits(
    tx,
    gone.map((name) => velocityScope(id, name)),
  )
}

const contentOf = (row: PolicyRow): PolicyContent => ({
  name: row.name,
  mode: row.mode as Mode,
  identity_type: row.identity_type as IdentityType,
  agent_id: row.agent_id,
  key_id: row.key_id,
  key_prefix: row.key_prefix,
  audit_trail_required: row.audit_trail_required,
  constraints: row.constraints as Constraints,
  rules: row.rules as Rule[],
})

/** The raw key was never stored; its prefix tells the owner which one it is. */
const policyRecord = (row: PolicyRow) => ({
  id: row.id,
  name: row.name,
  version: row.version,
  status: row.status,
  mode: row.mode,
  identity_type: row.identity_type,
  agent_id: row.agent_id,
  key_prefix: row.key_prefix,
  audit_trail_required: row.audit_trail_required,
  constraints: row.constraints,
  rules: row.rules,
  content_hash: row.content_hash,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
})
