import { generatePrivateKey } from 'viem/accounts'
import { createTestClock } from '../../../test/clock.ts'
import { facilitatorContract } from '../../../test/contract/facilitator.ts'
import { NETWORK } from '../../../test/contract/payments.ts'
import { createChainReader } from '../chain/chain-reader.ts'
import { USDC } from '../chain/edr.ts'
import { createEmbeddedChain } from '../chain/embedded-chain.ts'
import { createMemoryJournal } from '../chain/journal.memory.ts'
import { createOwnFacilitator } from './own.ts'

const log = { info() {}, warn() {} }

facilitatorContract('our own facilitator', async () => {
  const clock = createTestClock()
  const { request, mint, close } = await createEmbeddedChain({ journal: createMemoryJournal(), clock, log })
  const privateKeys = [generatePrivateKey(), generatePrivateKey()]
  const facilitator = createOwnFacilitator({ request, network: NETWORK, asset: USDC, privateKeys, clock })
  return { facilitator, chain: createChainReader({ request }), clock, mint, close }
})
