import { useState } from 'react'
import { ACCOUNT_KEY, queryClient } from '../api.ts'
import type { PolicyDraft } from './policy-draft.ts'
import type { SimulationResult } from './simulation-card.tsx'

export type DraftState = {
  draft: PolicyDraft
  /** The text of the JSON view, where it differs from the draft because it is no JSON yet. */
  text: string | undefined
  /** The version that the draft was made from. */
  baseVersion: number | undefined
  simulation: { of: string; result: SimulationResult; effect: string | undefined } | undefined
}

const DRAFTS_KEY = [ACCOUNT_KEY, 'policies', 'draft']
// Signing out removes drafts with everything else of the account.
queryClient.setQueryDefaults(DRAFTS_KEY, { gcTime: Number.POSITIVE_INFINITY })

/** A draft that survives looking at another page, such as a run that it would have blocked. */
export function useDraft(name: string, initial: () => DraftState) {
  const key = [...DRAFTS_KEY, name]
  const [state, setState] = useState(() => queryClient.getQueryData<DraftState>(key) ?? initial())
  return {
    state,
    update: (change: Partial<DraftState>) =>
      setState((current) => {
        const next = { ...current, ...change }
        queryClient.setQueryData(key, next)
        return next
      }),
    discard: () => {
      queryClient.removeQueries({ queryKey: key })
      setState(initial())
    },
    forget: () => queryClient.removeQueries({ queryKey: key }),
  }
}
