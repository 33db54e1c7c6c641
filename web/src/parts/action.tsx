import { useMutation } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { ACCOUNT, queries } from '../service.ts'
import { Bad } from './parts.tsx'

/** A write of the tenant: it shows that it is under way and why it failed, and brings the page up to date after. */
export const useAction = <Input,>(act: (input: Input) => Promise<unknown>) =>
  useMutation({ mutationFn: act, onSettled: () => queries.invalidateQueries({ queryKey: [ACCOUNT] }) })

export function ActionButton({
  act,
  children,
  className,
}: {
  act: () => Promise<unknown>
  children: ReactNode
  className?: string
}) {
  const action = useAction<void>(act)
  return (
    <>
      <button type="button" className={className} disabled={action.isPending} onClick={() => action.mutate()}>
        {children}
      </button>
      {action.error && <Bad>{action.error.message}</Bad>}
    </>
  )
}
