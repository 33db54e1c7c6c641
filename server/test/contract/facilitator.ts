/** The contract of every facilitator. Each adapter's test runs this suite unchanged. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { REASON } from '../../src/adapters/facilitators/reasons.ts'
import type {
  ChainReader,
  ExactPayment,
  Facilitator,
  Hex,
  PaymentTerms,
  SettleResult,
} from '../../src/modules/payments/facilitator.ts'
import type { Clock } from '../../src/platform/clock.ts'
import { createPayer, createTerms, NETWORK, PAY_TO, signPayment } from './payments.ts'

export type FacilitatorWorld = {
  facilitator: Facilitator
  /** The chain that the facilitator settles on. */
  chain: ChainReader
  clock: Clock
  mint(to: Hex, amountMicro: bigint): Promise<unknown>
  close(): Promise<void>
  /** The result of settling a payment outside its validity period, which depends on what the facilitator can know. */
  stateWhen: Record<'expired' | 'about to expire' | 'not valid yet', 'failed' | 'unknown'>
}

const ONE_USDC = 1_000_000n

export function facilitatorContract(name: string, createWorld: () => Promise<FacilitatorWorld>): void {
  describe(`${name} fulfils the facilitator contract`, () => {
    let world: FacilitatorWorld
    const terms = createTerms()
    const signFundedPayment = async (
      options: Partial<Parameters<typeof signPayment>[2]> = {},
      balanceMicro = ONE_USDC,
    ) => {
      const payer = createPayer()
      if (balanceMicro > 0n) await world.mint(payer.address, balanceMicro)
      return signPayment(payer, terms, { clock: world.clock, ...options })
    }
    const isUsed = async (payer: Hex, nonce: Hex) => (await world.chain.authorization(terms.asset, payer, nonce)).used
    const requireSettled = (result: SettleResult) => {
      if (result.state !== 'settled') throw new Error(`${result.state}: ${result.reason}: ${result.message}`)
      return result
    }

    beforeAll(async () => {
      world = await createWorld()
    })
    afterAll(async () => world.close())

    test('it supports exact payments in both versions', async () => {
      const { kinds } = await world.facilitator.supported()
      expect(kinds).toContainEqual(expect.objectContaining({ x402Version: 2, scheme: 'exact', network: NETWORK }))
      expect(kinds).toContainEqual(expect.objectContaining({ x402Version: 1, scheme: 'exact', network: 'base' }))
    })

    test.each([1, 2] as const)(
      'a valid version %i payment is verified, settled and on the chain',
      async (x402Version) => {
        const payment = await signFundedPayment({ x402Version })
        const { from, nonce } = payment.authorization
        const before = await world.chain.balanceOf(terms.asset, PAY_TO)
        expect(await world.facilitator.verify(payment, terms)).toMatchObject({ valid: true, payer: from.toLowerCase() })
        expect(await isUsed(from, nonce)).toBe(false)

        const result = requireSettled(await world.facilitator.settle(payment, terms))
        expect(result).toMatchObject({ payer: from.toLowerCase(), network: NETWORK, amountMicro: terms.amountMicro })
        expect(await world.chain.authorization(terms.asset, from, nonce)).toEqual({
          used: true,
          transaction: result.transaction,
          transfer: {
            from: from.toLowerCase(),
            to: PAY_TO,
            value: terms.amountMicro,
            asset: terms.asset,
            block: expect.any(BigInt),
          },
        })
        expect(await world.chain.balanceOf(terms.asset, PAY_TO)).toBe(before + terms.amountMicro)
        expect(await world.facilitator.verify(payment, terms)).toMatchObject({ valid: false })
      },
    )

    test('settling the same payment repeatedly, at once or later, moves the money once and returns the same result', async () => {
      const payment = await signFundedPayment()
      const before = await world.chain.balanceOf(terms.asset, PAY_TO)
      const results = await Promise.all(Array.from({ length: 20 }, () => world.facilitator.settle(payment, terms)))
      results.push(await world.facilitator.settle(payment, terms))
      const transactions = new Set(results.map((result) => requireSettled(result).transaction))
      expect(transactions.size).toBe(1)
      expect(await world.chain.balanceOf(terms.asset, PAY_TO)).toBe(before + terms.amountMicro)
    })

    test('of forty concurrent payments the funded ones settle and the others fail', async () => {
      const payments = await Promise.all(
        Array.from({ length: 40 }, (_, index) =>
          signFundedPayment({}, index % 4 === 0 ? terms.amountMicro - 1n : ONE_USDC),
        ),
      )
      const results = await Promise.all(payments.map((payment) => world.facilitator.settle(payment, terms)))
      for (const [index, result] of results.entries()) {
        const { from, nonce } = payments[index]!.authorization
        expect(result.state).toBe(index % 4 === 0 ? 'failed' : 'settled')
        expect(await isUsed(from, nonce)).toBe(index % 4 !== 0)
      }
    })

    const now = () => BigInt(Math.floor(world.clock.now().getTime() / 1000))
    type Payment = () => Promise<Parameters<Facilitator['verify']>>
    const signed = (options: Parameters<typeof signFundedPayment>[0], balanceMicro?: bigint): Payment => {
      return async () => [await signFundedPayment(options, balanceMicro), terms]
    }
    const invalidPayments: [string, Payment, string][] = [
      ['a value below the price', signed({ authorization: { value: 9_999n } }), REASON.value],
      ['a value above the price', signed({ authorization: { value: 10_001n } }), REASON.value],
      ['another payee', signed({ authorization: { to: `0x${'11'.repeat(20)}` } }), REASON.recipient],
      ['a signature for another chain', signed({ domain: { chainId: 1 } }), REASON.signature],
      [
        'a signature for another token',
        signed({ domain: { verifyingContract: `0x${'22'.repeat(20)}` } }),
        REASON.signature,
      ],
      ['a signature of another account', signed({ from: createPayer().address }), REASON.signature],
      ['an empty account', signed({}, 0n), REASON.balance],
      [
        'another network',
        async () => [await signFundedPayment(), createTerms({ network: 'eip155:1' })],
        REASON.network,
      ],
    ]
    test.each(invalidPayments)('%s is refused and fails to settle', async (_, createPayment, reason) => {
      const [payment, requestedTerms] = await createPayment()
      await expectRefused(payment, requestedTerms, reason)
      expect(await world.facilitator.settle(payment, requestedTerms)).toMatchObject({ state: 'failed', reason })
      expect(await isUsed(payment.authorization.from, payment.authorization.nonce)).toBe(false)
    })

    test.each([
      ['expired', () => ({ validBefore: now() - 1n }), REASON.validBefore],
      ['about to expire', () => ({ validBefore: now() + 3n }), REASON.validBefore],
      ['not valid yet', () => ({ validAfter: now() + 60n }), REASON.validAfter],
    ] as const)('a payment that is %s is refused and not settled', async (validity, change, reason) => {
      const payment = await signFundedPayment({ authorization: change() })
      await expectRefused(payment, terms, reason)
      expect(await world.facilitator.settle(payment, terms)).toMatchObject({ state: world.stateWhen[validity], reason })
      expect(await isUsed(payment.authorization.from, payment.authorization.nonce)).toBe(false)
    })

    async function expectRefused(payment: ExactPayment, requestedTerms: PaymentTerms, reason: string) {
      const result = await world.facilitator.verify(payment, requestedTerms)
      expect(result).toMatchObject({ valid: false, reason })
      if (!result.valid) expect(result.message).not.toBe('')
    }

    test('the high-s encoding of a signature is refused', async () => {
      const payment = await signFundedPayment()
      const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
      const s = (order - BigInt(`0x${payment.signature.slice(66, 130)}`)).toString(16).padStart(64, '0')
      const v = payment.signature.endsWith('1b') ? '1c' : '1b'
      const signature: Hex = `0x${payment.signature.slice(2, 66)}${s}${v}`
      expect(await world.facilitator.verify({ ...payment, signature }, terms)).toMatchObject({ valid: false })
    })
  })
}
