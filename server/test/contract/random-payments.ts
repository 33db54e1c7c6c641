/** Valid payments, and one kind of invalid payment for every known way to be invalid. */
import { readFileSync } from 'node:fs'
import { encodeAbiParameters, encodeDeployData, encodeFunctionData, getContractAddress, parseAbi } from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { createChainReader } from '../../src/adapters/chain/chain-reader.ts'
import { MULTICALL3 } from '../../src/adapters/chain/edr.ts'
import type { EmbeddedChain } from '../../src/adapters/chain/embedded-chain.ts'
import type { RpcReceipt } from '../../src/adapters/chain/rpc.ts'
import type { ExactPayment, Facilitator, Hex, PaymentTerms } from '../../src/modules/payments/facilitator.ts'
import type { Clock } from '../../src/platform/clock.ts'
import { newPayer, type SigningOptions, signPayment, termsOf, withSignature } from './payments.ts'

export type PaymentCase = { kind: string; payment: ExactPayment; terms: PaymentTerms }
type Deps = { chain: EmbeddedChain; clock: Clock; facilitator: Facilitator }

const CURVE_ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
const artifact = (name: string) =>
  JSON.parse(readFileSync(new URL(`../../contracts/${name}.json`, import.meta.url), 'utf8')) as {
    abi: never[]
    bytecode: Hex
  }
const factoryAbi = parseAbi([
  'function deploy(address) returns (address)',
  'function addressOf(address) view returns (address)',
])

