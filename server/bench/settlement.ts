/**
 * Compares settlement with the x402 reference facilitator, on the same chain in the same process: payments per second and
 * gas per payment, 32 in parallel. Once with eight payers that each have four payments in flight, to which the targets
 * apply, and once with a different payer for every payment of a batch, which saves the least gas.
 * Run: node launch.mjs server/bench/settlement.ts [payments a round] [rounds]
 */
import { generatePrivateKey } from 'viem/accounts'
import { createChainReader } from '../src/adapters/chain/chain-reader.ts'
import { USDC } from '../src/adapters/chain/edr.ts'
import { createEmbeddedChain } from '../src/adapters/chain/embedded-chain.ts'
import type { RpcReceipt } from '../src/adapters/chain/rpc.ts'
import { createLocalFacilitator } from '../src/adapters/facilitators/local-facilitator.ts'
import { loadCurve } from '../src/adapters/facilitators/secp256k1.ts'
import type { ExactPayment, Hex } from '../src/modules/payments/facilitator.ts'
import { systemClock } from '../src/platform/clock.ts'
import { createMemoryJournal } from '../test/contract/memory-journal.ts'
import { createPayer, createTerms, NETWORK, PAY_TO, signPayment } from '../test/contract/payments.ts'
import { createReferenceFacilitator } from '../test/contract/reference-facilitator.ts'

const PARALLEL = 32
const FEW_PAYERS = 8
const WARM_UP = 64
const TARGET_SPEED = 8
const TARGET_GAS = 0.62

const payments = Number(process.argv[2] ?? 640)
const rounds = Number(process.argv[3] ?? 3)

/** Returns the transaction, or undefined when the payment was not settled. */
type Settle = (payment: ExactPayment) => Promise<Hex | undefined>
type Round = { perSecond: number; gas: number; lost: number; transactions: number }

const clock = systemClock
const chain = await createEmbeddedChain({ journal: createMemoryJournal(), clock, log: { info() {}, warn() {} } })
const { request } = chain
const reader = createChainReader(chain)
const terms = createTerms({ maxTimeoutSeconds: 3_600 })
const payers = Array.from({ length: PARALLEL }, createPayer)
for (const payer of payers) await chain.mint(payer.address, 1_000_000_000n)

const localFacilitator = createLocalFacilitator({
  request,
  network: NETWORK,
  asset: USDC,
  privateKeys: [generatePrivateKey()],
  clock,
})
const referenceFacilitator = createReferenceFacilitator(request, generatePrivateKey())
const facilitators: Record<'reference' | 'local', Settle> = {
  async reference(payment) {
    const result = await referenceFacilitator.settle(payment, terms)
    return result.success ? (result.transaction as Hex) : undefined
  },
  async local(payment) {
    const result = await localFacilitator.settle(payment, terms)
    return result.state === 'settled' ? result.transaction : undefined
  },
}

const signPayments = (count: number, payerCount: number) =>
  Promise.all(Array.from({ length: count }, (_, index) => signPayment(payers[index % payerCount]!, terms, { clock })))

async function run(settle: Settle, batch: ExactPayment[]): Promise<Round> {
  const balanceBefore = await reader.balanceOf(USDC, PAY_TO)
  const queue = [...batch]
  const transactionHashes: Hex[] = []
  const startedAt = performance.now()
  const worker = async () => {
    for (let payment = queue.pop(); payment; payment = queue.pop()) {
      const transaction = await settle(payment)
      if (transaction) transactionHashes.push(transaction)
    }
  }
  await Promise.all(Array.from({ length: PARALLEL }, worker))
  const seconds = (performance.now() - startedAt) / 1000
  const receivedMicro = (await reader.balanceOf(USDC, PAY_TO)) - balanceBefore
  const transactions = [...new Set(transactionHashes)]
  let gas = 0
  for (const hash of transactions) {
    gas += Number(((await request('eth_getTransactionReceipt', [hash])) as RpcReceipt).gasUsed)
  }
  // A payment is lost when it was not reported as settled, or was reported but did not arrive.
  const lost = Math.max(
    batch.length - transactionHashes.length,
    batch.length - Number(receivedMicro / terms.amountMicro),
  )
  return {
    perSecond: transactionHashes.length / seconds,
    gas: gas / Math.max(transactionHashes.length, 1),
    lost,
    transactions: transactions.length,
  }
}

const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!
const summarise = (results: Round[]) => ({
  'payments/s': Math.round(median(results.map((round) => round.perSecond))),
  'gas/payment': Math.round(median(results.map((round) => round.gas))),
  'transactions/round': median(results.map((round) => round.transactions)),
  lost: results.reduce((sum, round) => sum + round.lost, 0),
})

/** The facilitators alternate, so that load on the machine affects both. */
async function compare(payerCount: number) {
  const results: Record<'reference' | 'local', Round[]> = { reference: [], local: [] }
  for (let round = 0; round < rounds; round++) {
    for (const name of ['reference', 'local'] as const) {
      results[name].push(await run(facilitators[name], await signPayments(payments, payerCount)))
    }
  }
  const [reference, local] = [summarise(results.reference), summarise(results.local)]
  const speed = local['payments/s'] / reference['payments/s']
  const gas = local['gas/payment'] / reference['gas/payment']
  console.log(`\n${payerCount} payers, ${PARALLEL} payments in parallel`)
  console.table({ reference, local })
  console.log(`local: ${speed.toFixed(1)} times the payments/s, ${gas.toFixed(2)} times the gas, ${local.lost} lost`)
  return { speed, gas, lost: local.lost }
}

console.log(`${payments} payments per round, ${rounds} rounds each, signatures by the ${loadCurve().name} library`)
for (const settle of Object.values(facilitators)) await run(settle, await signPayments(WARM_UP, PARALLEL))
const fewPayers = await compare(FEW_PAYERS)
const manyPayers = await compare(PARALLEL)
await chain.close()
const targetsMet =
  fewPayers.speed >= TARGET_SPEED && fewPayers.gas <= TARGET_GAS && fewPayers.lost + manyPayers.lost === 0
console.log(
  `\ntargets (${FEW_PAYERS} payers): at least ${TARGET_SPEED} times, at most ${TARGET_GAS} times, 0 lost: ${targetsMet ? 'met' : 'NOT MET'}`,
)
process.exitCode = targetsMet ? 0 : 1
