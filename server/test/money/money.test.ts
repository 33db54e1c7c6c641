import { afterAll, beforeAll, describe } from 'vitest'
import { escrowTests } from './escrow.tests.ts'
import { ledgerCheckTests } from './ledger-check.tests.ts'
import { settlementTests } from './settlement.tests.ts'
import { walletTests } from './wallets.tests.ts'
import { startWorld, type World } from './world.ts'

/** One service for all of them: the last looks at the books that the others have left. */
let world: World
beforeAll(async () => {
  world = await startWorld({ PAYER_EXPOSURE_USDC: '1' })
})
afterAll(() => world.close())

describe('wallets', () => walletTests(() => world))
describe('escrow and ledger', () => escrowTests(() => world))
describe('settlement', () => settlementTests(() => world))
describe('ledger check', () => ledgerCheckTests(() => world))
