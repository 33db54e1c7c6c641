import { encodeFunctionData, parseAbi } from 'viem'
import { generatePrivateKey } from 'viem/accounts'
import { afterEach, describe, expect, test } from 'vitest'
import { createTestClock } from '../../../test/clock.ts'
import { createMemoryJournal } from '../../../test/contract/memory-journal.ts'
import { NETWORK, newPayer, PAY_TO, signCancel, signPayment, termsOf } from '../../../test/contract/payments.ts'
import { createPaymentCases } from '../../../test/contract/random-payments.ts'
import {
  type ExactPayment,
  FacilitatorUnavailable,
  type Hex,
  type SettleResult,
} from '../../modules/payments/facilitator.ts'
import { createChainReader } from '../chain/chain-reader.ts'
import { USDC } from '../chain/edr.ts'
import { createEmbeddedChain, type EmbeddedChain } from '../chain/embedded-chain.ts'
import { type ChainRequest, ChainUnreachable, RpcError } from '../chain/rpc.ts'
import { createLocalFacilitator } from './local-facilitator.ts'

const opened: EmbeddedChain[] = []
afterEach(async () => {
  for (const chain of opened.splice(0)) await chain.close()
})

type Interference = (method: string, params: readonly unknown[], pass: () => Promise<unknown>) => Promise<unknown>

/** A facilitator between which and its chain a test may stand. */
async function open(options: { receiptTimeoutMs?: number; allowedFactories?: string[] } = {}) {
  const clock = createTestClock()
  const chain = await createEmbeddedChain({ journal: createMemoryJournal(), clock, log: { info() {}, warn() {} } })
  opened.push(chain)
  let interfere: Interference = (_method, _params, pass) => pass()
  const request: ChainRequest = (method, params = []) => interfere(method, params, () => chain.request(method, params))
  const settings = { network: NETWORK, asset: USDC, clock, receiptTimeoutMs: 50, ...options }
  const make = () => createLocalFacilitator({ ...settings, request, privateKeys: [generatePrivateKey()] })
  const terms = termsOf()
  const reader = createChainReader(chain)
  const paid = () => reader.balanceOf(USDC, PAY_TO)
  const pay = async (balanceMicro = 1_000_000n) => {
    const payer = newPayer()
    if (balanceMicro > 0n) await chain.mint(payer.address, balanceMicro)
    return signPayment(payer, terms, { clock })
  }
  const between = (next: Interference) => {
    interfere = next
  }
  return { chain, clock, make, facilitator: make(), terms, reader, paid, pay, between }
}

const isSend = (method: string) => method === 'eth_sendRawTransaction'
const calm: Interference = (_method, _params, pass) => pass()

describe('a settle whose answer is lost', () => {
  test('is settled when the receipt shows it all the same', async () => {
    const { facilitator, terms, pay, between, paid } = await open()
    const payment = await pay()
    between(async (method, _params, pass) => {
      const answer = await pass()
      if (isSend(method)) throw new ChainUnreachable('reset')
      return answer
    })
    expect(await facilitator.settle(payment, terms)).toMatchObject({ state: 'settled' })
    expect(await paid()).toBe(10_000n)
  })

  test('is unknown while the chain is dark, and settled once when it is asked again', async () => {
    const { facilitator, terms, pay, between, paid } = await open()
    const payment = await pay()
    let dark = false
    between(async (method, _params, pass) => {
      if (dark) throw new ChainUnreachable('dark')
      const answer = await pass()
      if (isSend(method)) dark = true
      return answer
    })
    const first = await facilitator.settle(payment, terms)
    between(calm)
    expect(first).toMatchObject({ state: 'unknown' })
    expect(await facilitator.settle(payment, terms)).toMatchObject({ state: 'settled' })
    expect(await paid()).toBe(10_000n)
  })

  test('is unknown when it never arrived; asked again, it is settled, and those behind it too', async () => {
    const { facilitator, terms, pay, between, paid } = await open()
    const payments = [await pay(), await pay(), await pay()] as const
    between(async (method, _params, pass) => {
      if (isSend(method)) throw new ChainUnreachable('lost on the way')
      return pass()
    })
    expect(await facilitator.settle(payments[0], terms)).toMatchObject({ state: 'unknown' })
    between(calm)
    expect(await facilitator.settle(payments[1], terms)).toMatchObject({ state: 'settled' })
    const again = await facilitator.settle(payments[0], terms)
    expect(again).toMatchObject({ state: 'settled' })
    expect(await facilitator.settle(payments[2], terms)).toMatchObject({ state: 'settled' })
    expect(await paid()).toBe(30_000n)
  })

  test('is unknown when the transaction is not mined in time', async () => {
    const { facilitator, terms, pay, between } = await open()
    const payment = await pay()
    between(async (method, _params, pass) => (method === 'eth_getTransactionReceipt' ? null : pass()))
    expect(await facilitator.settle(payment, terms)).toMatchObject({ state: 'unknown', reason: 'settlement_pending' })
  })

  test('is never called failed for a strange error of the node', async () => {
    const { facilitator, terms, pay, between } = await open()
    for (const message of ['internal error', 'upstream timeout', 'rate limited', '']) {
      const payment = await pay()
      between(async (method, _params, pass) => {
        if (isSend(method)) throw new RpcError(-32603, message)
        return pass()
      })
      expect(await facilitator.settle(payment, terms)).toMatchObject({ state: 'unknown' })
      between(calm)
      await facilitator.settle(payment, terms)
    }
  })
})

