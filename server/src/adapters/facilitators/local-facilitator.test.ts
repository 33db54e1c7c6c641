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

facilitatorContract('our own facilitator', async () => {
  const clock = createTestClock()
  const { request, mint, close } = await createEmbeddedChain({ journal: createMemoryJournal(), clock, log })
  const privateKeys = [generatePrivateKey(), generatePrivateKey()]
  const facilitator = createLocalFacilitator({ request, network: NETWORK, asset: USDC, privateKeys, clock })
  return { facilitator, chain: createChainReader({ request }), clock, mint, close }
})
