import { type KeyScope, keyScopes, type TenantCaller } from '../../platform/auth-context.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db.ts'
import type { Idempotency } from '../../platform/idempotency.ts'
import type { Ids } from '../../platform/ids.ts'
import type { Keys } from '../../platform/keys.ts'
import type { Outbox } from '../../platform/outbox.ts'
import { toPage } from '../../platform/paging.ts'
import { conflict, forbidden, invalid, notFound, Problem } from '../../platform/problem.ts'
import { generateApiKey } from './api-key.ts'
import type { CallerCache } from './caller-cache.ts'
import { readLineage } from './key-lineage.ts'
import { getPlan } from './plans.ts'
import * as store from './tenants.store.ts'

export type ApiKeysDeps = {
  db: Db
  clock: Clock
  ids: Ids
  keys: Pick<Keys, 'fingerprint'>
  cell?: string | undefined
  idempotency: Idempotency
  callers: CallerCache
  emit: Outbox['emit']
  audit: Outbox['audit']
  /** Which of these are mandates of the tenant. */
  findMandateIds(tx: Tx, tenantId: string, ids: readonly string[]): Promise<string[]>
}

export type NewKey = {
  name?: string
  scopes?: KeyScope[]
  spender?: string
  team?: string
  mandate_ids?: string[]
  expires_at?: string
}
type KeyDraft = Omit<NewKey, 'scopes'> & { scopes: readonly KeyScope[]; created_by?: string | null }

/** The scopes of an onboarded key; only the operator grants `admin` to a tenant that has no key with it. */
const onboardedScopes: readonly KeyScope[] = keyScopes.filter((scope) => scope !== 'admin')
const OVERLAP_SECONDS = 24 * 60 * 60
/** Revoked keys stay on record, so that making and revoking them is limited too. */
export const MAX_NEW_KEYS_PER_DAY = 200
const DAY_MS = 24 * 3_600_000
export const OPERATOR = 'operator'

export type ApiKeys = ReturnType<typeof createApiKeys>

