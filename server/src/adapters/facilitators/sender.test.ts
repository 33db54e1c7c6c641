import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { keccak256, parseTransaction, type TransactionSerializedEIP1559 } from 'viem'
import { generatePrivateKey } from 'viem/accounts'
import { afterEach, expect, test } from 'vitest'
import type { Hex } from '../../modules/payments/facilitator.ts'
import { createRemoteChain } from '../chain/remote-chain.ts'
import { loadCurve } from './secp256k1.ts'
import { createSender } from './sender.ts'

const TO: Hex = `0x${'22'.repeat(20)}`
const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

type PendingTransaction = { hash: Hex; nonce: number; maxFeePerGas: bigint; maxPriorityFeePerGas: bigint; data: Hex }

/** A node with a mempool, over HTTP: it mines in the order of nonces, and a test can make it hold, drop or price transactions. */
async function openNode() {
  const pool = new Map<number, PendingTransaction>()
  const mined: PendingTransaction[] = []
  const node = { mining: true, dropping: false, baseFee: 100n, pool, mined, received: [] as PendingTransaction[] }
  const mine = () => {
    if (!node.mining) return
    for (let next = pool.get(mined.length); next && next.maxFeePerGas >= node.baseFee; next = pool.get(mined.length)) {
      pool.delete(next.nonce)
      mined.push(next)
    }
  }
  const pendingCount = () => {
    let count = mined.length
    while (pool.has(count)) count += 1
    return count
  }
  const submit = (raw: Hex) => {
    const {
      nonce = 0,
      maxFeePerGas,
      maxPriorityFeePerGas,
      data,
    } = parseTransaction(raw as TransactionSerializedEIP1559)
    const transaction = {
      hash: keccak256(raw),
      nonce,
      maxFeePerGas: maxFeePerGas!,
      maxPriorityFeePerGas: maxPriorityFeePerGas!,
      data: data!,
    }
    node.received.push(transaction)
    if (nonce < mined.length) throw new Error('nonce too low')
    const earlier = pool.get(nonce)
    if (earlier?.hash === transaction.hash) throw new Error('already known')
    if (earlier && transaction.maxFeePerGas * 10n < earlier.maxFeePerGas * 11n)
      throw new Error('replacement transaction underpriced')
    if (!node.dropping) pool.set(nonce, transaction)
    mine()
    return transaction.hash
  }
  const answer = (method: string, params: unknown[]): unknown => {
    if (method === 'eth_sendRawTransaction') return submit(params[0] as Hex)
    mine()
    if (method === 'eth_getTransactionCount') return toHex(params[1] === 'latest' ? mined.length : pendingCount())
    if (method === 'eth_getBlockByNumber') return { number: '0x1', hash: '0x', baseFeePerGas: toHex(node.baseFee) }
    if (method === 'eth_maxPriorityFeePerGas') return toHex(10)
    if (method === 'eth_getTransactionReceipt') {
      const transaction = mined.find(({ hash }) => hash === params[0])
      return transaction ? { transactionHash: transaction.hash, status: '0x1', logs: [] } : null
    }
    throw new Error(`unexpected ${method}`)
  }
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const { id, method, params } = JSON.parse(body) as { id: number; method: string; params: unknown[] }
    response.setHeader('content-type', 'application/json')
    try {
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result: answer(method, params ?? []) }))
    } catch (error) {
      const { message } = error as Error
      response.end(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32000, message } }))
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closing.push(async () => {
    server.closeAllConnections()
    server.close()
  })
  const { request } = createRemoteChain({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
  const privateKey = generatePrivateKey()
  const openSender = () =>
    createSender({ request, curve: loadCurve(), privateKey, chainId: 8453, receiptTimeoutMs: 60 })
  return { node, openSender }
}

const toHex = (value: number | bigint) => `0x${value.toString(16)}`
const call = (index: number) => ({ to: TO, data: `0x${index.toString(16).padStart(2, '0')}` as Hex, gas: 100_000n })
const sentData = (transactions: PendingTransaction[]) => transactions.map(({ data }) => data)

test('after a node dropped several unmined transactions, they and all later ones are mined, each once', async () => {
  const { node, openSender } = await openNode()
  const sender = openSender()
  expect(await sender.send(call(1))).toMatchObject({ state: 'mined' })
  node.dropping = true
  for (const index of [2, 3, 4]) expect(await sender.send(call(index))).toMatchObject({ state: 'unknown' })
  node.dropping = false
  for (const index of [5, 6, 7, 8, 9]) expect(await sender.send(call(index))).toMatchObject({ state: 'mined' })
  expect(sentData(node.mined)).toEqual(['0x01', '0x02', '0x03', '0x04', '0x05', '0x06', '0x07', '0x08', '0x09'])
})

test('a transaction whose fee has become too low is replaced with a higher one, and is mined once', async () => {
  const { node, openSender } = await openNode()
  const sender = openSender()
  node.mining = false
  expect(await sender.send(call(1))).toMatchObject({ state: 'unknown' })
  node.mining = true
  node.baseFee = 1_000n
  expect(await sender.send(call(2))).toMatchObject({ state: 'mined' })
  expect(sentData(node.mined)).toEqual(['0x01', '0x02'])
  expect(node.mined[0]!.maxFeePerGas).toBeGreaterThanOrEqual(1_000n)
})

test('replacements stop at three times the market price, however long a transaction waits', async () => {
  const { node, openSender } = await openNode()
  const sender = openSender()
  node.mining = false
  for (let index = 1; index <= 30; index++) expect(await sender.send(call(index))).toMatchObject({ state: 'unknown' })
  const marketFee = node.baseFee * 2n + 10n
  const fees = node.received.map(({ maxFeePerGas }) => maxFeePerGas)
  expect(fees.reduce((a, b) => (a > b ? a : b))).toBeLessThanOrEqual(marketFee * 3n)
  // No more transactions wait at once than the limit, so that a sick node is not flooded.
  expect(node.pool.size).toBeLessThanOrEqual(16)
  node.mining = true
  expect(await sender.send(call(31))).toMatchObject({ state: 'mined' })
})

test('a transaction of an earlier process that waits or was dropped below ours does not block the account', async () => {
  for (const fate of ['waits', 'dropped'] as const) {
    const { node, openSender } = await openNode()
    node.mining = false
    expect(await openSender().send(call(1))).toMatchObject({ state: 'unknown' })
    // The restarted process counts behind the waiting transaction.
    const sender = openSender()
    expect(await sender.send(call(2))).toMatchObject({ state: 'unknown' })
    expect(node.pool.size).toBe(2)
    if (fate === 'dropped') node.pool.delete(0)
    else node.baseFee = 300n
    node.mining = true
    await sender.send(call(3))
    expect(await sender.send(call(4))).toMatchObject({ state: 'mined' })
    expect(sentData(node.mined).slice(-3)).toEqual(expect.arrayContaining(['0x02', '0x03', '0x04']))
  }
})
