/**
 * A process for a crash test to kill: settles payments endlessly and prints each one after it was reported as settled.
 * Takes the PostgreSQL connection as JSON.
 */
import pg from 'pg'
import { generatePrivateKey } from 'viem/accounts'
import { USDC } from '../../src/adapters/chain/edr.ts'
import { createEmbeddedChain } from '../../src/adapters/chain/embedded-chain.ts'
import { createPostgresJournal } from '../../src/adapters/chain/journal.ts'
import { createLocalFacilitator } from '../../src/adapters/facilitators/local-facilitator.ts'
import { systemClock as clock } from '../../src/platform/clock.ts'
import { createPayer, createTerms, NETWORK, signPayment } from './payments.ts'

const WORKERS = 8

const pool = new pg.Pool({ ...(JSON.parse(process.argv[2]!) as pg.PoolConfig), max: 2 })
pool.on('error', () => undefined)
const log = { info() {}, warn() {} }
const chain = await createEmbeddedChain({ journal: createPostgresJournal(pool), clock, log })
const facilitator = createLocalFacilitator({
  request: chain.request,
  network: NETWORK,
  asset: USDC,
  privateKeys: [generatePrivateKey()],
  clock,
})
const terms = createTerms()
const report = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`)

const worker = async () => {
  const payer = createPayer()
  await chain.mint(payer.address, 1_000_000_000n)
  for (;;) {
    const payment = await signPayment(payer, terms, { clock })
    const result = await facilitator.settle(payment, terms)
    const { nonce } = payment.authorization
    if (result.state === 'settled') report({ payer: payer.address, nonce, transaction: result.transaction })
  }
}
await Promise.all(Array.from({ length: WORKERS }, worker))
