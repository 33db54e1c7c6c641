import type { TenantCaller } from '../../../platform/auth-context.ts'
import type { Clock } from '../../../platform/clock.ts'
import type { Db, Tx } from '../../../platform/db.ts'
import type { Idempotency, IdempotentResponse } from '../../../platform/idempotency.ts'
import type { Ids } from '../../../platform/ids.ts'
import type { Outbox } from '../../../platform/outbox.ts'
import { readPage } from '../../../platform/paging.ts'
import { invalid, notFound } from '../../../platform/problem.ts'
import { defineLimit, markRulesChanged, removeLimits } from '../counters/limit-counters.store.ts'
import { contentHash, type IdentityType, type PolicyContent, velocityOf, velocityScope } from './evaluate-policy.ts'
import { findPolicy, listPolicies, listVersions, lockPolicy, type PolicyRow, writePolicy } from './policies.store.ts'
import {
  type Constraints,
  checkConstraints,
  type VelocityConstraint,
  velocityConstraints,
} from './policy-constraints.ts'
import { type Rule, type RuleInput, readRule } from './policy-rules.ts'
import { lockRules, requireChangesLeft, requireRoomForPolicy, withCounterLimit } from './rule-limits.ts'
import type { Mode } from './rule-result.ts'
import type { RulesCache } from './rules-cache.ts'
import { requireTag } from './selector.ts'

export type PoliciesDeps = {
  db: Db
  clock: Clock
  ids: Ids
  outbox: Outbox
  idempotency: Idempotency
  rulesCache: Pick<RulesCache, 'invalidate'>
  /** The tenant and id of an API key; undefined when the key is unknown. */
  findApiKey(apiKey: string): Promise<{ tenantId: string; keyId: string } | undefined>
}

/** Both accepted shapes: the legacy shape has rules, the spend policy has an identity and constraints. */
export type PolicyInput = {
  name?: string
  rules?: RuleInput[]
  identity_type?: IdentityType
  api_key?: string
  agent_id?: string
  identity_id?: string
  audit_trail_required?: boolean
  selectable?: boolean
  mode?: Mode
  status?: 'active' | 'inactive'
  constraints?: Constraints
  idempotency_key?: string
}

export type PolicyChange = Pick<
  PolicyInput,
  'name' | 'rules' | 'audit_trail_required' | 'selectable' | 'mode' | 'status' | 'constraints'
>

export type Policies = ReturnType<typeof createPolicies>

