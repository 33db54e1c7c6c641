import { Type } from 'typebox'
import { nullable, nullableText } from '../../platform/schema.ts'
import { defineStep } from '../../platform/sql-step.ts'
import { HoldInput } from '../governance/counters/limit-hold-item.ts'

const amountText = Type.String({ pattern: '^\\d+$' })

/** A counter of another mandate that had no room: the choice of the mandate stands while it has none. */
const CounterNeed = Type.Object({
  scope: Type.String(),
  period: Type.String(),
  amount_micro: Type.Unsafe<bigint | string>(Type.Integer()),
  room: Type.Boolean(),
})

/** A rule result, or a hold, as it is stored. */
const StoredObject = Type.Record(Type.String(), Type.Unknown())

export const admitTradeStep = defineStep(
  'admit_trade',
  Type.Object({
    run_id: Type.String({ format: 'uuid' }),
    tenant_id: Type.String(),
    at: Type.String({ format: 'date-time' }),
    rules_version: amountText,
    holds: Type.Array(HoldInput),
    needs: Type.Array(CounterNeed),
    mandate_id: nullableText,
    policy_results: Type.Array(StoredObject),
  }),
  Type.Object({ holds: Type.Array(StoredObject), policy_results: Type.Array(StoredObject) }),
)

export const settleTradeStep = defineStep(
  'settle_trade',
  Type.Object({ run_id: Type.String({ format: 'uuid' }), spent_micro: nullable(amountText) }),
  Type.Object({}),
)
