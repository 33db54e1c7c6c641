/** Our facilitator and x402's reference look at the same payments on the same chain, and must agree on every one. */
import { generatePrivateKey } from 'viem/accounts'
import { expect } from 'vitest'
import { createChainReader } from '../../src/adapters/chain/chain-reader.ts'
import { USDC } from '../../src/adapters/chain/edr.ts'
import { createEmbeddedChain } from '../../src/adapters/chain/embedded-chain.ts'
import { createLocalFacilitator } from '../../src/adapters/facilitators/local-facilitator.ts'
import type { Hex } from '../../src/modules/payments/facilitator.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { createMemoryJournal } from './memory-journal.ts'
import { createOfficialFacilitator } from './official-facilitator.ts'
import { NETWORK } from './payments.ts'
import { createPaymentCases } from './random-payments.ts'

/** The reference reads the system's clock, so this chain does too. */
export async function compareWithReference(rounds: number): Promise<{ cases: number; valid: number }> {
  const clock = systemClock
  const chain = await createEmbeddedChain({ journal: createMemoryJournal(), clock, log: { info() {}, warn() {} } })
  const { request } = chain
  const allowedFactories: Hex[] = []
  const own = createLocalFacilitator({
    request,
    network: NETWORK,
    asset: USDC,
    privateKeys: [generatePrivateKey()],
    clock,
    allowedFactories,
  })
  const maker = await createPaymentCases({ chain, clock, facilitator: own })
  allowedFactories.push(maker.factory)
  const official = createOfficialFacilitator(request, generatePrivateKey(), [maker.factory])
  const reader = createChainReader(chain)

  let cases = 0
  let valid = 0
  for (let round = 0; round < rounds; round++) {
    for (const kind of maker.names) {
      const { payment, terms } = await maker.create(kind)
      const theirs = await official.verify(payment, terms).catch(() => ({ isValid: false }))
      const ours = await own.verify(payment, terms)
      expect({ kind, valid: ours.valid, reason: ours.valid ? undefined : ours.reason }).toEqual({
        kind,
        valid: theirs.isValid,
        reason: ours.valid ? undefined : expect.any(String),
      })
      cases += 1
      if (!ours.valid) continue
      valid += 1
      // What both call valid must settle, and move exactly what was signed.
      const result = await own.settle(payment, terms)
      expect({ kind, state: result.state }).toEqual({ kind, state: 'settled' })
      const { from, nonce, value } = payment.authorization
      expect(await reader.authorization(terms.asset, from, nonce)).toMatchObject({ used: true, transfer: { value } })
    }
  }
  await chain.close()
  return { cases, valid }
}