test('a new process finds what an old one settled, and does not pay twice', async () => {
  const { facilitator, make, terms, pay, paid } = await open()
  const payment = await pay()
  const first = await facilitator.settle(payment, terms)
  expect(await make().settle(payment, terms)).toEqual(first)
  expect(await paid()).toBe(10_000n)
})

test('a payment that somebody else put on the chain meanwhile is settled, with their transaction', async () => {
  const { facilitator, make, terms, pay, between } = await open()
  const payment = await pay()
  const stranger = make()
  let theirs: SettleResult | undefined
  between(async (method, _params, pass) => {
    if (isSend(method)) {
      between(calm)
      theirs = await stranger.settle(payment, terms)
    }
    return pass()
  })
  const ours = await facilitator.settle(payment, terms)
  expect(theirs).toMatchObject({ state: 'settled' })
  expect(ours).toEqual(theirs)
})

test('a payment cancelled between verify and settle has failed', async () => {
  const { chain, clock, facilitator, terms } = await open()
  const payer = newPayer()
  await chain.mint(payer.address, 1_000_000n)
  const payment = await signPayment(payer, terms, { clock })
  expect(await facilitator.verify(payment, terms)).toMatchObject({ valid: true })
  const { nonce } = payment.authorization
  const data = encodeFunctionData({
    abi: parseAbi(['function cancelAuthorization(address,bytes32,bytes)']),
    args: [payer.address, nonce, await signCancel(payer, nonce)],
  })
  const fees = { gas: 200_000n, maxFeePerGas: 0n }
  const raw = await payer.signTransaction({ type: 'eip1559', chainId: 8453, nonce: 0, to: USDC, data, ...fees })
  await chain.request('eth_sendRawTransaction', [raw])
  expect(await facilitator.settle(payment, terms)).toMatchObject({
    state: 'failed',
    reason: expect.stringContaining('nonce'),
  })
})

test('a settled payment stays settled after its time is over, and an unsettled one has failed', async () => {
  const { facilitator, make, terms, pay, clock } = await open()
  const [payment, late] = [await pay(), await pay()]
  const settled = await facilitator.settle(payment, terms)
  clock.advance(10 * 60_000)
  expect(await make().settle(payment, terms)).toEqual(settled)
  expect(await facilitator.settle(late, terms)).toMatchObject({
    state: 'failed',
    reason: expect.stringContaining('valid_before'),
  })
})

test('a payer who spends the money between verify and settle has not paid', async () => {
  const { facilitator, terms, clock, chain } = await open()
  const payer = newPayer()
  await chain.mint(payer.address, 10_000n)
  const [one, two] = [await signPayment(payer, terms, { clock }), await signPayment(payer, terms, { clock })]
  expect([await facilitator.verify(one, terms), await facilitator.verify(two, terms)]).toMatchObject([
    { valid: true },
    { valid: true },
  ])
  const results = await Promise.all([facilitator.settle(one, terms), facilitator.settle(two, terms)])
  expect(results.map((result) => result.state).sort()).toEqual(['failed', 'settled'])
  expect(results.find((result) => result.state === 'failed')).toMatchObject({
    reason: expect.stringContaining('insufficient_balance'),
  })
})

