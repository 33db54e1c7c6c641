import { useMutation } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { ACCOUNT_KEY, queryClient } from '../api.ts'
import { ErrorMessage } from './ui.tsx'

/** A mutation of account data; it refetches all account queries when it settles. */
export const useAction = <Input,>(action: (input: Input) => Promise<unknown>) =>
  useMutation({ mutationFn: action, onSettled: () => queryClient.invalidateQueries({ queryKey: [ACCOUNT_KEY] }) })

export function ActionButton({
  action,
  children,
  className,
}: {
  action: () => Promise<unknown>
  children: ReactNode
  className?: string
}) {
  const mutation = useAction<void>(action)
  return (
    <>
      <button type="button" className={className} disabled={mutation.isPending} onClick={() => mutation.mutate()}>
        {children}
      </button>
      {mutation.error && <ErrorMessage>{mutation.error.message}</ErrorMessage>}
    </>
  )
}
