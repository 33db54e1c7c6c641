import { x402Client, x402HTTPClient } from '@x402/core/client'
import { ExactEvmScheme } from '@x402/evm'
import type { PrivateKeyAccount } from 'viem/accounts'
import { NETWORK } from '../../test/contract/payments.ts'
import type { LoadRequest } from './load.ts'

/**
 * Paid exchanges for a load: each is the request that gets the 402, and the same request with its payment. The 402 of
 * each is fetched here and the payment signed by the official client, so that the load itself signs nothing and costs
 * the same whatever server it is for.
 */
export async function signExchanges(url: string, payers: PrivateKeyAccount[], count: number): Promise<LoadRequest[]> {
  const clients = payers.map(
    (payer) => new x402HTTPClient(new x402Client().register(NETWORK, new ExactEvmScheme(payer))),
  )
  const exchanges: LoadRequest[] = []
  let next = 0
  await Promise.all(
    clients.map(async (client) => {
      while (next < count) {
        const number = next++
        const body = JSON.stringify({ task: `Say ${Date.now()} ${number}.`, agent_id: 'comedian-v1' })
        const response = await fetch(`${url}/api/run`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body,
        })
        if (response.status !== 402)
          throw new Error(`The unpaid request got ${response.status}: ${await response.text()}`)
        const challenge = client.getPaymentRequiredResponse((name) => response.headers.get(name), await response.json())
        const headers = client.encodePaymentSignatureHeader(await client.createPaymentPayload(challenge))
        const unpaid: LoadRequest = { method: 'POST', path: '/api/run', body }
        exchanges.push({ ...unpaid, expectedStatus: 402 }, { ...unpaid, headers })
      }
    }),
  )
  return exchanges
}
