import { encodeFunctionData, parseAbi, parseSignature } from 'viem'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { USDC } from '../src/adapters/chain/edr.ts'
import { createEmbeddedChain, type EmbeddedChain } from '../src/adapters/chain/embedded-chain.ts'
import type { Authorization, Hex } from '../src/modules/payments/facilitator.ts'
import { createTestClock } from '../test/clock.ts'
import { createMemoryJournal } from '../test/contract/memory-journal.ts'
import { newPayer, randomNonce, signCancel, signPayment, termsOf } from '../test/contract/payments.ts'

const abi = parseAbi([
  'function transfer(address,uint256) returns (bool)',
  'function transferFrom(address,address,uint256) returns (bool)',
  'function decreaseAllowance(address,uint256) returns (bool)',
  'function permit(address,address,uint256,uint256,bytes)',
  'function cancelAuthorization(address,bytes32,bytes)',
  'function transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)',
  'function receiveWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)',
])
const clock = createTestClock()
const payer = newPayer()
const other = newPayer().address
const now = BigInt(Math.floor(clock.now().getTime() / 1000))
const NOBODY: Hex = `0x${'00'.repeat(20)}`
let chain: EmbeddedChain

beforeAll(async () => {
  chain = await createEmbeddedChain({ journal: createMemoryJournal(), clock, log: { info() {}, warn() {} } })
  await chain.mint(payer.address, 1_000_000n)
})
afterAll(async () => chain.close())

/** What the token says to a call, `ok` when nothing. */
const say = async (data: Hex, from: Hex = payer.address) =>
  chain.request('eth_call', [{ from, to: USDC, data }, 'latest']).then(
    () => 'ok',
    (error: Error) => error.message.replace('execution reverted: ', ''),
  )

async function transferCall(changes: Partial<Authorization> = {}, signature?: Hex): Promise<Hex> {
  const signed = await signPayment(payer, termsOf(), { clock, authorization: changes })
  const { from, to, value, validAfter, validBefore, nonce } = signed.authorization
  const { r, s, v } = parseSignature(signature ?? signed.signature)
  const args = [from, to, value, validAfter, validBefore, nonce, Number(v), r, s] as const
  return encodeFunctionData({ abi, functionName: 'transferWithAuthorization', args })
}

test('it refuses in the words of USDC on Base', async () => {
  const words: [string, Hex, Hex?][] = [
    ['ok', await transferCall()],
    ['FiatTokenV2: authorization is not yet valid', await transferCall({ validAfter: now })],
    ['FiatTokenV2: authorization is expired', await transferCall({ validBefore: now })],
    ['FiatTokenV2: invalid signature', await transferCall({}, await newPayer().signMessage({ message: 'another' }))],
    ['ERC20: transfer amount exceeds balance', await transferCall({ value: 1_000_001n })],
    ['ERC20: transfer to the zero address', await transferCall({ to: NOBODY })],
    [
      'ERC20: transfer amount exceeds allowance',
      encodeFunctionData({ abi, functionName: 'transferFrom', args: [payer.address, other, 1n] }),
      other,
    ],
    [
      'ERC20: decreased allowance below zero',
      encodeFunctionData({ abi, functionName: 'decreaseAllowance', args: [other, 1n] }),
    ],
    [
      'FiatTokenV2: permit is expired',
      encodeFunctionData({ abi, functionName: 'permit', args: [payer.address, other, 1n, now - 1n, '0x'] }),
    ],
    [
      'ECRecover: invalid signature length',
      encodeFunctionData({ abi, functionName: 'permit', args: [payer.address, other, 1n, now + 1n, '0x12'] }),
    ],
    [
      "ECRecover: invalid signature 'v' value",
      encodeFunctionData({
        abi,
        functionName: 'permit',
        args: [payer.address, other, 1n, now + 1n, `0x${'01'.repeat(65)}`],
      }),
    ],
    [
      "ECRecover: invalid signature 's' value",
      encodeFunctionData({
        abi,
        functionName: 'permit',
        args: [payer.address, other, 1n, now + 1n, `0x${'ff'.repeat(64)}1b`],
      }),
    ],
  ]
  for (const [expected, data, from] of words) expect(await say(data, from)).toBe(expected)
})

test('a payment to be received can only be taken by its payee', async () => {
  const message = {
    from: payer.address,
    to: other,
    value: 5n,
    validAfter: 0n,
    validBefore: now + 60n,
    nonce: randomNonce(),
  }
  const fields = [
    'from address',
    'to address',
    'value uint256',
    'validAfter uint256',
    'validBefore uint256',
    'nonce bytes32',
  ]
  const types = {
    ReceiveWithAuthorization: fields.map((field) => ({ name: field.split(' ')[0]!, type: field.split(' ')[1]! })),
  }
  const domain = { name: 'USD Coin', version: '2', chainId: 8453, verifyingContract: USDC } as const
  const signature = await payer.signTypedData({ domain, types, primaryType: 'ReceiveWithAuthorization', message })
  const { from, to, value, validAfter, validBefore, nonce } = message
  const data = encodeFunctionData({
    abi,
    functionName: 'receiveWithAuthorization',
    args: [from, to, value, validAfter, validBefore, nonce, signature],
  })
  expect(await say(data)).toBe('FiatTokenV2: caller must be the payee')
  expect(await say(data, other)).toBe('ok')
})

test('only the authorizer cancels, and what is cancelled is used up', async () => {
  const nonce = randomNonce()
  const cancel = (signature: Hex) =>
    encodeFunctionData({ abi, functionName: 'cancelAuthorization', args: [payer.address, nonce, signature] })
  expect(await say(cancel(await signCancel(newPayer(), nonce)))).toBe('FiatTokenV2: invalid signature')
  const data = cancel(await signCancel(payer, nonce))
  const raw = await payer.signTransaction({
    type: 'eip1559',
    chainId: 8453,
    nonce: 0,
    to: USDC,
    data,
    gas: 200_000n,
    maxFeePerGas: 0n,
  })
  await chain.request('eth_sendRawTransaction', [raw])
  expect(await say(data)).toBe('FiatTokenV2: authorization is used or canceled')
  expect(await say(await transferCall({ nonce }))).toBe('FiatTokenV2: authorization is used or canceled')
})
