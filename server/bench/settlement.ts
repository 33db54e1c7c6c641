/**
 * Settlement against the x402 reference facilitator, on the same chain in the same process: payments a second and gas a
 * payment, 32 in parallel. Once with eight agents that each have four payments under way, for which the targets are, and
 * once with a different payer for every payment of a batch, which saves the least gas.
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
import { createOfficialFacilitator } from '../test/contract/official-facilitator.ts'
import { NETWORK, newPayer, PAY_TO, signPayment, termsOf } from '../test/contract/payments.ts'

const PARALLEL = 32
const FEW = 8
const WARM_UP = 64
const TARGET_SPEED = 8
const TARGET_GAS = 0.62

const payments = Number(process.argv[2] ?? 640)
const rounds = Number(process.argv[3] ?? 3)

/** Gives the transaction, or undefined when the payment was not settled. */
type Settle = (payment: ExactPayment) => Promise<Hex | undefined>
type Round = { perSecond: number; gas: number; lost: number; transactions: number }

const clock = systemClock
const chain = await createEmbeddedChain({ journal: createMemoryJournal(), clock, log: { info() {}, warn() {} } })
const { request } = chain
const reader = createChainReader(chain)
const terms = termsOf({ maxTimeoutSeconds: 3_600 })
const payers = Array.from({ length: PARALLEL }, newPayer)
for (const payer of payers) await chain.mint(payer.address, 1_000_000_000n)

const own = createLocalFacilitator({
  request,
  network: NETWORK,
  asset: USDC,
  privateKeys: [generatePrivateKey()],
  clock,
})
const official = createOfficialFacilitator(request, generatePrivateKey())
const contenders: Record<'reference' | 'ours', Settle> = {
  async reference(payment) {
    const answer = await official.settle(payment, terms)
    return answer.success ? (answer.transaction as Hex) : undefined
  },
  async ours(payment) {
    const answer = await own.settle(payment, terms)
    return answer.state === 'settled' ? answer.transaction : undefined
  },
}

const signed = (count: number, among: number) =>
  Promise.all(Array.from({ length: count }, (_, index) => signPayment(payers[index % among]!, terms, { clock })))

async function run(settle: Settle, batch: ExactPayment[]): Promise<Round> {
  const before = await reader.balanceOf(USDC, PAY_TO)
  const waiting = [...batch]
  const settled: Hex[] = []
  const startedAt = performance.now()
  const worker = async () => {
    for (let payment = waiting.pop(); payment; payment = waiting.pop()) {
      const transaction = await settle(payment)
      if (transaction) settled.push(transaction)
    }
  }
  await Promise.all(Array.from({ length: PARALLEL }, worker))
  const seconds = (performance.now() - startedAt) / 1000
  const arrived = (await reader.balanceOf(USDC, PAY_TO)) - before
  const transactions = [...new Set(settled)]
  let gas = 0
  for (const hash of transactions) {
    gas += Number(((await request('eth_getTransactionReceipt', [hash])) as RpcReceipt).gasUsed)
  }
  // Lost is what was not reported as settled, or was and did not arrive.
  const lost = Math.max(batch.length - settled.length, batch.length - Number(arrived / terms.amountMicro))
  return {
    perSecond: settled.length / seconds,
    gas: gas / Math.max(settled.length, 1),
    lost,
    transactions: transactions.length,
  }
}

const median = (values: number[]) => values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)]!
const summary = (results: Round[]) => ({
  'payments/s': Math.round(median(results.map((round) => round.perSecond))),
  'gas/payment': Math.round(median(results.map((round) => round.gas))),
  'transactions/round': median(results.map((round) => round.transactions)),
  lost: results.reduce((sum, round) => sum + round.lost, 0),
})

/** The two take turns, so that a busy moment of the machine hits both. */
async function compare(among: number) {
  const results: Record<'reference' | 'ours', Round[]> = { reference: [], ours: [] }
  for (let round = 0; round < rounds; round++) {
    for (const name of ['reference', 'ours'] as const) {
      results[name].push(await run(contenders[name], await signed(payments, among)))
    }
  }
  const [reference, ours] = [summary(results.reference), summary(results.ours)]
  const speed = ours['payments/s'] / reference['payments/s']
  const gas = ours['gas/payment'] / reference['gas/payment']
  console.log(`\n${among} payers, ${PARALLEL} payments in parallel`)
  console.table({ reference, ours })
  console.log(`ours: ${speed.toFixed(1)} times the payments/s, ${gas.toFixed(2)} times the gas, ${ours.lost} lost`)
  return { speed, gas, lost: ours.lost }
}

console.log(`${payments} payments a round, ${rounds} rounds each, signatures by the ${loadCurve().name} library`)
for (const settle of Object.values(contenders)) await run(settle, await signed(WARM_UP, PARALLEL))
const few = await compare(FEW)
const many = await compare(PARALLEL)
await chain.close()
const met = few.speed >= TARGET_SPEED && few.gas <= TARGET_GAS && few.lost + many.lost === 0
console.log(
  `\ntargets (${FEW} payers): at least ${TARGET_SPEED} times, at most ${TARGET_GAS} times, 0 lost: ${met ? 'met' : 'NOT MET'}`,
)
process.exitCode = met ? 0 : 1