/** The keys of tenants. The operator manages all of them; a tenant's key those that it may give itself. */
export function createApiKeys(deps: ApiKeysDeps) {
  const addKey = async (tx: Tx, tenantId: string, draft: KeyDraft, actor: string, replaces?: string) => {
    const at = deps.clock.now()
    const newKey = generateApiKey(deps.keys, deps.cell)
    const mandateIds = draft.mandate_ids ?? null
    if (mandateIds !== null) await requireMandates(tx, tenantId, mandateIds)
    const row = await store.insertKey(tx, {
      id: deps.ids.next('key'),
      tenant_id: tenantId,
      name: draft.name ?? 'default',
      prefix: newKey.prefix,
      hash: newKey.hash,
      scopes: keyScopes.filter((scope) => draft.scopes.includes(scope)),
      spender: draft.spender ?? null,
      team: draft.team ?? null,
      mandate_ids: mandateIds,
      created_by: draft.created_by ?? null,
      created_at: at,
      expires_at: parseExpiry(draft.expires_at, at),
    })
    await recordKeyEvent(tx, 'key.created', row, actor, at, replaces)
    return { ...toKeyResponse(row), api_key: newKey.apiKey }
  }

  const requireMandates = async (tx: Tx, tenantId: string, ids: readonly string[]) => {
    const mandateIds = await deps.findMandateIds(tx, tenantId, ids)
    const unknown = ids.find((id) => !mandateIds.includes(id))
    if (unknown !== undefined) throw invalid(`body/mandate_ids: there is no mandate '${unknown}'.`)
  }

  const recordKeyEvent = async (
    tx: Tx,
    type: 'key.created' | 'key.revoked',
    key: store.KeyRow,
    actor: string,
    at: Date,
    replaces?: string,
  ) => {
    const data = { key_id: key.id, key_prefix: key.prefix, name: key.name, scopes: key.scopes }
    const { spender, team, mandate_ids, created_by } = key
    const bonds = Object.entries({ spender, team, mandate_ids, created_by, replaces }).filter(([, value]) => value)
    await deps.emit(tx, { tenantId: key.tenant_id, type, data, at })
    await deps.audit(tx, {
      tenantId: key.tenant_id,
      type,
      actor,
      subject: key.id,
      data: { ...data, ...Object.fromEntries(bonds) },
      at,
    })
  }

  /** Locks the tenant, so that concurrent requests cannot exceed the limit of its plan. */
  const requireRoom = async (tx: Tx, tenantId: string) => {
    const tenant = await store.lockTenant(tx, tenantId)
    if (!tenant) throw notFound('tenant')
    const maxKeys = getPlan(tenant.plan).limits.api_keys
    if ((await store.countLiveKeys(tx, tenantId, deps.clock.now())) >= maxKeys)
      throw forbidden(`The plan '${tenant.plan}' allows ${maxKeys} live keys; revoke one first.`)
  }

  const requireNewKeysLeft = async (tx: Tx, tenantId: string) => {
    const since = new Date(deps.clock.now().getTime() - DAY_MS)
    const count = await store.countKeysSince(tx, tenantId, since)
    if (count >= MAX_NEW_KEYS_PER_DAY)
      throw new Problem('error', `A tenant makes or rotates at most ${MAX_NEW_KEYS_PER_DAY} keys in 24 hours.`, {
        status: 429,
        code: 'rate_limited',
        retryAfterSeconds: 3600,
      })
  }

  const revoke = async (tx: Tx, key: store.KeyRow, actor: string) => {
    if (key.revoked_at) return key
    const at = deps.clock.now()
    const revokedKey = await store.changeKey(tx, key.id, { revoked_at: at })
    await recordKeyEvent(tx, 'key.revoked', revokedKey, actor, at)
    await store.notifyKeyChange(tx, key.id)
    return revokedKey
  }

  /** Revoking a key leaves the keys alive that it made, so the answer names them. */
  const toRevokedResponse = async (tx: Tx, key: store.KeyRow) => {
    const tenantKeys = await store.readKeys(tx, key.tenant_id)
    const made = readLineage(tenantKeys).keysMadeBy(key.id)
    const now = deps.clock.now()
    return {
      ...toKeyResponse(key),
      active_keys_made: tenantKeys.filter((row) => made.has(row.id) && isLive(row, now)).map((row) => row.id),
    }
  }

  /** The new key has the scopes, bonds and maker of the old one, which stays valid for the overlap. */
  const rotate = async (tx: Tx, oldKey: store.KeyRow, overlapSeconds: number | undefined, actor: string) => {
    const at = deps.clock.now()
    if (!isLive(oldKey, at)) throw conflict('This key is no longer valid.')
    if (oldKey.replaced_by) throw conflict('This key has been rotated already.')
    const { name, expires_at, created_by } = oldKey
    const draft = {
      name,
      scopes: oldKey.scopes as KeyScope[],
      spender: oldKey.spender ?? undefined,
      team: oldKey.team ?? undefined,
      mandate_ids: oldKey.mandate_ids ?? undefined,
      created_by,
      expires_at: expires_at?.toISOString(),
    }
    const newKey = await addKey(tx, oldKey.tenant_id, draft, actor, oldKey.id)
    const until = new Date(at.getTime() + (overlapSeconds ?? OVERLAP_SECONDS) * 1000)
    const replacedKey = await store.changeKey(tx, oldKey.id, {
      expires_at: expires_at && expires_at < until ? expires_at : until,
      replaced_by: newKey.key_id,
    })
    await store.notifyKeyChange(tx, oldKey.id)
    return { status: 201, body: { ...newKey, replaces: toKeyResponse(replacedKey) } }
  }

  /** A key of the caller's tenant, with all keys of the tenant; the tenant is locked, so that none is made meanwhile. */
  const lockOwnKey = async (tx: Tx, caller: TenantCaller, id: string) => {
    await store.lockTenant(tx, caller.tenantId)
    const tenantKeys = await store.readKeys(tx, caller.tenantId)
    const key = tenantKeys.find((row) => row.id === id)
    if (!key) throw notFound('key')
    return { key, tenantKeys, lineage: readLineage(tenantKeys) }
  }

  // An answer shows a new key: a repeated request gets it only with the key that asked first.
  const onceForKey = (
    caller: TenantCaller,
    request: { route: string; key: string | undefined; body: unknown },
    work: Parameters<Idempotency['once']>[1],
  ) => deps.idempotency.once({ ...request, scope: `key:${caller.keyId}` }, work)

  return {
    /** The first key of a tenant. */
    addFirst: (tx: Tx, tenantId: string, name: string, actor: string) =>
      addKey(tx, tenantId, { name, scopes: onboardedScopes }, actor),

    createByOperator: (idempotencyKey: string | undefined, tenantId: string, body: NewKey) =>
      deps.idempotency.once(
        { scope: OPERATOR, route: `POST /api/admin/tenants/${tenantId}/keys`, key: idempotencyKey, body },
        async (tx) => {
          await requireRoom(tx, tenantId)
          const draft = { ...body, scopes: body.scopes ?? onboardedScopes }
          return { status: 201, body: await addKey(tx, tenantId, draft, OPERATOR) }
        },
      ),

    /** Idempotent: revoking again keeps the first `revoked_at`. */
    async revokeByOperator(id: string) {
      const response = await deps.db.transaction().execute(async (tx) => {
        const key = await store.lockKey(tx, id)
        if (!key) throw notFound('key')
        return toRevokedResponse(tx, await revoke(tx, key, OPERATOR))
      })
      deps.callers.forget(id)
      return response
    },

    async rotateByOperator(idempotencyKey: string | undefined, id: string, body: { overlap_seconds?: number }) {
      const request = { scope: OPERATOR, route: `POST /api/admin/keys/${id}/rotate`, key: idempotencyKey, body }
      const response = await deps.idempotency.once(request, async (tx) => {
        const oldKey = await store.lockKey(tx, id)
        if (!oldKey) throw notFound('key')
        return rotate(tx, oldKey, body.overlap_seconds, OPERATOR)
      })
      deps.callers.forget(id)
      return response
    },

    async list(tenantId: string, query: { cursor?: string; limit?: number }) {
      const limit = query.limit ?? 50
      const { rows, ...paging } = toPage(
        await store.listKeys(deps.db, tenantId, { cursor: query.cursor, limit }),
        limit,
      )
      return { keys: rows.map(toKeyResponse), ...paging }
    },

    async get(caller: TenantCaller, id: string) {
      const row = await store.findKey(deps.db, caller.tenantId, id)
      if (!row) throw notFound('key')
      return toKeyResponse(row)
    },

    create: (caller: TenantCaller, idempotencyKey: string | undefined, body: NewKey & { scopes: KeyScope[] }) =>
      onceForKey(caller, { route: 'POST /api/keys', key: idempotencyKey, body }, async (tx) => {
        requireScopesHeld(caller, body.scopes)
        await requireRoom(tx, caller.tenantId)
        await requireNewKeysLeft(tx, caller.tenantId)
        const maker = await findMaker(tx, caller)
        const draft = { ...body, ...narrowBonds(maker, body), created_by: caller.keyId }
        return { status: 201, body: await addKey(tx, caller.tenantId, draft, caller.keyId) }
      }),

    /** A key rotates itself and the keys that it made: whoever rotates a key sees the new one, and is the same identity. */
    async rotate(
      caller: TenantCaller,
      idempotencyKey: string | undefined,
      id: string,
      body: { overlap_seconds?: number },
    ) {
      const request = { route: `POST /api/keys/${id}/rotate`, key: idempotencyKey, body }
      const response = await onceForKey(caller, request, async (tx) => {
        const { key, tenantKeys, lineage } = await lockOwnKey(tx, caller, id)
        if (!lineage.rotationsOf(caller.keyId).has(id) && !lineage.keysMadeBy(caller.keyId).has(id))
          throw forbidden('A key can rotate itself and the keys that it made, directly or through others.')
        requireNoMoreRights(caller, key, 'rotates')
        await requireNewKeysLeft(tx, caller.tenantId)
        // Otherwise rotating again and again would have any number of keys valid at once.
        const before = tenantKeys.find((row) => row.replaced_by === id && isLive(row, deps.clock.now()))
        if (before)
          throw conflict(
            `The key before this one, ${before.id}, is still valid; revoke it first or wait until it ends.`,
          )
        return rotate(tx, key, body.overlap_seconds, caller.keyId)
      })
      deps.callers.forget(id)
      return response
    },

    /** A key revokes itself and every key without more rights than its own, but not a key that made it. */
    async revoke(caller: TenantCaller, id: string) {
      const response = await deps.db.transaction().execute(async (tx) => {
        const { key, lineage } = await lockOwnKey(tx, caller, id)
        const answer = async () => toRevokedResponse(tx, await revoke(tx, key, caller.keyId))
        if (lineage.rotationsOf(caller.keyId).has(id)) return answer()
        if (lineage.makersOf(caller.keyId).has(id)) throw forbidden('A key cannot revoke a key that made it.')
        requireNoMoreRights(caller, key, 'revokes')
        if (!coversBonds(caller, key)) throw forbidden('This key is bound; it revokes only keys with the same bonds.')
        return answer()
      })
      deps.callers.forget(id)
      return response
    },
  }

  /** The maker's bonds, and its end: a rotated key in its overlap counts until its newest successor ends. */
  async function findMaker(tx: Tx, caller: TenantCaller) {
    const tenantKeys = await store.readKeys(tx, caller.tenantId)
    const rotations = readLineage(tenantKeys).rotationsOf(caller.keyId)
    const newest = tenantKeys.find((row) => rotations.has(row.id) && row.replaced_by === null)
    return { ...caller, endsAt: newest?.expires_at ?? null }
  }
}

