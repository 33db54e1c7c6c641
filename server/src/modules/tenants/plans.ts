import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export const planNames = ['free', 'builder', 'team', 'enterprise'] as const
export type PlanName = (typeof planNames)[number]
export type Feature = 'predictive_alerts' | 'control_tower' | 'webhooks' | 'policy_simulation' | 'audit_export'
export type PlanLimit = 'webhook_subscriptions' | 'api_keys'
export type Plan = { plan: PlanName; features: Record<Feature, boolean>; limits: Record<PlanLimit, number> }

/** What each plan offers is defined in `data/plans.json`. */
const catalogue: { default: PlanName; plans: Plan[] } = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../../data/plans.json'), 'utf8'),
)

const byName = new Map(catalogue.plans.map((plan) => [plan.plan, plan]))

export const defaultPlan = catalogue.default

export const getPlan = (name: string): Plan => byName.get(name as PlanName) ?? byName.get(catalogue.default)!
