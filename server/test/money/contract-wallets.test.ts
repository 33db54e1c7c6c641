import { readFileSync } from 'node:fs'
import { encodeAbiParameters, encodeFunctionData, getContractAddress, parseAbi } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Hex } from '../../src/modules/payments/facilitator.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { readConfig } from '../../src/platform/config.ts'
import { createPayer, createTerms, signPayment, withSignature } from '../contract/payments.ts'
import { createReferenceFacilitator } from '../contract/reference-facilitator.ts'
import { readChallenge, startService, type TestService } from '../harness.ts'

/** EIP6492_FACTORIES: who may deploy the wallet of a payer whose signature comes before the wallet exists. */
const factoryArtifact = JSON.parse(
  readFileSync(new URL('../../contracts/TestWalletFactory.json', import.meta.url), 'utf8'),
) as { bytecode: Hex }
const factoryAbi = parseAbi([
  'function deploy(address) returns (address)',
  'function addressOf(address) view returns (address)',
])
const joke = { task: 'Tell me a joke about clocks.', agent_id: 'comedian-v1' }
const PRICE = 10_000n

// The addresses of two equal factories, before they are deployed.
const deployer = privateKeyToAccount(generatePrivateKey())
const [listed, unlisted] = [0n, 1n].map(
  (nonce) => getContractAddress({ from: deployer.address, nonce }).toLowerCase() as Hex,
) as [Hex, Hex]

async function startWithFactories(env: Record<string, string>) {
  const service = await startService({ env })
  for (const nonce of [0, 1]) {
    const raw = await deployer.signTransaction({
      type: 'eip1559',
      chainId: 8453,
      nonce,
      data: factoryArtifact.bytecode,
      gas: 900_000n,
      maxFeePerGas: 0n,
    })
    const hash = await service.rpc('eth_sendRawTransaction', [raw])
    expect((await service.rpc('eth_getTransactionReceipt', [hash])).status).toBe('0x1')
  }
  return service
}

/** A payment from a funded wallet that its factory has not deployed yet. */
async function payFromUndeployedWallet(service: TestService, factory: Hex, { signer = createPayer() } = {}) {
  const owner = createPayer()
  const data = encodeFunctionData({ abi: factoryAbi, functionName: 'addressOf', args: [owner.address] })
  const wallet: Hex = `0x${(await service.rpc('eth_call', [{ to: factory, data }, 'latest'])).slice(-40)}`
  await service.post('/api/dev/faucet', { address: wallet, amount_usdc: 1 })
  const challenge = readChallenge((await service.post('/api/run', joke)).headers)
  const [accepted] = challenge.accepts
  const terms = createTerms({ amountMicro: BigInt(accepted.amount), payTo: accepted.payTo })
  const sign = async (account = owner) => {
    const signed = await signPayment(account, terms, { clock: systemClock, from: wallet })
    const deployment = encodeFunctionData({ abi: factoryAbi, functionName: 'deploy', args: [owner.address] })
    const body = encodeAbiParameters(
      [{ type: 'address' }, { type: 'bytes' }, { type: 'bytes' }],
      // The wallet's signature: a byte that selects its behaviour, then its owner's signature.
      [factory, deployment, `0x01${signed.signature.slice(2)}`],
    )
    return withSignature(signed.authorization, `${body}${'6492'.repeat(16)}`, terms)
  }
  const payment = await sign()
  const forged = await sign(signer)
  const pay = ({ payload } = payment) =>
    service.post('/api/run', joke, {
      'payment-signature': Buffer.from(
        JSON.stringify({ ...(payload as object), accepted, resource: challenge.resource }),
      ).toString('base64'),
    })
  return {
    wallet,
    pay,
    payForged: () => pay(forged),
    payment,
    forged,
    terms,
    /** As other sellers ask our facilitator. */
    verify: async () =>
      (
        await service.post('/facilitator/verify', {
          x402Version: 2,
          paymentPayload: payment.payload,
          paymentRequirements: (payment.payload as { accepted: object }).accepted,
        })
      ).body,
    code: () => service.rpc('eth_getCode', [wallet, 'latest']) as Promise<string>,
    spent: async () => 1_000_000n - (await service.balance(wallet)),
  }
}

const reference = (service: TestService, factories: Hex[]) =>
  createReferenceFacilitator((method, params = []) => service.rpc(method, [...params]), generatePrivateKey(), factories)

async function expectRefused(service: TestService, factory: Hex) {
  const wallet = await payFromUndeployedWallet(service, factory)
  const { status, body, headers } = await wallet.pay()
  expect([status, body.reason]).toEqual([402, 'eip6492_factory_not_allowed'])
  expect(readChallenge(headers).error).toBe('eip6492_factory_not_allowed')
  expect(body.message).toBe(`Wallets are not deployed through ${factory} here. Deploy the wallet first, then pay.`)
  expect(await wallet.verify()).toMatchObject({ isValid: false, invalidReason: 'eip6492_factory_not_allowed' })
  expect([await wallet.code(), await wallet.spent()]).toEqual(['0x', 0n])
  return wallet
}

describe('with the setting closed, as it is by default', () => {
  let service: TestService
  beforeAll(async () => {
    service = await startWithFactories({})
  })
  afterAll(() => service?.close())

  test('a signature of a wallet that is not deployed is refused, and nothing is deployed or taken', async () => {
    const wallet = await expectRefused(service, listed)
    expect((await reference(service, []).verify(wallet.payment, wallet.terms)).isValid).toBe(false)
  })
})

describe('with one factory in the list', () => {
  let service: TestService
  beforeAll(async () => {
    // The list is compared without regard to capitals.
    service = await startWithFactories({ EIP6492_FACTORIES: `0x${listed.slice(2).toUpperCase()}` })
  })
  afterAll(() => service?.close())

  test('a wallet of that factory is deployed and pays, once, as the reference judges it', async () => {
    const wallet = await payFromUndeployedWallet(service, listed)
    expect((await reference(service, [listed]).verify(wallet.payment, wallet.terms)).isValid).toBe(true)
    expect(await wallet.verify()).toMatchObject({ isValid: true })
    expect(await wallet.code()).toBe('0x')
    const paid = await wallet.pay()
    expect(paid.status, paid.text).toBe(200)
    expect(paid.body).toMatchObject({ status: 'completed', settlement: { status: 'settled' } })
    expect((await wallet.code()).length).toBeGreaterThan(2)
    expect(await wallet.spent()).toBe(PRICE)
    expect((await wallet.pay()).text).toBe(paid.text)
    expect(await wallet.spent()).toBe(PRICE)
  })

  test('a signature of somebody else for that wallet is refused, as by the reference, and the wallet stays undeployed', async () => {
    const wallet = await payFromUndeployedWallet(service, listed)
    expect((await reference(service, [listed]).verify(wallet.forged, wallet.terms)).isValid).toBe(false)
    expect((await wallet.payForged()).status).toBe(402)
    expect([await wallet.code(), await wallet.spent()]).toEqual(['0x', 0n])
  })

  test('an equal factory that is not in the list is refused, and nothing is deployed or taken', async () => {
    const wallet = await expectRefused(service, unlisted)
    expect((await reference(service, [listed]).verify(wallet.payment, wallet.terms)).isValid).toBe(false)
  })
})

test('a list with something that is no address stops the start and names the setting', () => {
  expect(() => readConfig({ EIP6492_FACTORIES: `${listed},factory` })).toThrow(/EIP6492_FACTORIES/)
})
