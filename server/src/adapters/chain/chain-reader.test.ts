import { expect, test } from 'vitest'
import { createChainReader, findAuthorizedTransfer } from './chain-reader.ts'
import { encodeWord, TOPIC } from './codec.ts'
import { USDC } from './edr.ts'
import { type ChainRequest, RpcError, type RpcLog, type RpcReceipt } from './rpc.ts'

const [ANN, BOB, SHOP] = ['a1', 'b2', 'c3'].map((byte) => `0x${byte.repeat(20)}` as const) as [
  `0x${string}`,
  `0x${string}`,
  `0x${string}`,
]
const NONCE = `0x${'01'.repeat(32)}` as const
const OTHER_NONCE = `0x${'02'.repeat(32)}` as const
const TRANSACTION = `0x${'99'.repeat(32)}` as const

const createLog = (topics: string[], data = '0x', address: string = USDC): RpcLog => ({
  address,
  topics,
  data,
  blockNumber: '0x10',
  blockHash: `0x${'00'.repeat(32)}`,
  transactionHash: TRANSACTION,
  transactionIndex: '0x0',
  logIndex: '0x0',
})
const usedLog = (payer: string, nonce: string) => createLog([TOPIC.authorizationUsed, `0x${encodeWord(payer)}`, nonce])
const transferLog = (from: string, value: number, address?: string) =>
  createLog([TOPIC.transfer, `0x${encodeWord(from)}`, `0x${encodeWord(SHOP)}`], `0x${encodeWord(value)}`, address)
const createReceipt = (...logs: RpcLog[]) => ({ transactionHash: TRANSACTION, logs }) as RpcReceipt

test('each of many payments in one transaction is matched with its own transfer', () => {
  const receipt = createReceipt(
    transferLog(ANN, 1),
    usedLog(ANN, NONCE),
    transferLog(ANN, 2),
    usedLog(BOB, NONCE),
    transferLog(BOB, 3),
    usedLog(ANN, OTHER_NONCE),
    transferLog(ANN, 4),
    transferLog(ANN, 5, `0x${'dd'.repeat(20)}`),
  )
  expect(findAuthorizedTransfer(receipt, USDC, ANN, NONCE)).toMatchObject({
    from: ANN,
    to: SHOP,
    value: 2n,
    block: 16n,
  })
  expect(findAuthorizedTransfer(receipt, USDC, BOB, NONCE)).toMatchObject({ from: BOB, value: 3n })
  expect(findAuthorizedTransfer(receipt, USDC, ANN, OTHER_NONCE)).toMatchObject({ value: 4n })
  expect(findAuthorizedTransfer(receipt, USDC, BOB, OTHER_NONCE)).toBeUndefined()
})

test('a used authorisation next to transfers of other payers has no transfer', () => {
  expect(
    findAuthorizedTransfer(
      createReceipt(transferLog(BOB, 1), usedLog(ANN, NONCE), transferLog(BOB, 2)),
      USDC,
      ANN,
      NONCE,
    ),
  ).toBeUndefined()
  const otherTokenReceipt = createReceipt(usedLog(ANN, NONCE), transferLog(ANN, 1, `0x${'dd'.repeat(20)}`))
  expect(findAuthorizedTransfer(otherTokenReceipt, USDC, ANN, NONCE)).toBeUndefined()
})

test('a node that refuses wide ranges is searched in ranges, the newest blocks first', async () => {
  const requestedRanges: [number, number][] = []
  const request: ChainRequest = async (method, params = []) => {
    if (method === 'eth_call') return `0x${encodeWord(1)}`
    if (method === 'eth_blockNumber') return '0x9c40'
    if (method === 'eth_getTransactionReceipt') return createReceipt(usedLog(ANN, NONCE), transferLog(ANN, 7))
    const { fromBlock, toBlock } = params[0] as { fromBlock: string; toBlock: string }
    if (toBlock === 'latest') throw new RpcError(-32614, 'eth_getLogs is limited to a 10,000 range')
    requestedRanges.push([Number(fromBlock), Number(toBlock)])
    return Number(fromBlock) <= 25_000 ? [usedLog(ANN, NONCE)] : []
  }
  expect(await createChainReader({ request }).authorization(USDC, ANN, NONCE)).toMatchObject({
    used: true,
    transaction: TRANSACTION,
    transfer: { value: 7n },
  })
  expect(requestedRanges).toEqual([
    [30_001, 40_000],
    [20_001, 30_000],
  ])
})

test('a use whose log cannot be found is reported as used, without a transaction', async () => {
  const request: ChainRequest = async (method) => (method === 'eth_call' ? `0x${encodeWord(1)}` : [])
  expect(await createChainReader({ request }).authorization(USDC, ANN, NONCE)).toEqual({
    used: true,
    transaction: null,
    transfer: null,
  })
})
