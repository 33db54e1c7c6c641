import { randomBytes } from 'node:crypto'
import { parseTransaction, recoverTransactionAddress, type TransactionSerializedEIP1559 } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { expect, test } from 'vitest'
import { createPayer, createTerms, signPayment } from '../../../test/contract/payments.ts'
import { systemClock } from '../../platform/clock.ts'
import { toBytes, toHex } from '../chain/codec.ts'
import { authorizationDigest, parseSignature, recoverSigner } from './authorization.ts'
import { loadCurve, loadCurveByName } from './secp256k1.ts'
import { signTransaction } from './transaction.ts'

/** The native library is optional: it is not built for every machine. */
const hasNative = (() => {
  try {
    return Boolean(loadCurveByName('native'))
  } catch {
    return false
  }
})()
const CURVES = [...(hasNative ? (['native'] as const) : []), 'wasm', 'javascript'] as const

test.each(CURVES)('the %s library recovers the signer of an authorisation that viem signed', async (name) => {
  const curve = loadCurveByName(name)
  const terms = createTerms()
  for (let round = 0; round < 5; round++) {
    const payer = createPayer()
    const { authorization, signature } = await signPayment(payer, terms, { clock: systemClock })
    const digest = authorizationDigest(authorization, {
      name: 'USD Coin',
      version: '2',
      chainId: 8453,
      asset: terms.asset,
    })
    expect(recoverSigner(curve, digest, parseSignature(signature)!)).toBe(payer.address.toLowerCase())
  }
})

test('the libraries agree on every input, including invalid ones', () => {
  const curves = CURVES.map(loadCurveByName)
  for (let round = 0; round < 50; round++) {
    const [digest, compact] = [randomBytes(32), round % 10 === 0 ? Buffer.alloc(64, round) : randomBytes(64)]
    const [firstResult, ...otherResults] = curves.map((curve) =>
      curve.recover(digest, compact, round % 2 === 0 ? 0 : 1),
    )
    for (const result of otherResults) expect(result).toBe(firstResult)
  }
  const key = randomBytes(32)
  expect(new Set(curves.map((curve) => curve.addressOf(key))).size).toBe(1)
})

test('the chosen library is logged once', async () => {
  // As in a process that has chosen none yet.
  const anew = './secp256k1.ts?anew'
  const { loadCurve } = (await import(anew)) as typeof import('./secp256k1.ts')
  const lines: object[] = []
  const curve = loadCurve({ info: (fields) => void lines.push(fields) })
  loadCurve({ info: (fields) => void lines.push(fields) })
  expect(CURVES).toContain(curve.name)
  expect(lines).toMatchObject([{ secp256k1: curve.name }])
})

test.each([
  ['with an ordinary call', 0, 1_500_000_000n, `0x${'ab'.repeat(200)}`],
  ['without data', 7, 0n, '0x'],
  ['with large data', 300, 1n, `0x${'00'.repeat(70_000)}`],
  ['with one small byte', 128, 255n, '0x05'],
] as const)('viem decodes a transaction %s to the fields that were signed', async (_, nonce, maxFeePerGas, data) => {
  const curve = loadCurve()
  const key = toHex(randomBytes(32))
  const to = createPayer().address.toLowerCase() as `0x${string}`
  const transaction = { chainId: 8453, nonce, maxPriorityFeePerGas: 0n, maxFeePerGas, gas: 21_000n, to, data }
  const raw = signTransaction(curve, transaction, toBytes(key))
  const parsed = parseTransaction(raw as TransactionSerializedEIP1559)
  expect(parsed).toMatchObject({
    chainId: 8453,
    gas: 21_000n,
    to,
    ...(nonce > 0 && { nonce }),
    ...(data !== '0x' && { data }),
  })
  const sender = await recoverTransactionAddress({ serializedTransaction: raw as TransactionSerializedEIP1559 })
  expect(sender).toBe(privateKeyToAccount(key).address)
})