const isLive = (key: store.KeyRow, now: Date) => !key.revoked_at && !(key.expires_at && key.expires_at <= now)

const findMissingScope = (caller: TenantCaller, scopes: readonly string[]) =>
  scopes.find((scope) => !(caller.scopes as readonly string[]).includes(scope))

function requireScopesHeld(caller: TenantCaller, scopes: readonly string[]) {
  const missing = findMissingScope(caller, scopes)
  if (missing !== undefined)
    throw forbidden(`This key lacks the scope '${missing}', and nobody gives a scope that he lacks.`)
}

function requireNoMoreRights(caller: TenantCaller, key: store.KeyRow, verb: 'rotates' | 'revokes') {
  const missing = findMissingScope(caller, key.scopes)
  if (missing !== undefined)
    throw forbidden(
      `This key lacks the scope '${missing}' of that key, and a key ${verb} no key with more rights than its own.`,
    )
}

type Bonds = Pick<TenantCaller, 'spender' | 'team' | 'mandateIds'>

const coversBonds = (caller: Bonds, key: store.KeyRow) =>
  (caller.spender === null || caller.spender === key.spender) &&
  (caller.team === null || caller.team === key.team) &&
  (caller.mandateIds === null || key.mandate_ids?.every((id) => caller.mandateIds!.includes(id)) === true)

