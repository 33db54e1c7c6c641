import { encodeFunctionData, parseAbi } from 'viem'
import { generatePrivateKey } from 'viem/accounts'
import { afterEach, describe, expect, test } from 'vitest'
import { createTestClock } from '../../../test/clock.ts'
import { createMemoryJournal } from '../../../test/contract/memory-journal.ts'
import { createPaymentCases } from '../../../test/contract/payment-cases.ts'
import { createPayer, createTerms, NETWORK, PAY_TO, signCancel, signPayment } from '../../../test/contract/payments.ts'
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

const openChains: EmbeddedChain[] = []
afterEach(async () => {
  for (const chain of openChains.splice(0)) await chain.close()
})

type Interference = (method: string, params: readonly unknown[], pass: () => Promise<unknown>) => Promise<unknown>

/** A facilitator whose chain requests a test can intercept. */
async function openFacilitator(options: { receiptTimeoutMs?: number; allowedFactories?: string[] } = {}) {
  const clock = createTestClock()
  const chain = await createEmbeddedChain({ journal: createMemoryJournal(), clock, log: { info() {}, warn() {} } })
  openChains.push(chain)
  let interfere: Interference = (_method, _params, pass) => pass()
  const request: ChainRequest = (method, params = []) => interfere(method, params, () => chain.request(method, params))
  const settings = { network: NETWORK, asset: USDC, clock, receiptTimeoutMs: 50, ...options }
  const createFacilitator = () => createLocalFacilitator({ ...settings, request, privateKeys: [generatePrivateKey()] })
  const terms = createTerms()
  const reader = createChainReader(chain)
  const readPayeeBalance = () => reader.balanceOf(USDC, PAY_TO)
  const signFundedPayment = async (balanceMicro = 1_000_000n) => {
    const payer = createPayer()
    if (balanceMicro > 0n) await chain.mint(payer.address, balanceMicro)
    return signPayment(payer, terms, { clock })
  }
  const setInterference = (next: Interference) => {
    interfere = next
  }
  return {
    chain,
    clock,
    createFacilitator,
    facilitator: createFacilitator(),
    terms,
    reader,
    readPayeeBalance,
    signFundedPayment,
    setInterference,
  }
}

const isSend = (method: string) => method === 'eth_sendRawTransaction'
const passThrough: Interference = (_method, _params, pass) => pass()

