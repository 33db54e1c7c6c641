/** What every facilitator promises, whoever it is. An adapter's own test runs this suite over it unchanged. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ChainReader, Facilitator, Hex, SettleResult } from '../../src/modules/payments/facilitator.ts'
import type { Clock } from '../../src/platform/clock.ts'
import { NETWORK, newPayer, PAY_TO, signPayment, termsOf } from './payments.ts'

export type FacilitatorWorld = {
  facilitator: Facilitator
  /** The chain that the facilitator settles on. */
  chain: ChainReader
  clock: Clock
  mint(to: Hex, amountMicro: bigint): Promise<unknown>
  close(): Promise<void>
}

const ONE_USDC = 1_000_000n

export function facilitatorContract(name: string, make: () => Promise<FacilitatorWorld>): void {
  describe(`${name} keeps the facilitator's contract`, () => {
    let world: FacilitatorWorld
    const terms = termsOf()
    const pay = async (options: Partial<Parameters<typeof signPayment>[2]> = {}, balanceMicro = ONE_USDC) => {
      const payer = newPayer()
      if (balanceMicro > 0n) await world.mint(payer.address, balanceMicro)
      return signPayment(payer, terms, { clock: world.clock, ...options })
    }
    const isUsed = async (payer: Hex, nonce: Hex) => (await world.chain.authorization(terms.asset, payer, nonce)).used
    const settledOf = (result: SettleResult) => {
      if (result.state !== 'settled') throw new Error(`${result.state}: ${result.reason}: ${result.message}`)
      return result
    }

    beforeAll(async () => {
      world = await make()
    })
    afterAll(async () => world.close())

    test('it says that it settles exact payments in both versions', async () => {
      const { kinds } = await world.facilitator.supported()
      expect(kinds).toContainEqual(expect.objectContaining({ x402Version: 2, scheme: 'exact', network: NETWORK }))
      expect(kinds).toContainEqual(expect.objectContaining({ x402Version: 1, scheme: 'exact', network: 'base' }))
    })

    test.each([1, 2] as const)(
      'a good version %i payment is valid, settles, and is then on the chain',
      async (x402Version) => {
        const payment = await pay({ x402Version })
        const { from, nonce } = payment.authorization
        const before = await world.chain.balanceOf(terms.asset, PAY_TO)
        expect(await world.facilitator.verify(payment, terms)).toEqual({ valid: true, payer: from.toLowerCase() })
        expect(await isUsed(from, nonce)).toBe(false)

        const result = settledOf(await world.facilitator.settle(payment, terms))
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

    test('settling the same payment again, later or at once, moves the money once and answers the same', async () => {
      const payment = await pay()
      const before = await world.chain.balanceOf(terms.asset, PAY_TO)
      const results = await Promise.all(Array.from({ length: 20 }, () => world.facilitator.settle(payment, terms)))
      results.push(await world.facilitator.settle(payment, terms))
      const transactions = new Set(results.map((result) => settledOf(result).transaction))
      expect(transactions.size).toBe(1)
      expect(await world.chain.balanceOf(terms.asset, PAY_TO)).toBe(before + terms.amountMicro)
    })

    test('of forty payments at once, the good ones settle and the bad ones do not spoil them', async () => {
      const payments = await Promise.all(
        Array.from({ length: 40 }, (_, index) => pay({}, index % 4 === 0 ? terms.amountMicro - 1n : ONE_USDC)),
      )
      const results = await Promise.all(payments.map((payment) => world.facilitator.settle(payment, terms)))
      for (const [index, result] of results.entries()) {
        const { from, nonce } = payments[index]!.authorization
        expect(result.state).toBe(index % 4 === 0 ? 'failed' : 'settled')
        expect(await isUsed(from, nonce)).toBe(index % 4 !== 0)
      }
    })

    const now = () => BigInt(Math.floor(world.clock.now().getTime() / 1000))
    const bad: [string, () => Promise<Parameters<Facilitator['verify']>>, string][] = [
      [
        'a value below the price',
        async () => [await pay({ authorization: { value: 9_999n } }), terms],
        'value_mismatch',
      ],
      [
        'a value above the price',
        async () => [await pay({ authorization: { value: 10_001n } }), terms],
        'value_mismatch',
      ],
      ['another payee', async () => [await pay({ authorization: { to: `0x${'11'.repeat(20)}` } }), terms], 'recipient'],
      [
        'an expired one',
        async () => [await pay({ authorization: { validBefore: now() - 1n } }), terms],
        'valid_before',
      ],
      [
        'one that is about to expire',
        async () => [await pay({ authorization: { validBefore: now() + 3n } }), terms],
        'valid_before',
      ],
      [
        'one that is not valid yet',
        async () => [await pay({ authorization: { validAfter: now() + 60n } }), terms],
        'valid_after',
      ],
      ['a signature for another chain', async () => [await pay({ domain: { chainId: 1 } }), terms], 'signature'],
      [
        'a signature for another token',
        async () => [await pay({ domain: { verifyingContract: `0x${'22'.repeat(20)}` } }), terms],
        'signature',
      ],
      ['a signature of somebody else', async () => [await pay({ from: newPayer().address }), terms], 'signature'],
      ['an empty account', async () => [await pay({}, 0n), terms], 'balance'],
      ['another network', async () => [await pay(), termsOf({ network: 'eip155:1' })], 'network'],
    ]
    test.each(bad)('%s is refused and never settled', async (_, make, reason) => {
      const [payment, asked] = await make()
      expect(await world.facilitator.verify(payment, asked)).toEqual({
        valid: false,
        reason: expect.stringContaining(reason),
        message: expect.stringMatching(/\w/),
      })
      const result = await world.facilitator.settle(payment, asked)
      expect(result.state).not.toBe('settled')
      expect(await isUsed(payment.authorization.from, payment.authorization.nonce)).toBe(false)
    })

    test('the second spelling of a signature is not accepted', async () => {
      const payment = await pay()
      const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
      const s = (order - BigInt(`0x${payment.signature.slice(66, 130)}`)).toString(16).padStart(64, '0')
      const v = payment.signature.endsWith('1b') ? '1c' : '1b'
      const signature: Hex = `0x${payment.signature.slice(2, 66)}${s}${v}`
      expect(await world.facilitator.verify({ ...payment, signature }, terms)).toMatchObject({ valid: false })
    })
  })
}
