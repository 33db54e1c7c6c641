import { Type } from 'typebox'
import { keyScopes } from '../../platform/auth-context.ts'
import { cursorParameter, pageFields } from '../../platform/paging.ts'
import { nullable, nullableText, oneOf, pattern, plainName } from '../../platform/schema.ts'
import { planNames } from './plans.ts'

const notBlank = pattern('\\S', 'text that is not blank')
const OrgName = Type.String({ minLength: 1, maxLength: 120, ...notBlank })
const Email = Type.String({ format: 'email', maxLength: 254 })
const UseCase = Type.String({ maxLength: 2000 })
const IdempotencyKey = Type.Optional(Type.String({ maxLength: 255 }))
const PlanName = oneOf(planNames)
const Status = oneOf(['active', 'suspended'] as const)
const Scopes = Type.Array(oneOf(keyScopes), { minItems: 1, maxItems: keyScopes.length, uniqueItems: true })

export const OnboardRequest = Type.Object(
  {
    org_name: OrgName,
    email: Email,
    use_case: Type.Optional(UseCase),
    invitation: Type.Optional(
      Type.String({
        maxLength: 200,
        description: 'The code of the operator, where onboarding takes one; ignored elsewhere.',
      }),
    ),
    idempotency_key: IdempotencyKey,
  },
  { title: 'OnboardRequest', additionalProperties: false },
)

export const OnboardResponse = Type.Object(
  {
    tenant_id: Type.String(),
    api_key: Type.String({ description: 'Shown once; only its hash is kept.' }),
    key_prefix: Type.String(),
    plan: PlanName,
    next_steps: Type.Array(Type.String()),
  },
  { title: 'OnboardResponse' },
)

export const OnboardingGuide = Type.Object(
  {
    endpoint: Type.String(),
    required: Type.Array(Type.String()),
    optional: Type.Array(Type.String()),
    steps: Type.Array(Type.String()),
    faucet: Type.Union([Type.String(), Type.Null()], {
      description: 'Where test USDC comes from on a development chain; null where the money is real.',
    }),
  },
  { title: 'OnboardingGuide' },
)

export const MeResponse = Type.Object(
  {
    orgId: Type.String(),
    org_name: Type.String(),
    email: Type.String(),
    plan: PlanName,
    tenant_id: Type.String(),
    role: oneOf(['admin', 'owner', 'operator', 'agent', 'viewer'] as const),
    auth: oneOf(['key', 'session'] as const),
    scopes: Type.Array(Type.String()),
    key_id: Type.String(),
    spender: nullableText,
    team: nullableText,
    mandate_ids: nullable(Type.Array(Type.String())),
  },
  { title: 'MeResponse' },
)

const Features = Type.Record(Type.String(), Type.Boolean())

export const MyPlanResponse = Type.Object(
  {
    plan: PlanName,
    features: Features,
    limits: Type.Record(Type.String(), Type.Number()),
    usage: Type.Object({
      runs: Type.Integer(),
      spend_usdc: Type.Number(),
      webhook_subscriptions: Type.Integer(),
      api_keys: Type.Integer(),
      since: Type.String({ format: 'date-time' }),
    }),
    renews_at: nullableText,
  },
  { title: 'MyPlanResponse' },
)

export const PlanResponse = Type.Object({ plan: PlanName, features: Features }, { title: 'PlanResponse' })

export const TenantCreate = Type.Object(
  {
    org_name: OrgName,
    email: Email,
    use_case: Type.Optional(UseCase),
    plan: Type.Optional(PlanName),
    idempotency_key: IdempotencyKey,
  },
  { title: 'TenantCreate', additionalProperties: false },
)

export const TenantUpdate = Type.Object(
  {
    org_name: Type.Optional(OrgName),
    email: Type.Optional(Email),
    use_case: Type.Optional(Type.Union([UseCase, Type.Null()])),
    plan: Type.Optional(PlanName),
    status: Type.Optional(Status),
    billing_customer_id: Type.Optional(
      Type.Union([Type.String(pattern('^[A-Za-z0-9_]{1,64}$', "1 to 64 letters, digits or '_'")), Type.Null()]),
    ),
  },
  { title: 'TenantUpdate', additionalProperties: false, minProperties: 1 },
)

const tenantFields = {
  tenant_id: Type.String(),
  org_name: Type.String(),
  email: Type.String(),
  use_case: nullableText,
  plan: PlanName,
  status: Status,
  billing_customer_id: nullableText,
  created_at: Type.String({ format: 'date-time' }),
  updated_at: Type.String({ format: 'date-time' }),
}