/** Deploys the test wallets and returns a factory of test cases. */
export async function createPaymentCases({ chain, clock, facilitator }: Deps) {
  const deployer = privateKeyToAccount(generatePrivateKey())
  let nonce = 0
  const send = async (to: Hex | undefined, data: Hex): Promise<RpcReceipt> => {
    const raw = await deployer.signTransaction({
      type: 'eip1559',
      chainId: 8453,
      nonce: nonce++,
      to,
      data,
      gas: 3_000_000n,
      maxFeePerGas: 0n,
    })
    const hash = await chain.request('eth_sendRawTransaction', [raw])
    const receipt = (await chain.request('eth_getTransactionReceipt', [hash])) as RpcReceipt
    if (receipt.status !== '0x1') throw new Error('The deployment failed.')
    return receipt
  }
  const factory = getContractAddress({ from: deployer.address, nonce: BigInt(nonce) }).toLowerCase() as Hex
  await send(undefined, encodeDeployData({ ...artifact('TestWalletFactory') }))

  const deployment = (owner: Hex) => encodeFunctionData({ abi: factoryAbi, functionName: 'deploy', args: [owner] })
  const walletAddress = async (owner: Hex): Promise<Hex> => {
    const data = encodeFunctionData({ abi: factoryAbi, functionName: 'addressOf', args: [owner] })
    const word = (await chain.request('eth_call', [{ to: factory, data }, 'latest'])) as string
    return `0x${word.slice(-40)}`
  }
  const wrap = (owner: Hex, signature: Hex, through: Hex = factory): Hex => {
    const body = encodeAbiParameters(
      [{ type: 'address' }, { type: 'bytes' }, { type: 'bytes' }],
      [through, deployment(owner), signature],
    )
    return `${body}${'6492'.repeat(16)}`
  }
  const reader = createChainReader(chain)
  const seconds = () => BigInt(Math.floor(clock.now().getTime() / 1000))

  const fund = async (owner: Hex, amountMicro = 1_000_000n) => {
    if ((await reader.balanceOf(termsOf().asset, owner)) < amountMicro) await chain.mint(owner, amountMicro)
  }
  const validPayment = async (
    options: Partial<SigningOptions> = {},
    terms = termsOf(),
    account: PrivateKeyAccount = newPayer(),
  ) => {
    await fund(account.address)
    return signPayment(account, terms, { clock, ...options })
  }
  const replaceSignature = (payment: ExactPayment, signature: Hex, terms = termsOf()) =>
    withSignature(payment.authorization, signature, terms, payment.x402Version)
  /** A test wallet's signature: one byte that selects its behaviour, then its owner's signature. */
  const fromWallet = async (options: {
    behaviour?: string
    deployed: boolean
    wrapped?: boolean
    through?: Hex
    owner?: PrivateKeyAccount
  }) => {
    const owner = newPayer()
    const wallet = await walletAddress(owner.address)
    if (options.deployed) await send(factory, deployment(owner.address))
    await fund(wallet)
    const payment = await signPayment(options.owner ?? owner, termsOf(), { clock, from: wallet })
    const signature: Hex = `0x${options.behaviour ?? '01'}${payment.signature.slice(2)}`
    return replaceSignature(payment, options.wrapped ? wrap(owner.address, signature, options.through) : signature)
  }

  const casesByKind: Record<string, () => Promise<ExactPayment | { payment: ExactPayment; terms: PaymentTerms }>> = {
    valid: () => validPayment(),
    'valid, version 1': () => validPayment({ x402Version: 1 }),
    'exactly the balance': async () => {
      const payer = newPayer()
      await chain.mint(payer.address, 10_000n)
      return signPayment(payer, termsOf(), { clock })
    },
    'one micro short': async () => {
      const payer = newPayer()
      await chain.mint(payer.address, 9_999n)
      return signPayment(payer, termsOf(), { clock })
    },
    'no balance': () => signPayment(newPayer(), termsOf(), { clock }),
    'nothing for nothing': async () => {
      const terms = termsOf({ amountMicro: 0n })
      return { payment: await validPayment({}, terms), terms }
    },
    'value below': () => validPayment({ authorization: { value: 9_999n } }),
    'value above': () => validPayment({ authorization: { value: 10_001n } }),
    'another payee': () => validPayment({ authorization: { to: newPayer().address } }),
    'payee in capitals': async () => {
      const payment = await validPayment()
      return { payment, terms: termsOf({ payTo: `0x${termsOf().payTo.slice(2).toUpperCase()}` }) }
    },
    expired: () => validPayment({ authorization: { validBefore: seconds() - 10n } }),
    'about to expire': () => validPayment({ authorization: { validBefore: seconds() + 2n } }),
    'valid for ever': () => validPayment({ authorization: { validAfter: 0n, validBefore: 2n ** 256n - 1n } }),
    'not valid yet': () => validPayment({ authorization: { validAfter: seconds() + 120n } }),
    'another chain': () => validPayment({ domain: { chainId: 84532 } }),
    'another token': () => validPayment({ domain: { verifyingContract: MULTICALL3 } }),
    'another name': () => validPayment({ domain: { name: 'USDC' } }),
    'terms of another name': async () => {
      const terms = termsOf({ extra: { name: 'USDC', version: '2' } })
      return { payment: await validPayment({}, terms), terms }
    },
    'terms without a name': async () => ({
      payment: await validPayment(),
      terms: termsOf({ extra: { name: '', version: '2' } }),
    }),
    'terms of another network': async () => ({
      payment: await validPayment(),
      terms: termsOf({ network: 'eip155:84532' }),
    }),
    'terms of another scheme': async () => ({
      payment: await validPayment(),
      terms: termsOf({ scheme: 'upto' as 'exact' }),
    }),
    'an asset that is no token': async () => {
      const terms = termsOf({ asset: MULTICALL3 })
      return { payment: await validPayment({}, terms), terms }
    },
    'an asset that is nothing': async () => {
      const terms = termsOf({ asset: newPayer().address })
      return { payment: await validPayment({}, terms), terms }
    },
    "somebody else's signature": () => validPayment({ from: newPayer().address }),
    'one bit flipped': async () => {
      const payment = await validPayment()
      const index = 2 + Math.floor(Math.random() * 128)
      const flippedDigit = (Number.parseInt(payment.signature[index]!, 16) ^ 1).toString(16)
      return replaceSignature(
        payment,
        `${payment.signature.slice(0, index)}${flippedDigit}${payment.signature.slice(index + 1)}` as Hex,
      )
    },
    'v of 0 or 1': async () => {
      const payment = await validPayment()
      return replaceSignature(
        payment,
        `${payment.signature.slice(0, 130)}${payment.signature.endsWith('1b') ? '00' : '01'}` as Hex,
      )
    },
    'the other v': async () => {
      const payment = await validPayment()
      return replaceSignature(
        payment,
        `${payment.signature.slice(0, 130)}${payment.signature.endsWith('1b') ? '1c' : '1b'}` as Hex,
      )
    },
    'high s': async () => {
      const payment = await validPayment()
      const s = (CURVE_ORDER - BigInt(`0x${payment.signature.slice(66, 130)}`)).toString(16).padStart(64, '0')
      return replaceSignature(
        payment,
        `${payment.signature.slice(0, 66)}${s}${payment.signature.endsWith('1b') ? '1c' : '1b'}` as Hex,
      )
    },
    'signature of zeros': async () => replaceSignature(await validPayment(), `0x${'00'.repeat(65)}`),
    'empty signature': async () => replaceSignature(await validPayment(), '0x'),
    'signature of 64 bytes': async () => {
      const payment = await validPayment()
      return replaceSignature(payment, payment.signature.slice(0, 130) as Hex)
    },
    'signature too long': async () => {
      const payment = await validPayment()
      return replaceSignature(payment, `${payment.signature}00`)
    },
    'used before': async () => {
      const payment = await validPayment()
      await facilitator.settle(payment, termsOf())
      return payment
    },
    'same nonce, other payer': async () => {
      const payment = await validPayment()
      await facilitator.settle(payment, termsOf())
      return validPayment({ authorization: { nonce: payment.authorization.nonce } })
    },
    'contract wallet': () => fromWallet({ deployed: true }),
    'contract wallet, not its owner': () => fromWallet({ deployed: true, owner: newPayer() }),
    'contract wallet not deployed': () => fromWallet({ deployed: false }),
    'contract wallet to be deployed': () => fromWallet({ deployed: false, wrapped: true }),
    'contract wallet to be deployed by a stranger': () =>
      fromWallet({ deployed: false, wrapped: true, through: MULTICALL3 }),
    'contract wallet deployed and wrapped': () => fromWallet({ deployed: true, wrapped: true }),
  }
  const kinds = Object.keys(casesByKind)

  return {
    factory,
    names: kinds,
    async create(kind: string): Promise<PaymentCase> {
      const result = await casesByKind[kind]!()
      return 'terms' in result ? { kind, ...result } : { kind, payment: result, terms: termsOf() }
    },
  }
}
