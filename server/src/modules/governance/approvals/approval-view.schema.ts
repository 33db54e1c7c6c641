import { Type } from 'typebox'
import { nullable } from '../../../platform/schema.ts'

/** What the approver of a payment and of a trade is shown alike. */
export const ApprovalRule = Type.Object(
  {
    policy_id: nullable(Type.String()),
    name: nullable(Type.String({ description: 'Of the policy or budget.' })),
    sentence: Type.String(),
    version: Type.Optional(Type.Integer({ description: 'Of the policy, when it asked.' })),
    constraint: Type.Optional(Type.String()),
    limit: Type.Optional(Type.Unknown()),
    asked: Type.Optional(Type.Unknown()),
  },
  { title: 'ApprovalRule', description: 'Which rule asked for the approval, and why.' },
)

export const NormalSpend = Type.Object(
  {
    count_30d: Type.Integer(),
    median_usdc: nullable(Type.Number()),
    max_usdc: nullable(Type.Number()),
    same_30d: Type.Optional(
      Type.Integer({ description: 'Of these, those on the same lane, to the same merchant or in the same symbol.' }),
    ),
  },
  {
    title: 'NormalSpend',
    description:
      'What this spender has paid in the last 30 days: runs, loops and closed pre-authorisations; for a trade, the notionals traded.',
  },
)