test('one nonce signed for two amounts pays once', async () => {
  const { facilitator, terms, clock, chain, paid } = await open()
  const payer = newPayer()
  await chain.mint(payer.address, 1_000_000n)
  const first = await signPayment(payer, terms, { clock })
  const dearer = termsOf({ amountMicro: 20_000n })
  const second = await signPayment(payer, dearer, { clock, authorization: { nonce: first.authorization.nonce } })
  const results = await Promise.all([facilitator.settle(first, terms), facilitator.settle(second, dearer)])
  expect(results).toMatchObject([
    { state: 'settled' },
    { state: 'failed', reason: expect.stringContaining('nonce_already_used') },
  ])
  expect(await paid()).toBe(10_000n)
})

test('an account without gas money is a failure, and the next payment works when it has some', async () => {
  const { facilitator, terms, pay, between } = await open()
  const payment = await pay()
  between(async (method, _params, pass) => {
    if (isSend(method)) throw new RpcError(-32000, 'insufficient funds for gas * price + value')
    return pass()
  })
  expect(await facilitator.settle(payment, terms)).toMatchObject({ state: 'failed' })
  between(calm)
  expect(await facilitator.settle(payment, terms)).toMatchObject({ state: 'settled' })
})

test('a transaction count that somebody else moved on is read again', async () => {
  const { facilitator, terms, pay, between } = await open()
  await facilitator.settle(await pay(), terms)
  let refusals = 2
  between(async (method, _params, pass) => {
    if (isSend(method) && refusals-- > 0) throw new RpcError(-32000, 'nonce too low')
    return pass()
  })
  expect(await facilitator.settle(await pay(), terms)).toMatchObject({ state: 'settled' })
})

test('a chain that cannot be asked makes verifying unavailable, not invalid, and settling unknown, not failed', async () => {
  const { facilitator, terms, pay, between } = await open()
  const payment = await pay()
  between(() => Promise.reject(new ChainUnreachable('dark')))
  await expect(facilitator.verify(payment, terms)).rejects.toBeInstanceOf(FacilitatorUnavailable)
  expect(await facilitator.settle(payment, terms)).toMatchObject({ state: 'unknown' })
})

test('a hundred payments at once go into a few transactions, and each finds its own transfer', async () => {
  const { facilitator, terms, pay, reader } = await open()
  const payments: ExactPayment[] = []
  for (let count = 0; count < 100; count++) payments.push(await pay())
  const results = await Promise.all(payments.map((payment) => facilitator.settle(payment, terms)))
  const transactions = results.map((result) => (result.state === 'settled' ? result.transaction : result.reason))
  expect(new Set(transactions).size).toBe(2)
  for (const [index, { authorization }] of payments.entries()) {
    expect(await reader.authorization(USDC, authorization.from, authorization.nonce)).toMatchObject({
      transaction: transactions[index],
      transfer: { from: authorization.from.toLowerCase(), value: 10_000n },
    })
  }
  const all = await reader.transfers(transactions[0] as Hex)
  expect(all).toHaveLength(64)
})

test('a wallet that burns gas is refused, and its neighbours do not feel it', async () => {
  const { chain, clock, facilitator, terms, pay } = await open()
  const maker = await createPaymentCases({ chain, clock, facilitator })
  const greedy = await maker.create('contract wallet')
  // The first byte of the test wallet's signature is its mood.
  const signature: Hex = `0x02${greedy.payment.signature.slice(4)}`
  const burning = { ...greedy.payment, signature }
  expect(await facilitator.verify(burning, terms)).toMatchObject({ valid: false })
  const good = [await pay(), await pay()]
  const settle = (payment: ExactPayment) => facilitator.settle(payment, terms)
  const [first, burnt, second] = await Promise.all([settle(good[0]!), settle(burning), settle(good[1]!)])
  expect([first, burnt, second]).toMatchObject([{ state: 'settled' }, { state: 'failed' }, { state: 'settled' }])
})
