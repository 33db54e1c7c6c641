import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterEach, expect, test, vi } from 'vitest'
import { createTimeShare, limitPublicRequests, readGas } from './public-limits.ts'
import { RpcError } from './rpc.ts'

afterEach(() => vi.useRealTimers())

test('the gas limit and the recipient of every type of transaction are read', async () => {
  const account = privateKeyToAccount(generatePrivateKey())
  const to = '0x00000000000000000000000000000000000000aa'
  const fees = { maxFeePerGas: 1n, maxPriorityFeePerGas: 1n }
  const common = { chainId: 8453, nonce: 300, gas: 1_234_567n, data: `0x${'ab'.repeat(300)}` } as const
  for (const transaction of [
    { ...common, type: 'legacy', gasPrice: 5n },
    { ...common, type: 'eip2930', gasPrice: 5n },
    { ...common, ...fees, type: 'eip1559' },
  ] as const) {
    const creation = await account.signTransaction(transaction)
    const size = creation.length / 2 - 1
    expect(readGas(creation)).toEqual({ gas: 1_234_567n, createsContract: true, bytes: size })
    expect(readGas(await account.signTransaction({ ...transaction, to }))).toMatchObject({ createsContract: false })
  }
})

test('bytes that are not a transaction are not one', () => {
  for (const raw of [
    undefined,
    7,
    '0x',
    '0x0',
    'c0',
    '0x05c0',
    '0x02',
    '0x02c0',
    '0x02f9ffff',
    '0xc0',
    '0x02bfffffffffffffff',
  ])
    expect(readGas(raw), String(raw)).toBeUndefined()
})

/** A clock that moves only with the timers, so that durations are exact. */
function useManualTime() {
  vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] })
  return { wait: (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms)) }
}

test('calls run one at a time, and after a long one the chain is free for four times as long', async () => {
  const { wait } = useManualTime()
  const share = createTimeShare()
  const starts: number[] = []
  const call = (ms: number) =>
    share(async () => {
      starts.push(performance.now())
      await wait(ms)
    })
  const startedAt = performance.now()
  const calls = Promise.all([call(10), call(10), call(200), call(10), call(10)])
  await vi.advanceTimersByTimeAsync(5_000)
  await calls
  expect(starts.map((at) => at - startedAt)).toEqual([0, 10, 20, 1_020, 1_030])
})

test('a call that would wait too long, or behind too many, is refused and does nothing', async () => {
  const { wait } = useManualTime()
  const share = createTimeShare()
  let done = 0
  const calls = Array.from({ length: 70 }, () =>
    share(async () => {
      await wait(1_000)
      done += 1
    }).catch((error: unknown) => error),
  )
  await vi.advanceTimersByTimeAsync(60_000)
  const refused = (await Promise.all(calls)).filter((result) => result instanceof RpcError)
  expect(done).toBe(3)
  expect(refused).toHaveLength(67)
  expect(refused[0]).toMatchObject({ code: -32005 })
})

test('a request for the logs of more than 2,000 blocks is refused before the chain reads any', async () => {
  const methods: string[] = []
  const request = limitPublicRequests(async (method) => {
    methods.push(method)
    return method === 'eth_blockNumber' ? '0x2710' : []
  })
  for (const range of [
    { fromBlock: '0x0' },
    { fromBlock: 'earliest', toBlock: 'latest' },
    { fromBlock: '0x1', toBlock: '0xffffffff' },
  ])
    await expect(request('eth_getLogs', [range])).rejects.toMatchObject({ code: -32005 })
  expect(methods).not.toContain('eth_getLogs')
  for (const range of [
    {},
    { fromBlock: '0x2000' },
    { fromBlock: '0x0', toBlock: '0x7d0' },
    { blockHash: `0x${'0'.repeat(64)}` },
  ])
    expect(await request('eth_getLogs', [range])).toEqual([])
})