describe('a settle whose response is lost', () => {
  test('is settled when the receipt is found', async () => {
    const { facilitator, terms, signFundedPayment, setInterference, readPayeeBalance } = await openFacilitator()
    const payment = await signFundedPayment()
    setInterference(async (method, _params, pass) => {
      const answer = await pass()
      if (isSend(method)) throw new ChainUnreachable('reset')
      return answer
    })
    expect(await facilitator.settle(payment, terms)).toMatchObject({ state: 'settled' })
    expect(await readPayeeBalance()).toBe(10_000n)
  })

  test('is unknown while the chain is unreachable, and is settled once on retry', async () => {
    const { facilitator, terms, signFundedPayment, setInterference, readPayeeBalance } = await openFacilitator()
    const payment = await signFundedPayment()
    let unreachable = false
    setInterference(async (method, _params, pass) => {
      if (unreachable) throw new ChainUnreachable('unreachable')
      const answer = await pass()
      if (isSend(method)) unreachable = true
      return answer
    })
    const first = await facilitator.settle(payment, terms)
    setInterference(passThrough)
    expect(first).toMatchObject({ state: 'unknown' })
    expect(await facilitator.settle(payment, terms)).toMatchObject({ state: 'settled' })
    expect(await readPayeeBalance()).toBe(10_000n)
  })

  test('is unknown when the transaction never arrived; a retry settles it, and later payments settle too', async () => {
    const { facilitator, terms, signFundedPayment, setInterference, readPayeeBalance } = await openFacilitator()
    const payments = [await signFundedPayment(), await signFundedPayment(), await signFundedPayment()] as const
    setInterference(async (method, _params, pass) => {
      if (isSend(method)) throw new ChainUnreachable('lost on the way')
      return pass()
    })
    expect(await facilitator.settle(payments[0], terms)).toMatchObject({ state: 'unknown' })
    setInterference(passThrough)
    expect(await facilitator.settle(payments[1], terms)).toMatchObject({ state: 'settled' })
    const retried = await facilitator.settle(payments[0], terms)
    expect(retried).toMatchObject({ state: 'settled' })
    expect(await facilitator.settle(payments[2], terms)).toMatchObject({ state: 'settled' })
    expect(await readPayeeBalance()).toBe(30_000n)
  })

  test('is unknown when the transaction is not mined in time', async () => {
    const { facilitator, terms, signFundedPayment, setInterference } = await openFacilitator()
    const payment = await signFundedPayment()
    setInterference(async (method, _params, pass) => (method === 'eth_getTransactionReceipt' ? null : pass()))
    expect(await facilitator.settle(payment, terms)).toMatchObject({ state: 'unknown', reason: 'settlement_pending' })
  })

  test('is not failed because of an unrecognised node error', async () => {
    const { facilitator, terms, signFundedPayment, setInterference } = await openFacilitator()
    for (const message of ['internal error', 'upstream timeout', 'rate limited', '']) {
      const payment = await signFundedPayment()
      setInterference(async (method, _params, pass) => {
        if (isSend(method)) throw new RpcError(-32603, message)
        return pass()
      })
      expect(await facilitator.settle(payment, terms)).toMatchObject({ state: 'unknown' })
      setInterference(passThrough)
      await facilitator.settle(payment, terms)
    }
  })
})

test('a new process finds a payment that an earlier process settled, and does not pay twice', async () => {
  const { facilitator, createFacilitator, terms, signFundedPayment, readPayeeBalance } = await openFacilitator()
  const payment = await signFundedPayment()
  const first = await facilitator.settle(payment, terms)
  expect(await createFacilitator().settle(payment, terms)).toEqual(first)
  expect(await readPayeeBalance()).toBe(10_000n)
})

test('a payment that another sender submitted meanwhile is settled, with that transaction', async () => {
  const { facilitator, createFacilitator, terms, signFundedPayment, setInterference } = await openFacilitator()
  const payment = await signFundedPayment()
  const otherFacilitator = createFacilitator()
  let otherResult: SettleResult | undefined
  setInterference(async (method, _params, pass) => {
    if (isSend(method)) {
      setInterference(passThrough)
      otherResult = await otherFacilitator.settle(payment, terms)
    }
    return pass()
  })
  const ownResult = await facilitator.settle(payment, terms)
  expect(otherResult).toMatchObject({ state: 'settled' })
  expect(ownResult).toEqual(otherResult)
})

test('a payment that is cancelled between verify and settle fails', async () => {
  const { chain, clock, facilitator, terms } = await openFacilitator()
  const payer = createPayer()
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
    reason: 'invalid_exact_evm_nonce_already_used',
  })
})

test('after validBefore a settled payment stays settled, and an unsettled one fails', async () => {
  const { facilitator, createFacilitator, terms, signFundedPayment, clock } = await openFacilitator()
  const [payment, unsettledPayment] = [await signFundedPayment(), await signFundedPayment()]
  const settled = await facilitator.settle(payment, terms)
  clock.advance(10 * 60_000)
  expect(await createFacilitator().settle(payment, terms)).toEqual(settled)
  expect(await facilitator.settle(unsettledPayment, terms)).toMatchObject({
    state: 'failed',
    reason: 'invalid_exact_evm_payload_authorization_valid_before',
  })
})

