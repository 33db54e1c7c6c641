/** Valid and invalid payments, with every kind of invalidity that is known. */
import { readFileSync } from 'node:fs'
import { encodeAbiParameters, encodeDeployData, encodeFunctionData, getContractAddress, parseAbi } from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { createChainReader } from '../../src/adapters/chain/chain-reader.ts'
import { MULTICALL3 } from '../../src/adapters/chain/edr.ts'
import type { EmbeddedChain } from '../../src/adapters/chain/embedded-chain.ts'
import type { RpcReceipt } from '../../src/adapters/chain/rpc.ts'
import type { ExactPayment, Facilitator, Hex, PaymentTerms } from '../../src/modules/payments/facilitator.ts'
import type { Clock } from '../../src/platform/clock.ts'
import { createPayer, createTerms, type SigningOptions, signPayment, withSignature } from './payments.ts'

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

/** Deploys the test wallets and returns a factory of payment cases by name. */
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

  const encodeDeployment = (owner: Hex) =>
    encodeFunctionData({ abi: factoryAbi, functionName: 'deploy', args: [owner] })
  const readWalletAddress = async (owner: Hex): Promise<Hex> => {
    const data = encodeFunctionData({ abi: factoryAbi, functionName: 'addressOf', args: [owner] })
    const word = (await chain.request('eth_call', [{ to: factory, data }, 'latest'])) as string
    return `0x${word.slice(-40)}`
  }
  const wrapEip6492 = (owner: Hex, signature: Hex, viaFactory: Hex = factory): Hex => {
    const body = encodeAbiParameters(
      [{ type: 'address' }, { type: 'bytes' }, { type: 'bytes' }],
      [viaFactory, encodeDeployment(owner), signature],
    )
    return `${body}${'6492'.repeat(16)}`
  }
  const reader = createChainReader(chain)
  const seconds = () => BigInt(Math.floor(clock.now().getTime() / 1000))

  const fund = async (owner: Hex, amountMicro = 1_000_000n) => {
    if ((await reader.balanceOf(createTerms().asset, owner)) < amountMicro) await chain.mint(owner, amountMicro)
  }
  const signValid = async (
    options: Partial<SigningOptions> = {},
    terms = createTerms(),
    account: PrivateKeyAccount = createPayer(),
  ) => {
    await fund(account.address)
    return signPayment(account, terms, { clock, ...options })
  }
  const replaceSignature = (payment: ExactPayment, signature: Hex, terms = createTerms()) =>
    withSignature(payment.authorization, signature, terms, payment.x402Version)
  /** A test wallet's signature: one byte that selects its behaviour, then its owner's signature. */
  const signFromWallet = async (options: {
    behaviour?: string
    deployed: boolean
    wrapped?: boolean
    viaFactory?: Hex
    owner?: PrivateKeyAccount
  }) => {
    const owner = createPayer()
    const wallet = await readWalletAddress(owner.address)
    if (options.deployed) await send(factory, encodeDeployment(owner.address))
    await fund(wallet)
    const signed = await signPayment(options.owner ?? owner, createTerms(), { clock, from: wallet })
    const signature: Hex = `0x${options.behaviour ?? '01'}${signed.signature.slice(2)}`
    return replaceSignature(
      signed,
      options.wrapped ? wrapEip6492(owner.address, signature, options.viaFactory) : signature,
    )
  }

  const kinds: Record<string, () => Promise<ExactPayment | { payment: ExactPayment; terms: PaymentTerms }>> = {
    valid: () => signValid(),
    'valid, version 1': () => signValid({ x402Version: 1 }),
    'exactly the balance': async () => {
      const payer = createPayer()
      await chain.mint(payer.address, 10_000n)
      return signPayment(payer, createTerms(), { clock })
    },
    'one micro short': async () => {
      const payer = createPayer()
      await chain.mint(payer.address, 9_999n)
      return signPayment(payer, createTerms(), { clock })
    },
    'no balance': () => signPayment(createPayer(), createTerms(), { clock }),
    'a price of zero': async () => {
      const terms = createTerms({ amountMicro: 0n })
      return { payment: await signValid({}, terms), terms }
    },
    'value below': () => signValid({ authorization: { value: 9_999n } }),
    'value above': () => signValid({ authorization: { value: 10_001n } }),
    'another payee': () => signValid({ authorization: { to: createPayer().address } }),
    'payee in capitals': async () => {
      const payment = await signValid()
      return { payment, terms: createTerms({ payTo: `0x${createTerms().payTo.slice(2).toUpperCase()}` }) }
    },
    expired: () => signValid({ authorization: { validBefore: seconds() - 10n } }),
    'about to expire': () => signValid({ authorization: { validBefore: seconds() + 2n } }),
    'valid forever': () => signValid({ authorization: { validAfter: 0n, validBefore: 2n ** 256n - 1n } }),
    'not valid yet': () => signValid({ authorization: { validAfter: seconds() + 120n } }),
    'another chain': () => signValid({ domain: { chainId: 84532 } }),
    'another token': () => signValid({ domain: { verifyingContract: MULTICALL3 } }),
    'another name': () => signValid({ domain: { name: 'USDC' } }),
    'terms of another name': async () => {
      const terms = createTerms({ extra: { name: 'USDC', version: '2' } })
      return { payment: await signValid({}, terms), terms }
    },
    'terms without a name': async () => ({
      payment: await signValid(),
      terms: createTerms({ extra: { name: '', version: '2' } }),
    }),
    'terms of another network': async () => ({
      payment: await signValid(),
      terms: createTerms({ network: 'eip155:84532' }),
    }),
    'terms of another scheme': async () => ({
      payment: await signValid(),
      terms: createTerms({ scheme: 'upto' as 'exact' }),
    }),
    'an asset that is not a token': async () => {
      const terms = createTerms({ asset: MULTICALL3 })
      return { payment: await signValid({}, terms), terms }
    },
    'an asset without code': async () => {
      const terms = createTerms({ asset: createPayer().address })
      return { payment: await signValid({}, terms), terms }
    },
    "another account's signature": () => signValid({ from: createPayer().address }),
    'one bit flipped': async () => {
      const payment = await signValid()
      const position = 2 + Math.floor(Math.random() * 128)
      const flippedDigit = (Number.parseInt(payment.signature[position]!, 16) ^ 1).toString(16)
      return replaceSignature(
        payment,
        `${payment.signature.slice(0, position)}${flippedDigit}${payment.signature.slice(position + 1)}` as Hex,
      )
    },
    'v of 0 or 1': async () => {
      const payment = await signValid()
      return replaceSignature(
        payment,
        `${payment.signature.slice(0, 130)}${payment.signature.endsWith('1b') ? '00' : '01'}` as Hex,
      )
    },
    'the other v': async () => {
      const payment = await signValid()
      return replaceSignature(
        payment,
        `${payment.signature.slice(0, 130)}${payment.signature.endsWith('1b') ? '1c' : '1b'}` as Hex,
      )
    },
    'high s': async () => {
      const payment = await signValid()
      const s = (CURVE_ORDER - BigInt(`0x${payment.signature.slice(66, 130)}`)).toString(16).padStart(64, '0')
      return replaceSignature(
        payment,
        `${payment.signature.slice(0, 66)}${s}${payment.signature.endsWith('1b') ? '1c' : '1b'}` as Hex,
      )
    },
    'signature of zeros': async () => replaceSignature(await signValid(), `0x${'00'.repeat(65)}`),
    'empty signature': async () => replaceSignature(await signValid(), '0x'),
    'signature of 64 bytes': async () => {
      const payment = await signValid()
      return replaceSignature(payment, payment.signature.slice(0, 130) as Hex)
    },
    'signature too long': async () => {
      const payment = await signValid()
      return replaceSignature(payment, `${payment.signature}00`)
    },
    'used before': async () => {
      const payment = await signValid()
      await facilitator.settle(payment, createTerms())
      return payment
    },
    'same nonce, other payer': async () => {
      const payment = await signValid()
      await facilitator.settle(payment, createTerms())
      return signValid({ authorization: { nonce: payment.authorization.nonce } })
    },
    'contract wallet': () => signFromWallet({ deployed: true }),
    'contract wallet, not its owner': () => signFromWallet({ deployed: true, owner: createPayer() }),
    'contract wallet not deployed': () => signFromWallet({ deployed: false }),
    'contract wallet to be deployed': () => signFromWallet({ deployed: false, wrapped: true }),
    'contract wallet to be deployed by a factory that is not allowed': () =>
      signFromWallet({ deployed: false, wrapped: true, viaFactory: MULTICALL3 }),
    'contract wallet deployed and wrapped': () => signFromWallet({ deployed: true, wrapped: true }),
  }
  const names = Object.keys(kinds)

  return {
    factory,
    names,
    async create(kind: string): Promise<PaymentCase> {
      const created = await kinds[kind]!()
      return 'terms' in created ? { kind, ...created } : { kind, payment: created, terms: createTerms() }
    },
  }
}
