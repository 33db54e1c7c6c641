import { generatePrivateKey } from 'viem/accounts'
import { createTestClock } from '../../../test/clock.ts'
import { facilitatorContract } from '../../../test/contract/facilitator.ts'
import { createMemoryJournal } from '../../../test/contract/memory-journal.ts'
import { NETWORK } from '../../../test/contract/payments.ts'
import { createChainReader } from '../chain/chain-reader.ts'
import { USDC } from '../chain/edr.ts'
import { createEmbeddedChain } from '../chain/embedded-chain.ts'
import { createLocalFacilitator } from './local-facilitator.ts'

const log = { info() {}, warn() {} }

facilitatorContract('the local facilitator', async () => {
  const clock = createTestClock()
  const { request, mint, close } = await createEmbeddedChain({ journal: createMemoryJournal(), clock, log })
  const privateKeys = [generatePrivateKey(), generatePrivateKey()]
  const facilitator = createLocalFacilitator({ request, network: NETWORK, asset: USDC, privateKeys, clock })
  // Before `validBefore` an earlier attempt could still be mined; after it the payment can never settle.
  const stateWhen = { expired: 'failed', 'about to expire': 'unknown', 'not valid yet': 'failed' } as const
  return { facilitator, chain: createChainReader({ request }), clock, mint, close, stateWhen }
})
