import { BudgetsCard } from './budgets-card.tsx'
import { PoliciesCard } from './policies-card.tsx'
import type { SectionProps } from './section-props.ts'

export const LimitsSection = ({ me }: SectionProps) => (
  <>
    <BudgetsCard me={me} />
    <PoliciesCard me={me} />
  </>
)