test('a payment fails when the payer spends the money between verify and settle', async () => {
  const { facilitator, terms, clock, chain } = await openFacilitator()
  const payer = createPayer()
  await chain.mint(payer.address, 10_000n)
  const [firstPayment, secondPayment] = [
    await signPayment(payer, terms, { clock }),
    await signPayment(payer, terms, { clock }),
  ]
  expect([await facilitator.verify(firstPayment, terms), await facilitator.verify(secondPayment, terms)]).toMatchObject(
    [{ valid: true }, { valid: true }],
  )
  const results = await Promise.all([facilitator.settle(firstPayment, terms), facilitator.settle(secondPayment, terms)])
  expect(results.map((result) => result.state).sort()).toEqual(['failed', 'settled'])
  expect(results.find((result) => result.state === 'failed')).toMatchObject({
    reason: 'invalid_exact_evm_insufficient_balance',
  })
})

test('one nonce signed for two amounts settles once', async () => {
  const { facilitator, terms, clock, chain, readPayeeBalance } = await openFacilitator()
  const payer = createPayer()
  await chain.mint(payer.address, 1_000_000n)
  const first = await signPayment(payer, terms, { clock })
  const higherTerms = createTerms({ amountMicro: 20_000n })
  const second = await signPayment(payer, higherTerms, { clock, authorization: { nonce: first.authorization.nonce } })
  const results = await Promise.all([facilitator.settle(first, terms), facilitator.settle(second, higherTerms)])
  expect(results).toMatchObject([
    { state: 'settled' },
    { state: 'failed', reason: 'invalid_exact_evm_nonce_already_used' },
  ])
  expect(await readPayeeBalance()).toBe(10_000n)
})

test('settling fails while the sender lacks gas money, and works once it has some', async () => {
  const { facilitator, terms, signFundedPayment, setInterference } = await openFacilitator()
  const payment = await signFundedPayment()
  setInterference(async (method, _params, pass) => {
    if (isSend(method)) throw new RpcError(-32000, 'insufficient funds for gas * price + value')
    return pass()
  })
  expect(await facilitator.settle(payment, terms)).toMatchObject({ state: 'failed' })
  setInterference(passThrough)
  expect(await facilitator.settle(payment, terms)).toMatchObject({ state: 'settled' })
})

test('a refused retry is unknown, because the earlier attempt may still be mined', async () => {
  const { facilitator, createFacilitator, terms, signFundedPayment, setInterference } = await openFacilitator()
  const payment = await signFundedPayment(0n)
  expect(await facilitator.settle(payment, terms, true)).toMatchObject({
    state: 'unknown',
    reason: 'invalid_exact_evm_insufficient_balance',
  })
  expect(await facilitator.settle(payment, terms)).toMatchObject({ state: 'failed' })
  setInterference(async (method, _params, pass) => {
    if (isSend(method)) throw new RpcError(-32000, 'insufficient funds for gas * price + value')
    return pass()
  })
  expect(await createFacilitator().settle(await signFundedPayment(), terms, true)).toMatchObject({ state: 'unknown' })
})

test('a stale transaction count is read again', async () => {
  const { facilitator, terms, signFundedPayment, setInterference } = await openFacilitator()
  await facilitator.settle(await signFundedPayment(), terms)
  let refusals = 2
  setInterference(async (method, _params, pass) => {
    if (isSend(method) && refusals-- > 0) throw new RpcError(-32000, 'nonce too low')
    return pass()
  })
  expect(await facilitator.settle(await signFundedPayment(), terms)).toMatchObject({ state: 'settled' })
})

test('with an unreachable chain verify is unavailable, not invalid, and settle is unknown, not failed', async () => {
  const { facilitator, terms, signFundedPayment, setInterference } = await openFacilitator()
  const payment = await signFundedPayment()
  setInterference(() => Promise.reject(new ChainUnreachable('unreachable')))
  await expect(facilitator.verify(payment, terms)).rejects.toBeInstanceOf(FacilitatorUnavailable)
  expect(await facilitator.settle(payment, terms)).toMatchObject({ state: 'unknown' })
})

