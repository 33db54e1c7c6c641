import type { PartProps } from './account-page.tsx'
import { BudgetsCard } from './budgets-card.tsx'
import { PoliciesCard } from './policies-card.tsx'

export const LimitsPart = ({ me }: PartProps) => (
  <>
    <BudgetsCard me={me} />
    <PoliciesCard me={me} />
  </>
)
