/**
 * x402-paid runs against the bare reference, 32 payers. Each exchange is the request that gets the 402 and the same
 * request with its payment; payments were signed before by the official client, so the load costs both sides the same.
 */
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { readChallenge } from '../../test/harness.ts'
import { startBenchService } from '../support/bench-service.ts'
import { startChild } from '../support/child.ts'
import { startLoadGenerator } from '../support/load.ts'
import { formatFigure, median } from '../support/report.ts'
import { measureBareCost, measureRunCost, type RunCost } from '../support/run-cost.ts'
import { signExchanges } from '../support/signed-payments.ts'
import { type Measurement, medianCost, medianRatio, totalMs } from './figure.ts'

const PAYERS = 32
/** V8 compiles the functions of a payment until some thousands of them. */
const WARM_UP = 4_800
const USDC = 10_000

export async function measureX402({ rounds, payments }: { rounds: number; payments: number }): Promise<Measurement> {
  const payers = Array.from({ length: PAYERS }, () => privateKeyToAccount(generatePrivateKey()))
  const service = await startBenchService()
  const generator = await startLoadGenerator()
  const task = { task: 'Say 1.', agent_id: 'comedian-v1' }
  const challenge = readChallenge((await service.post('/api/run', task)).headers).accepts[0]
  const tenant = await service.onboard()
  for (const payer of payers) {
    const { status } = await service.post(
      '/api/dev/faucet',
      { address: payer.address, amount_usdc: USDC },
      tenant.headers,
    )
    if (status !== 200) throw new Error(`The faucet returned ${status}.`)
  }
  const sampleBody = await (await service.payer())
    .fetch(`${service.url}/api/run`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(task),
    })
    .then((response) => response.text())
  const reference = await startChild<{ port: number }>('reference-server.ts', {
    payers: payers.map(({ address }) => address),
    usdc: USDC,
    priceMicro: challenge.amount,
    body: sampleBody,
  })
  try {
    const server = { pid: reference.pid, port: reference.ready.port }
    const lost = { ours: 0, reference: 0 }
    /** Money that arrived, in payments: a payment that was answered but did not arrive is lost. */
    const countArrived = async (read: () => Promise<bigint>, count: number, run: () => Promise<RunCost>) => {
      const before = await read()
      const cost = await run()
      const arrived = Number(((await read()) - before) / BigInt(challenge.amount))
      return { cost, lost: count - arrived }
    }
    const runOurs = async (count: number) => {
      const requests = await signExchanges(service.url, payers, count)
      const load = { requests, inFlight: PAYERS, count: requests.length, exchangeLength: 2 }
      const round = await countArrived(
        () => service.balance(challenge.payTo),
        count,
        () => measureRunCost(service, generator, load, 2),
      )
      lost.ours += round.lost
      return round.cost
    }
    const runReference = async (count: number) => {
      const requests = await signExchanges(`http://127.0.0.1:${server.port}`, payers, count)
      const load = { requests, inFlight: PAYERS, count: requests.length, exchangeLength: 2 }
      const round = await countArrived(
        async () => BigInt(await reference.call<string>({ balanceOfPayTo: true })),
        count,
        () => measureBareCost(server, generator, load, 2),
      )
      lost.reference += round.lost
      return round.cost
    }
    await runOurs(WARM_UP)
    await runReference(WARM_UP)
    const [ours, theirs]: [RunCost[], RunCost[]] = [[], []]
    for (let round = 0; round < rounds; round++) {
      ours.push(await runOurs(payments))
      theirs.push(await runReference(payments))
    }
    const figure = (rows: RunCost[], select: (cost: RunCost) => number) => formatFigure(median(rows.map(select)))
    return {
      figures: [
        {
          id: 'x402',
          name: `x402-paid against the bare reference, ${PAYERS} payers, a second`,
          value: medianRatio(ours, theirs, ({ perSecond }) => perSecond),
          bar: { atLeast: 4 },
          detail: `${figure(ours, ({ perSecond }) => perSecond)} against ${figure(theirs, ({ perSecond }) => perSecond)} payments a second; ${figure(ours, totalMs)} against ${figure(theirs, totalMs)} ms of CPU; the load generator took ${figure(ours, ({ clientMs }) => clientMs)} and ${figure(theirs, ({ clientMs }) => clientMs)} ms`,
        },
        {
          id: 'x402-lost',
          name: 'x402 payments lost',
          value: lost.ours,
          bar: { atMost: 0 },
          detail: `of ${rounds * payments + WARM_UP}; the reference lost ${lost.reference}`,
        },
      ],
      costs: [medianCost('x402-paid run', ours), medianCost('bare x402 reference', theirs)],
      skipped: [],
    }
  } finally {
    reference.stop()
    generator.stop()
    await service.stop()
  }
}