export function createPolicies(deps: PoliciesDeps) {
  const writeVersion = async (
    tx: Tx,
    tenant: TenantCaller,
    policy: { id: string; version: number; status: string; content: PolicyContent },
    type: 'created' | 'updated' | 'deleted',
  ): Promise<PolicyRow> => {
    const at = deps.clock.now()
    const hash = contentHash(policy.content)
    if (type !== 'deleted') {
      await requireRoomForPolicy(tx, tenant.tenantId, { id: policy.id, ...policy.content })
      await requireChangesLeft(tx, tenant.tenantId, at)
    }
    const row = await withCounterLimit(tx, tenant.tenantId, async () => {
      await defineVelocity(tx, tenant.tenantId, policy)
      return writePolicy(tx, { ...policy, tenantId: tenant.tenantId, hash, by: tenant.keyId, at })
    })
    await markRulesChanged(tx, tenant.tenantId)
    const data = {
      policy_id: row.id,
      name: row.name,
      version: row.version,
      status: row.status,
      mode: row.mode,
      content_hash: hash,
    }
    await deps.outbox.emit(tx, {
      tenantId: tenant.tenantId,
      type: type === 'created' ? 'policy.created' : 'policy.updated',
      data,
      at,
    })
    await deps.outbox.audit(tx, {
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

  const lockTenantPolicy = async (tx: Tx, tenant: TenantCaller, id: string) => {
    const row = await lockPolicy(tx, tenant.tenantId, id)
    if (!row) throw notFound('policy')
    return row
  }

  return {
    /** Validates a draft as if it were created, without writing it. */
    draft: (tenant: TenantCaller, input: PolicyInput) => readPolicy(deps, tenant, input),

    async create(
      tenant: TenantCaller,
      input: PolicyInput,
      idempotencyKey: string | undefined,
    ): Promise<IdempotentResponse> {
      const content = await readPolicy(deps, tenant, input)
      const request = {
        scope: `tenant:${tenant.tenantId}`,
        route: 'POST /api/policies',
        key: idempotencyKey,
        body: input,
      }
      const response = await deps.idempotency.once(request, async (tx) => {
        await lockRules(tx, tenant.tenantId)
        const policy = { id: deps.ids.next('pol'), version: 1, status: input.status ?? 'active', content }
        return { status: 201, body: toPolicyRecord(await writeVersion(tx, tenant, policy, 'created')) }
      })
      deps.rulesCache.invalidate(tenant.tenantId)
      return response
    },

    async list(tenant: TenantCaller, query: { limit?: number; cursor?: string }) {
      const readRows = (limit: number, after: PolicyRow | undefined) =>
        listPolicies(deps.db, tenant.tenantId, { limit, cursor: after?.id ?? query.cursor })
      const { rows, ...paging } = await readPage(query.limit ?? 100, readRows, (row) => row.id)
      return { policies: rows.map(toPolicyRecord), ...paging }
    },

    async get(tenant: TenantCaller, id: string) {
      const row = await findPolicy(deps.db, tenant.tenantId, id)
      if (!row) throw notFound('policy')
      return toPolicyRecord(row)
    },

    /** The content of a policy with its identity; undefined when the tenant has no policy with this id. */
    async find(tenant: TenantCaller, id: string) {
      const row = await findPolicy(deps.db, tenant.tenantId, id)
      return row && { ...toContent(row), id: row.id, status: row.status, content_hash: row.content_hash }
    },

    /** The content of each version: the data behind the content hash in a receipt. */
    async versions(tenant: TenantCaller, id: string, query: { limit?: number; cursor?: number }) {
      if (!(await findPolicy(deps.db, tenant.tenantId, id))) throw notFound('policy')
      const readRows = (limit: number, after: { version: number } | undefined) =>
        listVersions(deps.db, id, { limit, before: after?.version ?? query.cursor })
      const { rows, ...paging } = await readPage(query.limit ?? 50, readRows, (row) => String(row.version))
      const versions = rows.map((row) => {
        const { key_id: _, ...content } = row.content as Record<string, unknown>
        const { version, content_hash, changed_by } = row
        return { version, content_hash, content, changed_by, created_at: row.created_at.toISOString() }
      })
      return { versions, ...paging }
    },

    /** A change creates a new version; earlier versions are kept. */
    async change(tenant: TenantCaller, id: string, change: PolicyChange) {
      if (change.constraints) checkConstraints(change.constraints)
      const rules = change.rules?.map(readRule)
      const row = await deps.db.transaction().execute(async (tx) => {
        await lockRules(tx, tenant.tenantId)
        const existingPolicy = await lockTenantPolicy(tx, tenant, id)
        const current = toContent(existingPolicy)
        const { selectable: wasSelectable, ...unchanged } = current
        const content: PolicyContent = {
          ...unchanged,
          ...((change.selectable ?? wasSelectable) && { selectable: true }),
          name: change.name ?? current.name,
          mode: change.mode ?? current.mode,
          audit_trail_required: change.audit_trail_required ?? current.audit_trail_required,
          constraints: change.constraints ?? current.constraints,
          rules: rules ?? current.rules,
        }
        return writeVersion(
          tx,
          tenant,
          { id, version: existingPolicy.version + 1, status: change.status ?? existingPolicy.status, content },
          'updated',
        )
      })
      deps.rulesCache.invalidate(tenant.tenantId)
      return toPolicyRecord(row)
    },

    async remove(tenant: TenantCaller, id: string) {
      const row = await deps.db.transaction().execute(async (tx) => {
        await lockRules(tx, tenant.tenantId)
        const existingPolicy = await lockTenantPolicy(tx, tenant, id)
        return writeVersion(
          tx,
          tenant,
          { id, version: existingPolicy.version + 1, status: 'deleted', content: toContent(existingPolicy) },
          'deleted',
        )
      })
      deps.rulesCache.invalidate(tenant.tenantId)
      return toPolicyRecord(row)
    },
  }
}

async function readPolicy(
  deps: Pick<PoliciesDeps, 'findApiKey'>,
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
  requireIdentity(identity_type, input)
  const key = input.api_key === undefined ? undefined : await deps.findApiKey(input.api_key)
  if (input.api_key !== undefined && key?.tenantId !== tenant.tenantId)
    throw invalid('body/api_key is not a key of this tenant.')
  const subject = {
    tenant: 'the tenant',
    api_key: 'one key',
    agent: `the agent ${input.agent_id}`,
    spender: `the spender ${input.identity_id}`,
    team: `the team ${input.identity_id}`,
    tag: `the tag ${input.identity_id}`,
    merchant: `the merchant ${input.identity_id}`,
  }[identity_type]
  return {
    name: input.name ?? `Spend policy for ${subject}`.slice(0, MAX_NAME),
    mode: input.mode ?? 'enforce',
    identity_type,
    agent_id: input.agent_id ?? null,
    key_id: key?.keyId ?? null,
    key_prefix: input.api_key?.slice(0, KEY_PREFIX) ?? null,
    ...(input.identity_id !== undefined && { identity_id: input.identity_id }),
    audit_trail_required: input.audit_trail_required ?? false,
    ...(input.selectable && { selectable: true }),
    constraints,
    rules,
  }
}

const MAX_NAME = 200
/** The length of the key prefix that is shown for API keys everywhere. */
const KEY_PREFIX = 12

/** The field that names the identity; a tenant needs none. */
const identityFields = {
  tenant: undefined,
  api_key: 'api_key',
  agent: 'agent_id',
  spender: 'identity_id',
  team: 'identity_id',
  tag: 'identity_id',
  merchant: 'identity_id',
} as const satisfies Record<IdentityType, keyof PolicyInput | undefined>

function requireIdentity(type: IdentityType, input: PolicyInput): void {
  const required = identityFields[type]
  for (const field of ['api_key', 'agent_id', 'identity_id'] as const)
    if ((input[field] !== undefined) !== (field === required))
      throw invalid(
        `body/${field} is ${field === required ? 'required' : 'not allowed'} with the identity_type '${type}'.`,
      )
  if (type === 'tag') requireTag('body/identity_id', input.identity_id!)
}

/** Defines the counters of an active policy. An inactive policy does not count; its counters keep their values. */
async function defineVelocity(
  tx: Tx,
  tenantId: string,
  { id, status, content }: { id: string; status: string; content: PolicyContent },
): Promise<void> {
  const activeLimits = status === 'active' ? velocityOf(content.constraints) : []
  for (const { name, limitMicro } of activeLimits) {
    const subject = { policy_id: id, rule: name }
    await defineLimit(tx, {
      scope: velocityScope(id, name),
      tenantId,
      limitMicro,
      enforced: content.mode === 'enforce',
      subject,
    })
  }
  const allNames = Object.keys(velocityConstraints) as VelocityConstraint[]
  const removedNames = allNames.filter((name) => !activeLimits.some((limit) => limit.name === name))
  await removeLimits(
    tx,
    removedNames.map((name) => velocityScope(id, name)),
  )
}

const toContent = (row: PolicyRow): PolicyContent => ({
  name: row.name,
  mode: row.mode as Mode,
  identity_type: row.identity_type as IdentityType,
  agent_id: row.agent_id,
  key_id: row.key_id,
  key_prefix: row.key_prefix,
  ...(row.identity_id !== null && { identity_id: row.identity_id }),
  audit_trail_required: row.audit_trail_required,
  ...(row.selectable && { selectable: true }),
  constraints: row.constraints as Constraints,
  rules: row.rules as Rule[],
})

/** The raw key is not stored; its prefix identifies it to the owner. */
const toPolicyRecord = (row: PolicyRow) => ({
  id: row.id,
  name: row.name,
  version: row.version,
  status: row.status,
  mode: row.mode,
  identity_type: row.identity_type,
  agent_id: row.agent_id,
  key_prefix: row.key_prefix,
  identity_id: row.identity_id,
  audit_trail_required: row.audit_trail_required,
  selectable: row.selectable,
  constraints: row.constraints,
  rules: row.rules,
  content_hash: row.content_hash,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
})
