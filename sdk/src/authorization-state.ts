import type { SignedPayment } from './sign-payment.ts'

/** `authorizationState(address,bytes32)` of EIP-3009. */
const SELECTOR = '0xe94a0102'
const TIMEOUT_MS = 10_000

/** Whether the token contract has taken this payment. Throws when the chain cannot be asked. */
export async function isAuthorizationUsed(
  rpcUrl: string,
  { payer, nonce, asset }: SignedPayment,
  send: typeof fetch,
): Promise<boolean> {
  const data = `${SELECTOR}${payer.slice(2).toLowerCase().padStart(64, '0')}${nonce.slice(2)}`
  const response = await send(rpcUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_call', params: [{ to: asset, data }, 'latest'] }),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  })
  const { result } = (await response.json()) as { result?: unknown }
  if (typeof result !== 'string' || !/^0x[0-9a-f]{64}$/i.test(result))
    throw new Error('The chain did not say whether the payment was used.')
  return BigInt(result) !== 0n
}