export const Tenant = Type.Object(tenantFields, { title: 'Tenant' })
export const TenantCreated = Type.Object(
  {
    ...tenantFields,
    key_id: Type.String(),
    api_key: Type.String({ description: 'Shown once; only its hash is kept.' }),
    key_prefix: Type.String(),
  },
  { title: 'TenantCreated' },
)

const limit = Type.Optional(Type.Integer({ minimum: 1, maximum: 100 }))
export const TenantsQuery = Type.Object(
  { limit, cursor: cursorParameter('ten'), plan: Type.Optional(PlanName), status: Type.Optional(Status) },
  { additionalProperties: false },
)
export const TenantsResponse = Type.Object({ tenants: Type.Array(Tenant), ...pageFields }, { title: 'TenantsResponse' })

const KeyName = Type.String({ minLength: 1, maxLength: 80 })
// `key:<id>` is how records name the spender of a key that is bound to none.
const spenderName = pattern('^(?!key:)\\S', "a name that does not begin with 'key:' or a space")
const keyBonds = {
  spender: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 120,
      ...spenderName,
      ...plainName,
      description: 'The key spends as this one and cannot name another.',
    }),
  ),
  team: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 120,
      ...notBlank,
      ...plainName,
      description: 'The key spends for this team.',
    }),
  ),
  mandate_ids: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 80 }), {
      minItems: 1,
      maxItems: 100,
      uniqueItems: true,
      description: 'The key overrides only denials under these mandates; without them it overrides any.',
    }),
  ),
  expires_at: Type.Optional(Type.String({ format: 'date-time', maxLength: 40 })),
}

export const KeyCreate = Type.Object(
  {
    name: Type.Optional(KeyName),
    scopes: Type.Optional(Scopes),
    ...keyBonds,
    idempotency_key: IdempotencyKey,
  },
  { title: 'ApiKeyCreate', additionalProperties: false },
)

export const OwnKeyCreate = Type.Object(
  { name: KeyName, scopes: Scopes, ...keyBonds, idempotency_key: IdempotencyKey },
  { title: 'OwnApiKeyCreate', additionalProperties: false },
)

const keyFields = {
  key_id: Type.String(),
  tenant_id: Type.String(),
  name: Type.String(),
  key_prefix: Type.String(),
  scopes: Type.Array(Type.String()),
  spender: nullableText,
  team: nullableText,
  mandate_ids: nullable(Type.Array(Type.String())),
  created_by: {
    ...nullableText,
    description: 'The key that made it; null for an onboarded key and one of the operator.',
  },
  created_at: Type.String({ format: 'date-time' }),
  expires_at: nullableText,
  revoked_at: nullableText,
  replaced_by: nullableText,
  last_used_at: { ...nullableText, description: 'To about a minute; null when the key was not used yet.' },
}

export const ApiKey = Type.Object(keyFields, { title: 'ApiKey' })
const createdFields = { ...keyFields, api_key: Type.String({ description: 'Shown once; only its hash is kept.' }) }
export const KeyRevoked = Type.Object(
  {
    ...keyFields,
    active_keys_made: Type.Array(Type.String(), {
      description: 'The keys that this one made, directly or through others, and that are still active.',
    }),
  },
  { title: 'ApiKeyRevoked' },
)
export const KeyCreated = Type.Object(createdFields, { title: 'ApiKeyCreated' })
export const KeysQuery = Type.Object({ limit, cursor: cursorParameter('key') }, { additionalProperties: false })
export const KeysResponse = Type.Object({ keys: Type.Array(ApiKey), ...pageFields }, { title: 'ApiKeysResponse' })

export const KeyRotate = Type.Object(
  {
    overlap_seconds: Type.Optional(Type.Integer({ minimum: 0, maximum: 30 * 24 * 60 * 60 })),
    idempotency_key: IdempotencyKey,
  },
  { title: 'ApiKeyRotate', additionalProperties: false },
)
export const KeyRotated = Type.Object({ ...createdFields, replaces: ApiKey }, { title: 'ApiKeyRotated' })

export const TenantParams = Type.Object({ id: Type.String({ maxLength: 64 }) })
export const KeyParams = Type.Object({ key_id: Type.String({ maxLength: 64 }) })

export const Settings = Type.Object(
  {
    self_approval: oneOf(['single_key', 'never'] as const),
  },
  { title: 'TenantSettings', additionalProperties: false },
)
