/**
 * x402's reference facilitator over any chain, to compare results and speed with. It counts its account's nonces itself,
 * because with viem's counter it loses settlements as soon as two are sent at once.
 */
import { ExactEvmScheme } from '@x402/evm/exact/facilitator'
import { ExactEvmSchemeV1 } from '@x402/evm/exact/v1/facilitator'
import { createPublicClient, custom, encodeFunctionData } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { base } from 'viem/chains'
import type { ChainRequest } from '../../src/adapters/chain/rpc.ts'
import { buildFacilitatorRequest } from '../../src/adapters/facilitators/facilitator-wire.ts'
import type { ExactPayment, Hex, PaymentTerms } from '../../src/modules/payments/facilitator.ts'

export type ReferenceFacilitator = {
  verify(payment: ExactPayment, terms: PaymentTerms): Promise<{ isValid: boolean; invalidReason?: string }>
  settle(
    payment: ExactPayment,
    terms: PaymentTerms,
  ): Promise<{ success: boolean; transaction: string; errorReason?: string }>
}

/** The signer that the reference schemes need. Transactions are sent one after the other. */
export function createReferenceSigner(request: ChainRequest, key: Hex) {
  const account = privateKeyToAccount(key)
  const transport = custom({ request: ({ method, params }) => request(method, params as unknown[]) }, { retryCount: 0 })
  const client = createPublicClient({ chain: base, transport, pollingInterval: 1, cacheTime: 0 })
  let nonce: number | undefined
  let previousSend: Promise<unknown> = Promise.resolve()

  const send = (to: Hex, data: Hex): Promise<Hex> => {
    const work = async () => {
      nonce ??= await client.getTransactionCount({ address: account.address })
      const gas = await client.estimateGas({ account: account.address, to, data })
      const fees = { maxFeePerGas: 0n, maxPriorityFeePerGas: 0n }
      const raw = await account.signTransaction({ type: 'eip1559', chainId: base.id, nonce, to, data, gas, ...fees })
      const hash = await client.sendRawTransaction({ serializedTransaction: raw })
      nonce += 1
      return hash
    }
    const sending = previousSend.then(work, work)
    previousSend = sending.catch(() => undefined)
    return sending
  }

  type Contract = { address: Hex; abi: readonly unknown[]; functionName: string; args: readonly unknown[] }
  return {
    getAddresses: () => [account.address],
    readContract: (call: unknown) => client.readContract(call as never),
    verifyTypedData: (call: unknown) => client.verifyTypedData(call as never),
    writeContract: (call: Contract) => send(call.address, encodeFunctionData(call as never)),
    sendTransaction: (call: { to: Hex; data: Hex }) => send(call.to, call.data),
    waitForTransactionReceipt: ({ hash }: { hash: Hex }) => client.waitForTransactionReceipt({ hash }),
    getCode: ({ address }: { address: Hex }) => client.getCode({ address }),
  }
}

export function createReferenceFacilitator(
  request: ChainRequest,
  key: Hex,
  factories: Hex[] = [],
): ReferenceFacilitator {
  const signer = createReferenceSigner(request, key)
  const config = { eip6492AllowedFactories: factories }
  const schemes = { 1: new ExactEvmSchemeV1(signer, config), 2: new ExactEvmScheme(signer, config) }
  const toArguments = (payment: ExactPayment, terms: PaymentTerms) => {
    const { paymentPayload, paymentRequirements } = buildFacilitatorRequest(payment, terms)
    return [paymentPayload, paymentRequirements] as [never, never]
  }
  return {
    verify: async (payment, terms) => schemes[payment.x402Version].verify(...toArguments(payment, terms)),
    settle: async (payment, terms) => schemes[payment.x402Version].settle(...toArguments(payment, terms)),
  }
}
