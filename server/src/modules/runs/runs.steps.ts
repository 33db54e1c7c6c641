import { Type } from 'typebox'
import { defineStep } from '../../platform/sql-step.ts'
import type { AssessmentSummary } from '../governance/assessment.ts'

// These steps have no input schema yet; `steps.test.ts` lists them.
const StoredAnswer = Type.Object({ status: Type.Integer(), body: Type.String(), first: Type.Boolean() })
const First = Type.Object({ first: Type.Boolean() })

export const admitRunStep = defineStep(
  'admit_run',
  Type.Unknown(),
  Type.Object({ run_id: Type.String(), ruling: Type.Unsafe<AssessmentSummary>(Type.Unknown()) }),
)
export const keepRunStep = defineStep('keep_run', Type.Unknown(), Type.Object({}))
export const completeRunStep = defineStep('complete_run', Type.Unknown(), StoredAnswer)
export const admitAndKeepRunStep = defineStep(
  'admit_and_keep_run',
  Type.Unknown(),
  Type.Object({ run_id: Type.String(), ruling: Type.Unsafe<AssessmentSummary>(Type.Unknown()) }),
)
export const keepAndCompleteRunStep = defineStep('keep_and_complete_run', Type.Unknown(), StoredAnswer)
export const abandonRunStep = defineStep('abandon_run', Type.Unknown(), StoredAnswer)
export const noteArrivalStep = defineStep('note_arrival', Type.Unknown(), First)
export const finishRefundStep = defineStep('finish_refund', Type.Unknown(), First)