/** The bonds of a new key: those asked for where its maker is free, else the maker's or narrower ones. */
function narrowBonds(maker: Bonds & { endsAt: Date | null }, body: NewKey) {
  const { spender = maker.spender, team = maker.team, mandate_ids = maker.mandateIds, expires_at } = body
  if (maker.spender !== null && spender !== maker.spender)
    throw forbidden(`This key is bound to the spender '${maker.spender}'; a key that it makes is too.`)
  if (maker.team !== null && team !== maker.team)
    throw forbidden(`This key is bound to the team '${maker.team}'; a key that it makes is too.`)
  const foreign = maker.mandateIds !== null && mandate_ids?.find((id) => !maker.mandateIds!.includes(id))
  if (foreign) throw forbidden(`This key is not bound to the mandate '${foreign}'; a key that it makes cannot be.`)
  if (maker.endsAt && expires_at !== undefined && new Date(expires_at) > maker.endsAt)
    throw forbidden(`This key ends at ${maker.endsAt.toISOString()}; a key that it makes cannot end later.`)
  return {
    spender: spender ?? undefined,
    team: team ?? undefined,
    mandate_ids: mandate_ids ? [...mandate_ids] : undefined,
    expires_at: expires_at ?? maker.endsAt?.toISOString(),
  }
}

function parseExpiry(text: string | undefined, now: Date): Date | null {
  if (!text) return null
  const at = new Date(text)
  if (at <= now) throw invalid('expires_at is in the past.')
  return at
}

const toKeyResponse = (row: store.KeyRow) => ({
  key_id: row.id,
  tenant_id: row.tenant_id,
  name: row.name,
  key_prefix: row.prefix,
  scopes: row.scopes,
  spender: row.spender,
  team: row.team,
  mandate_ids: row.mandate_ids,
  created_by: row.created_by,
  created_at: row.created_at.toISOString(),
  expires_at: row.expires_at?.toISOString() ?? null,
  revoked_at: row.revoked_at?.toISOString() ?? null,
  replaced_by: row.replaced_by,
  last_used_at: row.last_used_at?.toISOString() ?? null,
})