test('a hundred concurrent payments share two transactions, and each is matched with its own transfer', async () => {
  const { facilitator, terms, signFundedPayment, reader } = await openFacilitator()
  const payments: ExactPayment[] = []
  for (let count = 0; count < 100; count++) payments.push(await signFundedPayment())
  const results = await Promise.all(payments.map((payment) => facilitator.settle(payment, terms)))
  const transactions = results.map((result) => (result.state === 'settled' ? result.transaction : result.reason))
  expect(new Set(transactions).size).toBe(2)
  for (const [index, { authorization }] of payments.entries()) {
    expect(await reader.authorization(USDC, authorization.from, authorization.nonce)).toMatchObject({
      transaction: transactions[index],
      transfer: { from: authorization.from.toLowerCase(), value: 10_000n },
    })
  }
  const transfers = await reader.transfers(transactions[0] as Hex)
  expect(transfers).toHaveLength(64)
})

test('a contract wallet that uses up the gas is refused, and other payments are not affected', async () => {
  const { chain, clock, facilitator, terms, signFundedPayment } = await openFacilitator()
  const cases = await createPaymentCases({ chain, clock, facilitator })
  const walletCase = await cases.create('contract wallet')
  // The first byte of the test wallet's signature selects its behaviour.
  const signature: Hex = `0x02${walletCase.payment.signature.slice(4)}`
  const burningPayment = { ...walletCase.payment, signature }
  expect(await facilitator.verify(burningPayment, terms)).toMatchObject({ valid: false })
  const validPayments = [await signFundedPayment(), await signFundedPayment()]
  const settle = (payment: ExactPayment) => facilitator.settle(payment, terms)
  const [first, burningResult, second] = await Promise.all([
    settle(validPayments[0]!),
    settle(burningPayment),
    settle(validPayments[1]!),
  ])
  expect([first, burningResult, second]).toMatchObject([
    { state: 'settled' },
    { state: 'failed' },
    { state: 'settled' },
  ])
})

test('payments that are verified together share calls, and each gets the verdict it gets alone', async () => {
  const { facilitator, createFacilitator, terms, clock, chain, signFundedPayment, setInterference } =
    await openFacilitator()
  const rich = createPayer()
  await chain.mint(rich.address, terms.amountMicro)
  const settled = await signFundedPayment()
  expect(await facilitator.settle(settled, terms)).toMatchObject({ state: 'settled' })
  const payments = [
    ...(await Promise.all(Array.from({ length: 12 }, () => signFundedPayment()))),
    await signFundedPayment(0n),
    settled,
    // Enough for either of the two, which are verified without regard to each other.
    await signPayment(rich, terms, { clock }),
    await signPayment(rich, terms, { clock }),
  ]
  let calls = 0
  setInterference((method, _params, pass) => {
    if (method === 'eth_call') calls += 1
    return pass()
  })
  const together = await Promise.all(payments.map((payment) => facilitator.verify(payment, terms)))
  expect(calls).toBeLessThanOrEqual(4)
  const alone = []
  for (const payment of payments) alone.push(await createFacilitator().verify(payment, terms))
  expect(together).toEqual(alone)
  expect(together.map((verdict) => verdict.valid)).toEqual([...Array(12).fill(true), false, false, true, true])
})

test('when a call for many payments fails, each is verified alone', async () => {
  const { facilitator, terms, signFundedPayment, setInterference } = await openFacilitator()
  const payments = await Promise.all(Array.from({ length: 5 }, () => signFundedPayment()))
  let failed = false
  setInterference((method, _params, pass) => {
    if (method !== 'eth_call' || failed) return pass()
    failed = true
    return Promise.reject(new RpcError(-32000, 'out of gas'))
  })
  const verdicts = await Promise.all(payments.map((payment) => facilitator.verify(payment, terms)))
  expect([failed, ...verdicts.map((verdict) => verdict.valid)]).toEqual([true, true, true, true, true, true])
})
