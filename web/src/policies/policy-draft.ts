import type { ApiRequest, Policy } from '@countersign/sdk'
import { isAmount } from '../money-text.ts'
import { findSchemaErrors, isObject, joinPath, type SchemaError } from '../schema/json-schema.ts'
import { requestSchemas } from '../schema/request-schemas.ts'
import { describeRuleProblem } from './rule-fields.ts'

/** The body that is edited, as JSON: the form and the text edit the same one, and fields that neither knows stay in it. */
export type PolicyDraft = Record<string, unknown>

export type PolicyCreate = ApiRequest<'/api/policies', 'post'>['body']
export type PolicyUpdate = ApiRequest<'/api/policies/{id}', 'patch'>['body']
export type Simulation = NonNullable<ApiRequest<'/api/policies/simulate', 'post'>['body']>

export const newDraft = (): PolicyDraft => ({
  name: '',
  identity_type: 'tenant',
  mode: 'enforce',
  constraints: {},
  rules: [],
})

/** What of a policy can be changed. Whom it is for is fixed when it is made. */
export const toDraft = (content: Partial<Policy> & Record<string, unknown>): PolicyDraft => ({
  name: content.name,
  mode: content.mode,
  ...(content.status !== undefined && { status: content.status }),
  audit_trail_required: content.audit_trail_required ?? false,
  selectable: content.selectable ?? false,
  constraints: content.constraints ?? {},
  rules: content.rules ?? [],
})

type Identity = Pick<Policy, 'identity_type' | 'agent_id' | 'identity_id'>

/** The draft with the identity of the policy that it replaces, as a simulation takes it. */
export const toSimulatedPolicy = (draft: PolicyDraft, identity?: Identity): Simulation['policy'] => {
  const { idempotency_key: _, ...content } = draft
  return {
    ...content,
    ...(identity && {
      identity_type: identity.identity_type,
      ...(identity.agent_id !== null && { agent_id: identity.agent_id }),
      ...(identity.identity_id !== null && { identity_id: identity.identity_id }),
    }),
  } as Simulation['policy']
}

/** What keeps a draft from being saved: what the schema says, and what the service checks beyond it. */
export function findDraftProblems(draft: unknown, isNew: boolean): SchemaError[] {
  const schema = requestSchemas[isNew ? 'PolicyCreate' : 'PolicyUpdate']!
  const errors = findSchemaErrors(requestSchemas, schema, draft)
  if (!isObject(draft)) return errors
  const problems = new Map(errors.map((error) => [error.path, error]))
  const add = (path: string, message: string) => problems.set(path, { path, message })
  for (const [name, value] of Object.entries(isObject(draft.constraints) ? draft.constraints : {}))
    if (name.endsWith('_usdc') && name in constraintSchemas && !isAmount(value))
      add(joinPath('constraints', name), 'must be an amount in USDC, such as 0.05, with at most six decimals.')
  for (const [index, rule] of (Array.isArray(draft.rules) ? draft.rules : []).entries()) {
    const problem = isObject(rule) ? describeRuleProblem(rule) : undefined
    const path = joinPath('rules', index)
    if (problem && ![...problems.keys()].some((other) => other.startsWith(path)))
      add(joinPath(path, problem.field), problem.message)
  }
  const hasContent =
    Object.keys(isObject(draft.constraints) ? draft.constraints : {}).length > 0 ||
    (Array.isArray(draft.rules) && draft.rules.length > 0)
  if (!hasContent && problems.size === 0) add('', 'The policy has neither a limit nor a rule yet.')
  return [...problems.values()]
}

export const constraintSchemas = requestSchemas.PolicyCreate!.properties!.constraints!.properties!

export const problemAt = (problems: readonly SchemaError[], path: string): string | undefined => {
  const problem = problems.find(
    (candidate) =>
      candidate.path === path || candidate.path.startsWith(`${path}.`) || candidate.path.startsWith(`${path}[`),
  )
  if (!problem) return undefined
  const inside = problem.path.slice(path.length).replace(/^\./, '')
  return `${inside ? `${inside} ` : 'It '}${problem.message}`
}

export type DraftFormProps = {
  draft: PolicyDraft
  problems: readonly SchemaError[]
  onChange: (draft: PolicyDraft) => void
}
