import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readJson, startService, type TestService } from '../harness.ts'
import { frozenClock } from './frozen-clock.ts'

const PER_MINUTE = 40

let service: TestService
beforeAll(async () => {
  service = await startService({
    clock: frozenClock,
    env: { RATE_LIMIT_ANON_PER_MINUTE: String(PER_MINUTE), TRUST_PROXY: '127.0.0.1' },
  })
})
afterAll(() => service.close())

const from = (address: string) => ({ 'x-forwarded-for': address })
const toCall = (method: string, params: unknown[] = []) => ({ jsonrpc: '2.0', id: 1, method, params })
const rpc = (address: string, method: string, params: unknown[] = []) =>
  service.post('/api/dev/rpc', toCall(method, params), from(address))

// Executed as the code of a new contract: `GAS` is stored and returned, so the answer is the gas that was left.
const RETURN_GAS = '0x5a60005260206000f3'
const ENDLESS_LOOP = '0x5b600056'

test('calls of the chain RPC count against the address like any anonymous request', async () => {
  for (let call = 0; call < PER_MINUTE; call++) expect((await rpc('10.1.0.1', 'eth_chainId')).status).toBe(200)
  expect(await rpc('10.1.0.1', 'eth_chainId')).toMatchObject({ status: 429, body: { code: 'rate_limited' } })
})

test('each call of a batch counts', async () => {
  const batch = Array.from({ length: PER_MINUTE / 2 }, () => toCall('eth_chainId'))
  expect((await service.post('/api/dev/rpc', batch, from('10.2.0.1'))).body).toHaveLength(PER_MINUTE / 2)
  expect((await service.post('/api/dev/rpc', batch, from('10.2.0.1'))).status).toBe(200)
  expect((await service.post('/api/dev/rpc', batch, from('10.2.0.1'))).status).toBe(429)
})

test('a simulated call gets a bounded amount of gas, whatever it asks for', async () => {
  for (const gas of [undefined, '0x989680', `0x${'f'.repeat(64)}`]) {
    const { body } = await rpc('10.3.0.1', 'eth_call', [{ data: RETURN_GAS, ...(gas && { gas }) }, 'latest'])
    expect(Number(body.result)).toBeGreaterThan(400_000)
    expect(Number(body.result)).toBeLessThan(510_000)
  }
  expect((await rpc('10.3.0.1', 'eth_call', [{ data: ENDLESS_LOOP }, 'latest'])).body.error.message).toMatch(/gas/i)
  expect((await rpc('10.3.0.1', 'eth_estimateGas', [{ data: ENDLESS_LOOP }])).body.error.message).toMatch(/gas/i)
})

test('a transaction with a higher gas limit than its size warrants is refused, and one that fits is mined', async () => {
  const account = privateKeyToAccount(generatePrivateKey())
  const send = async (gas: bigint, nonce: number) => {
    const fields = { chainId: 8453, nonce, gas, maxFeePerGas: 0n, maxPriorityFeePerGas: 0n, type: 'eip1559' } as const
    const raw = await account.signTransaction({ ...fields, data: RETURN_GAS })
    return (await rpc('10.4.0.1', 'eth_sendRawTransaction', [raw])).body
  }
  expect((await send(15_000_000n, 0)).error).toMatchObject({
    code: -32005,
    message: expect.stringContaining('gas limit'),
  })
  expect((await send(400_000n, 0)).result).toMatch(/^0x[0-9a-f]{64}$/)
  expect((await rpc('10.4.0.1', 'eth_sendRawTransaction', ['0x02c0'])).body.error).toMatchObject({ code: -32602 })
})

test('logs are asked for in bounded ranges of blocks', async () => {
  const ask = (filter: object) => rpc('10.5.0.1', 'eth_getLogs', [filter])
  const head = BigInt((await rpc('10.5.0.1', 'eth_blockNumber')).body.result)
  const past = (blocks: bigint) => `0x${(head > blocks ? head - blocks : 0n).toString(16)}`
  expect((await ask({ fromBlock: past(100n), toBlock: 'latest' })).body.result).toBeInstanceOf(Array)
  expect((await ask({ fromBlock: past(100n) })).body.result).toBeInstanceOf(Array)
})

test('two processes in production share the chain without the RPC, and neither offers it', async () => {
  const env = {
    NODE_ENV: 'production',
    RATE_LIMIT_ANON_PER_MINUTE: '0',
    ENCRYPTION_KEY: 'one-key-for-both-of-these-processes',
  }
  const owner = await startService({ clock: frozenClock, env })
  const databaseUrl = owner.service.config.DATABASE_URL!
  const second = await startService({ env, databaseUrl })
  try {
    expect(second.service.chain.dev).toBeDefined()
    for (const { post } of [owner, second])
      expect(await post('/api/dev/rpc', toCall('eth_chainId'))).toMatchObject({
        status: 404,
        body: { code: 'not_found' },
      })
    const supported = await readJson(await fetch(`${second.url}/facilitator/supported`))
    expect(supported.kinds.length).toBeGreaterThan(0)
    expect(await second.service.chain.reader!.headTime()).toBeGreaterThan(0n)
  } finally {
    await second.close()
    await owner.close()
  }
})
