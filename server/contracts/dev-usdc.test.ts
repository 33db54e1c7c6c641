import { encodeFunctionData, parseAbi, parseSignature } from 'viem'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { USDC } from '../src/adapters/chain/edr.ts'
import { createEmbeddedChain, type EmbeddedChain } from '../src/adapters/chain/embedded-chain.ts'
import type { Authorization, Hex } from '../src/modules/payments/facilitator.ts'
import { createTestClock } from '../test/clock.ts'
import { createMemoryJournal } from '../test/contract/memory-journal.ts'
import { createPayer, createTerms, randomNonce, signCancel, signPayment } from '../test/contract/payments.ts'

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
const payer = createPayer()
const otherAddress = createPayer().address
const now = BigInt(Math.floor(clock.now().getTime() / 1000))
const ZERO_ADDRESS: Hex = `0x${'00'.repeat(20)}`
let chain: EmbeddedChain

beforeAll(async () => {
  chain = await createEmbeddedChain({ journal: createMemoryJournal(), clock, log: { info() {}, warn() {} } })
  await chain.mint(payer.address, 1_000_000n)
})
afterAll(async () => chain.close())

/** The revert message of a call, or `ok`. */
const simulateCall = async (data: Hex, from: Hex = payer.address) =>
  chain.request('eth_call', [{ from, to: USDC, data }, 'latest']).then(
    () => 'ok',
    (error: Error) => error.message.replace('execution reverted: ', ''),
  )

async function encodeTransfer(changes: Partial<Authorization> = {}, signature?: Hex): Promise<Hex> {
  const signed = await signPayment(payer, createTerms(), { clock, authorization: changes })
  const { from, to, value, validAfter, validBefore, nonce } = signed.authorization
  const { r, s, v } = parseSignature(signature ?? signed.signature)
  const args = [from, to, value, validAfter, validBefore, nonce, Number(v), r, s] as const
  return encodeFunctionData({ abi, functionName: 'transferWithAuthorization', args })
}

test('revert messages are those of USDC on Base', async () => {
  const cases: [string, Hex, Hex?][] = [
    ['ok', await encodeTransfer()],
    ['FiatTokenV2: authorization is not yet valid', await encodeTransfer({ validAfter: now })],
    ['FiatTokenV2: authorization is expired', await encodeTransfer({ validBefore: now })],
    [
      'FiatTokenV2: invalid signature',
      await encodeTransfer({}, await createPayer().signMessage({ message: 'another' })),
    ],
    ['ERC20: transfer amount exceeds balance', await encodeTransfer({ value: 1_000_001n })],
    ['ERC20: transfer to the zero address', await encodeTransfer({ to: ZERO_ADDRESS })],
    [
      'ERC20: transfer amount exceeds allowance',
      encodeFunctionData({ abi, functionName: 'transferFrom', args: [payer.address, otherAddress, 1n] }),
      otherAddress,
    ],
    [
      'ERC20: decreased allowance below zero',
      encodeFunctionData({ abi, functionName: 'decreaseAllowance', args: [otherAddress, 1n] }),
    ],
    [
      'FiatTokenV2: permit is expired',
      encodeFunctionData({ abi, functionName: 'permit', args: [payer.address, otherAddress, 1n, now - 1n, '0x'] }),
    ],
    [
      'ECRecover: invalid signature length',
      encodeFunctionData({ abi, functionName: 'permit', args: [payer.address, otherAddress, 1n, now + 1n, '0x12'] }),
    ],
    [
      "ECRecover: invalid signature 'v' value",
      encodeFunctionData({
        abi,
        functionName: 'permit',
        args: [payer.address, otherAddress, 1n, now + 1n, `0x${'01'.repeat(65)}`],
      }),
    ],
    [
      "ECRecover: invalid signature 's' value",
      encodeFunctionData({
        abi,
        functionName: 'permit',
        args: [payer.address, otherAddress, 1n, now + 1n, `0x${'ff'.repeat(64)}1b`],
      }),
    ],
  ]
  for (const [expected, data, from] of cases) expect(await simulateCall(data, from)).toBe(expected)
})

test('receiveWithAuthorization can only be called by the payee', async () => {
  const message = {
    from: payer.address,
    to: otherAddress,
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
  expect(await simulateCall(data)).toBe('FiatTokenV2: caller must be the payee')
  expect(await simulateCall(data, otherAddress)).toBe('ok')
})

test('only the authorizer can cancel, and a cancelled authorization cannot be used', async () => {
  const nonce = randomNonce()
  const encodeCancel = (signature: Hex) =>
    encodeFunctionData({ abi, functionName: 'cancelAuthorization', args: [payer.address, nonce, signature] })
  expect(await simulateCall(encodeCancel(await signCancel(createPayer(), nonce)))).toBe(
    'FiatTokenV2: invalid signature',
  )
  const data = encodeCancel(await signCancel(payer, nonce))
  const signedTransaction = await payer.signTransaction({
    type: 'eip1559',
    chainId: 8453,
    nonce: 0,
    to: USDC,
    data,
    gas: 200_000n,
    maxFeePerGas: 0n,
  })
  await chain.request('eth_sendRawTransaction', [signedTransaction])
  expect(await simulateCall(data)).toBe('FiatTokenV2: authorization is used or canceled')
  expect(await simulateCall(await encodeTransfer({ nonce }))).toBe('FiatTokenV2: authorization is used or canceled')
})
