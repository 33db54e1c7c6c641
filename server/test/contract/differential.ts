/** Verifies the same payments on the same chain with our facilitator and x402's reference: the results must agree. */
import { generatePrivateKey } from 'viem/accounts'
import { expect } from 'vitest'
import { createChainReader } from '../../src/adapters/chain/chain-reader.ts'
import { USDC } from '../../src/adapters/chain/edr.ts'
import { createEmbeddedChain } from '../../src/adapters/chain/embedded-chain.ts'
import { createLocalFacilitator } from '../../src/adapters/facilitators/local-facilitator.ts'
import type { Hex } from '../../src/modules/payments/facilitator.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { createMemoryJournal } from './memory-journal.ts'
import { createPaymentCases } from './payment-cases.ts'
import { NETWORK } from './payments.ts'
import { createReferenceFacilitator } from './reference-facilitator.ts'

/** Uses the system clock, because the reference does. */
export async function compareWithReference(rounds: number): Promise<{ cases: number; valid: number }> {
  const clock = systemClock
  const chain = await createEmbeddedChain({ journal: createMemoryJournal(), clock, log: { info() {}, warn() {} } })
  const { request } = chain
  const allowedFactories: Hex[] = []
  const localFacilitator = createLocalFacilitator({
    request,
    network: NETWORK,
    asset: USDC,
    privateKeys: [generatePrivateKey()],
    clock,
    allowedFactories,
  })
  const paymentCases = await createPaymentCases({ chain, clock, facilitator: localFacilitator })
  allowedFactories.push(paymentCases.factory)
  const referenceFacilitator = createReferenceFacilitator(request, generatePrivateKey(), [paymentCases.factory])
  const reader = createChainReader(chain)

  let cases = 0
  let valid = 0
  for (let round = 0; round < rounds; round++) {
    for (const kind of paymentCases.names) {
      const { payment, terms } = await paymentCases.create(kind)
      const referenceResult = await referenceFacilitator.verify(payment, terms).catch(() => ({ isValid: false }))
      const localResult = await localFacilitator.verify(payment, terms)
      const description = localResult.valid ? kind : `${kind}: ${localResult.reason}`
      expect(localResult.valid, description).toBe(referenceResult.isValid)
      cases += 1
      if (!localResult.valid) continue
      valid += 1
      // A payment that both accept must settle and move exactly the signed amount.
      const result = await localFacilitator.settle(payment, terms)
      expect({ kind, state: result.state }).toEqual({ kind, state: 'settled' })
      const { from, nonce, value } = payment.authorization
      expect(await reader.authorization(terms.asset, from, nonce)).toMatchObject({ used: true, transfer: { value } })
    }
  }
  await chain.close()
  return { cases, valid }
}
