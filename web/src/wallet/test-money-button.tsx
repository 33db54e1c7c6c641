import { useMutation } from '@tanstack/react-query'
import { ErrorMessage } from '../components/ui.tsx'
import { requestTestMoney } from './paying-client.ts'

const AMOUNT_USDC = 1

export function TestMoneyButton({ address }: { address: string }) {
  const request = useMutation({ mutationFn: () => requestTestMoney(address, AMOUNT_USDC) })
  if (request.isSuccess)
    return (
      <p role="status" className="success-text">
        The account has {AMOUNT_USDC} more test USDC. Press the button again.
      </p>
    )
  return (
    <>
      <button type="button" className="secondary" disabled={request.isPending} onClick={() => request.mutate()}>
        Get {AMOUNT_USDC} test USDC for this account
      </button>
      {request.error && <ErrorMessage>{request.error.message}</ErrorMessage>}
    </>
  )
}
