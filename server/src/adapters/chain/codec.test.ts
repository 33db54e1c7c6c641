import { decodeFunctionData, encodeErrorResult, encodeFunctionData, encodeFunctionResult, parseAbi } from 'viem'
import { expect, test } from 'vitest'
import {
  type Call3,
  decodeAggregate3,
  decodeRevertText,
  encodeAggregate3,
  encodeArrays,
  encodeCall,
  SELECTOR,
} from './codec.ts'

const abi = parseAbi([
  'struct Call3 { address target; bool allowFailure; bytes callData; }',
  'struct Result { bool success; bytes returnData; }',
  'function aggregate3(Call3[] calls) returns (Result[])',
  'function balanceOf(address) view returns (uint256)',
  'function restoreAllowances(address[],address[],uint256[])',
  'error Error(string)',
])
const ADDRESS = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'

test('calls are encoded as viem encodes them', () => {
  expect(encodeCall(SELECTOR.balanceOf, ADDRESS)).toBe(
    encodeFunctionData({ abi, functionName: 'balanceOf', args: [ADDRESS] }),
  )
  expect(encodeArrays(SELECTOR.restoreAllowances, [ADDRESS, ADDRESS], [ADDRESS], [])).toBe(
    encodeFunctionData({ abi, functionName: 'restoreAllowances', args: [[ADDRESS, ADDRESS], [ADDRESS], []] }),
  )
})

test.each([0, 1, 3, 70])('a multicall of %i calls is decoded by viem to the same calls', (count) => {
  const calls = Array.from(
    { length: count },
    (_, index): Call3 => ({ target: ADDRESS, callData: `0x${'ab'.repeat(index)}` }),
  )
  expect(decodeFunctionData({ abi, data: encodeAggregate3(calls) })).toEqual({
    functionName: 'aggregate3',
    args: [calls.map((call) => ({ ...call, allowFailure: true }))],
  })
})

test('multicall results are decoded, and truncated data is refused', () => {
  const results = [
    { success: true, returnData: `0x${'01'.repeat(32)}` },
    { success: false, returnData: '0x' },
    { success: true, returnData: `0x${'02'.repeat(45)}` },
  ] as const
  const returnData = encodeFunctionResult({ abi, functionName: 'aggregate3', result: [...results] })
  expect(decodeAggregate3(returnData, 3)).toEqual(
    results.map(({ success, returnData }) => ({ success, data: returnData })),
  )
  expect(() => decodeAggregate3(returnData, 2)).toThrow('number of entries')
  expect(() => decodeAggregate3(returnData.slice(0, -128), 3)).toThrow('truncated')
  expect(() => decodeAggregate3('0x', 1)).toThrow('truncated')
})

test('the text of a revert is decoded, and other data is not mistaken for one', () => {
  expect(decodeRevertText(encodeErrorResult({ abi, errorName: 'Error', args: ['not today'] }))).toBe('not today')
  for (const data of ['0x', '0x08c379a0', '0x4e487b71', `0x08c379a0${'ff'.repeat(64)}`])
    expect(decodeRevertText(data)).toBeUndefined()
})
