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
const OTHER = `0x${'02'.repeat(32)}` as const
const TRANSACTION = `0x${'99'.repeat(32)}` as const

const log = (topics: string[], data = '0x', address: string = USDC): RpcLog => ({
  address,
  topics,
  data,
  blockNumber: '0x10',
  blockHash: `0x${'00'.repeat(32)}`,
  transactionHash: TRANSACTION,
  transactionIndex: '0x0',
  logIndex: '0x0',
})
const used = (payer: string, nonce: string) => log([TOPIC.authorizationUsed, `0x${encodeWord(payer)}`, nonce])
const moved = (from: string, value: number, address?: string) =>
  log([TOPIC.transfer, `0x${encodeWord(from)}`, `0x${encodeWord(SHOP)}`], `0x${encodeWord(value)}`, address)
const receiptOf = (...logs: RpcLog[]) => ({ transactionHash: TRANSACTION, logs }) as RpcReceipt

test('of many payments in one transaction each finds its own transfer, whoever else moves money there', () => {
  const receipt = receiptOf(
    moved(ANN, 1),
    used(ANN, NONCE),
    moved(ANN, 2),
    used(BOB, NONCE),
    moved(BOB, 3),
    used(ANN, OTHER),
    moved(ANN, 4),
    moved(ANN, 5, `0x${'dd'.repeat(20)}`),
  )
  expect(findAuthorizedTransfer(receipt, USDC, ANN, NONCE)).toMatchObject({
    from: ANN,
    to: SHOP,
    value: 2n,
    block: 16n,
  })
  expect(findAuthorizedTransfer(receipt, USDC, BOB, NONCE)).toMatchObject({ from: BOB, value: 3n })
  expect(findAuthorizedTransfer(receipt, USDC, ANN, OTHER)).toMatchObject({ value: 4n })
  expect(findAuthorizedTransfer(receipt, USDC, BOB, OTHER)).toBeUndefined()
})

test("a used authorisation whose neighbours are somebody else's has no transfer", () => {
  expect(
    findAuthorizedTransfer(receiptOf(moved(BOB, 1), used(ANN, NONCE), moved(BOB, 2)), USDC, ANN, NONCE),
  ).toBeUndefined()
  const elsewhere = receiptOf(used(ANN, NONCE), moved(ANN, 1, `0x${'dd'.repeat(20)}`))
  expect(findAuthorizedTransfer(elsewhere, USDC, ANN, NONCE)).toBeUndefined()
})

test('a node that refuses wide ranges is asked piece by piece, the newest blocks first', async () => {
  const asked: [number, number][] = []
  const request: ChainRequest = async (method, params = []) => {
    if (method === 'eth_call') return `0x${encodeWord(1)}`
    if (method === 'eth_blockNumber') return '0x9c40'
    if (method === 'eth_getTransactionReceipt') return receiptOf(used(ANN, NONCE), moved(ANN, 7))
    const { fromBlock, toBlock } = params[0] as { fromBlock: string; toBlock: string }
    if (toBlock === 'latest') throw new RpcError(-32614, 'eth_getLogs is limited to a 10,000 range')
    asked.push([Number(fromBlock), Number(toBlock)])
    return Number(fromBlock) <= 25_000 ? [used(ANN, NONCE)] : []
  }
  expect(await createChainReader({ request }).authorization(USDC, ANN, NONCE)).toMatchObject({
    used: true,
    transaction: TRANSACTION,
    transfer: { value: 7n },
  })
  expect(asked).toEqual([
    [30_001, 40_000],
    [20_001, 30_000],
  ])
})

test('a use that cannot be found is told as used, by a transaction that is not known', async () => {
  const request: ChainRequest = async (method) => (method === 'eth_call' ? `0x${encodeWord(1)}` : [])
  expect(await createChainReader({ request }).authorization(USDC, ANN, NONCE)).toEqual({
    used: true,
    transaction: null,
    transfer: null,
  })
})
