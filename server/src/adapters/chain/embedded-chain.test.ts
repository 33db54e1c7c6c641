import { createPublicClient, custom, encodeErrorResult, encodeFunctionData, hashDomain, parseAbi } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { base } from 'viem/chains'
import { afterEach, describe, expect, test } from 'vitest'
import { createTestClock } from '../../../test/clock.ts'
import { createMemoryJournal } from '../../../test/contract/memory-journal.ts'
import { createPayer } from '../../../test/contract/payments.ts'
import type { Hex } from '../../modules/payments/facilitator.ts'
import { createChainReader } from './chain-reader.ts'
import { MINTER, USDC } from './edr.ts'
import { createEmbeddedChain, type EmbeddedChain } from './embedded-chain.ts'
import type { ChainJournal } from './journal.ts'
import { createPublicRpc } from './public-rpc.ts'
import { ChainUnreachable, type RpcBlock, RpcError } from './rpc.ts'

const log = { info() {}, warn() {} }
const openChains: EmbeddedChain[] = []

async function openChain(journal: ChainJournal = createMemoryJournal()) {
  const clock = createTestClock()
  const chain = await createEmbeddedChain({ journal, clock, log })
  openChains.push(chain)
  return { chain, clock, reader: createChainReader(chain) }
}

/** A raw transaction of a new account. */
async function signTransaction(to: Hex, data: Hex, { key = generatePrivateKey(), nonce = 0, gas = 200_000n } = {}) {
  return privateKeyToAccount(key).signTransaction({
    type: 'eip1559',
    chainId: 8453,
    nonce,
    to,
    data,
    gas,
    maxFeePerGas: 0n,
  })
}

const mintCall = (to: Hex, amount: bigint) =>
  encodeFunctionData({ abi: parseAbi(['function mint(address,uint256)']), args: [to, amount] })

afterEach(async () => {
  for (const chain of openChains.splice(0)) await chain.close()
})

test('the token is at its Base address and behaves as USDC', async () => {
  const { chain } = await openChain()
  const transport = custom({ request: ({ method, params }) => chain.request(method, params as unknown[]) })
  const client = createPublicClient({ chain: base, transport })
  const abi = parseAbi([
    'function name() view returns (string)',
    'function symbol() view returns (string)',
    'function version() view returns (string)',
    'function decimals() view returns (uint8)',
    'function DOMAIN_SEPARATOR() view returns (bytes32)',
    'function MINTER() view returns (address)',
  ])
  const readToken = (functionName: 'name' | 'symbol' | 'version' | 'decimals' | 'DOMAIN_SEPARATOR' | 'MINTER') =>
    client.readContract({ address: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', abi, functionName })
  expect(
    await Promise.all([readToken('name'), readToken('symbol'), readToken('version'), readToken('decimals')]),
  ).toEqual(['USD Coin', 'USDC', '2', 6])
  const domain = { name: 'USD Coin', version: '2', chainId: 8453n, verifyingContract: USDC } as const
  expect(await readToken('DOMAIN_SEPARATOR')).toBe(
    hashDomain({
      domain,
      types: {
        EIP712Domain: [
          { name: 'name', type: 'string' },
          { name: 'version', type: 'string' },
          { name: 'chainId', type: 'uint256' },
          { name: 'verifyingContract', type: 'address' },
        ],
      },
    }),
  )
  expect(String(await readToken('MINTER')).toLowerCase()).toBe(MINTER)
  expect(await client.getChainId()).toBe(8453)
})

test('only the faucet can mint', async () => {
  const { chain, reader } = await openChain()
  const account = createPayer().address
  await chain.mint(account, 7n)
  const hash = (await chain.request('eth_sendRawTransaction', [
    await signTransaction(USDC, mintCall(account, 1_000n)),
  ])) as Hex
  expect(await chain.request('eth_getTransactionReceipt', [hash])).toMatchObject({ status: '0x0', logs: [] })
  await expect(
    chain.request('eth_sendTransaction', [{ from: MINTER, to: USDC, data: mintCall(account, 1n) }]),
  ).rejects.toThrow('not offered')
  await expect(chain.request('hardhat_setBalance', [account, '0x1'])).rejects.toBeInstanceOf(RpcError)
  expect(await reader.balanceOf(USDC, account)).toBe(7n)
})

test('a reverted call returns the same error as other nodes', async () => {
  const { chain } = await openChain()
  const call = { to: USDC, data: mintCall(createPayer().address, 1n) }
  const error = await chain.request('eth_call', [call, 'latest']).catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({
    code: 3,
    message: 'execution reverted: FiatToken: caller is not a minter',
    data: encodeErrorResult({
      abi: parseAbi(['error Error(string)']),
      args: ['FiatToken: caller is not a minter'],
    }),
  })
})

test('block time advances without transactions and never goes back', async () => {
  const { chain, clock, reader } = await openChain()
  const start = await reader.headTime()
  clock.advance(90_000)
  expect(await reader.headTime()).toBe(start + 90n)
  clock.advance(-3_600_000)
  await chain.mint(createPayer().address, 1n)
  expect(await reader.headTime()).toBe(start + 90n)
})

test('a hundred transactions in one second do not advance the block time', async () => {
  const { chain, reader } = await openChain()
  const start = await reader.headTime()
  for (let count = 0; count < 100; count++) await chain.mint(MINTER, 1n)
  expect(await reader.headTime()).toBe(start)
})

test('there is no transaction pool: a nonce that is too high is refused and changes nothing', async () => {
  const { chain, reader } = await openChain()
  const key = generatePrivateKey()
  const transfer = encodeFunctionData({ abi: parseAbi(['function transfer(address,uint256)']), args: [MINTER, 1n] })
  const { address } = privateKeyToAccount(key)
  await chain.mint(address, 10n)
  await expect(
    chain.request('eth_sendRawTransaction', [await signTransaction(USDC, transfer, { key, nonce: 1 })]),
  ).rejects.toThrow('Nonce too high')
  const first = await signTransaction(USDC, transfer, { key, nonce: 0 })
  await chain.request('eth_sendRawTransaction', [first])
  await expect(chain.request('eth_sendRawTransaction', [first])).rejects.toBeInstanceOf(RpcError)
  expect(await reader.balanceOf(USDC, address)).toBe(9n)
})

describe('the journal decides which transactions exist', () => {
  /** A journal whose next append fails: before the write, or after it, when only the response is lost. */
  function createFaultyJournal() {
    const memory = createMemoryJournal()
    let fault: 'none' | 'fail' | 'lose the response' = 'none'
    const journal: ChainJournal = {
      ...memory,
      async append(epoch, block) {
        if (fault === 'fail') throw new Error('the database is gone')
        await memory.append(epoch, block)
        if (fault === 'lose the response') throw new Error('the connection was reset')
      },
      async load() {
        if (fault === 'fail') throw new Error('the database is gone')
        return memory.load()
      },
    }
    return { journal, setFault: (next: typeof fault) => (fault = next) }
  }

  test('a transaction that could not be journalled is discarded by the chain', async () => {
    const { journal, setFault } = createFaultyJournal()
    const { chain, reader } = await openChain(journal)
    const account = createPayer().address
    await chain.mint(account, 5n)
    setFault('fail')
    await expect(chain.mint(account, 7n)).rejects.toBeInstanceOf(ChainUnreachable)
    await expect(reader.balanceOf(USDC, account)).rejects.toBeInstanceOf(ChainUnreachable)
    setFault('none')
    expect(await reader.balanceOf(USDC, account)).toBe(5n)
    await chain.mint(account, 1n)
    expect(await reader.balanceOf(USDC, account)).toBe(6n)
  })

  test('a transaction that was journalled counts, although its sender got an error', async () => {
    const { journal, setFault } = createFaultyJournal()
    const { chain, reader } = await openChain(journal)
    const account = createPayer().address
    setFault('lose the response')
    await expect(chain.mint(account, 7n)).rejects.toBeInstanceOf(ChainUnreachable)
    setFault('none')
    expect(await reader.balanceOf(USDC, account)).toBe(7n)
  })

  test('a transaction is not visible before it is journalled', async () => {
    const memory = createMemoryJournal()
    let release: () => void = () => {}
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    let blockAppends = false
    const journal: ChainJournal = {
      ...memory,
      async append(epoch, block) {
        if (blockAppends) await released
        await memory.append(epoch, block)
      },
    }
    const { chain, reader } = await openChain(journal)
    const account = createPayer().address
    blockAppends = true
    let minted = false
    const minting = chain.mint(account, 7n).then(() => {
      minted = true
    })
    await new Promise((resolve) => setTimeout(resolve, 50))
    // A reader gets the state of the block before, and does not wait for the journal.
    expect(await reader.balanceOf(USDC, account)).toBe(0n)
    expect(minted).toBe(false)
    release()
    await minting
    expect(await reader.balanceOf(USDC, account)).toBe(7n)
  })
})

describe('external callers', () => {
  test('get responses to one request and to a batch, each with its id', async () => {
    const { chain } = await openChain()
    const rpc = createPublicRpc(chain.request)
    expect(await rpc({ jsonrpc: '2.0', id: 7, method: 'eth_chainId' })).toEqual({
      jsonrpc: '2.0',
      id: 7,
      result: '0x2105',
    })
    expect(
      await rpc([
        { id: 'a', method: 'net_version', params: [] },
        { id: 'b', method: 'evm_mine' },
      ]),
    ).toEqual([
      { jsonrpc: '2.0', id: 'a', result: '8453' },
      { jsonrpc: '2.0', id: 'b', error: { code: -32601, message: 'The method evm_mine is not offered here.' } },
    ])
  })

  test.each([
    'hardhat_setStorageAt',
    'hardhat_impersonateAccount',
    'evm_revert',
    'personal_sign',
    'eth_sendTransaction',
    'debug_traceCall',
    'constructor',
  ])('cannot call %s', async (method) => {
    const { chain } = await openChain()
    expect(await createPublicRpc(chain.request)({ id: 1, method, params: [] })).toMatchObject({
      error: { code: -32601 },
    })
  })

  test('are limited in batch size, request size and gas', async () => {
    const { chain } = await openChain()
    const rpc = createPublicRpc(chain.request)
    expect(await rpc([])).toMatchObject({ error: { code: -32600 } })
    expect(await rpc(Array(51).fill({ id: 1, method: 'eth_chainId' }))).toMatchObject({ error: { code: -32600 } })
    expect(await rpc({ id: 1, method: 'web3_sha3', params: [`0x${'00'.repeat(600_000)}`] })).toMatchObject({
      error: { code: -32600 },
    })
    expect(await rpc({ id: 1, method: 'eth_call', params: 'no array' })).toMatchObject({ error: { code: -32600 } })
    for (const body of [null, undefined, 7, 'text']) expect(await rpc(body)).toMatchObject({ error: { code: -32600 } })
    // The call asks for the gas of a hundred blocks and gets the limit.
    const gasLeft = '0x5a60005260206000f3'
    const data = { data: gasLeft, gas: '0x59682f00' }
    const response = (await rpc({ id: 1, method: 'eth_call', params: [data, 'latest'] })) as { result: string }
    expect(Number(response.result)).toBeLessThan(10_000_000)
  })

  test('see the same block by number and by hash', async () => {
    const { chain } = await openChain()
    await chain.mint(MINTER, 1n)
    const latest = (await chain.request('eth_getBlockByNumber', ['latest', true])) as RpcBlock
    expect(await chain.request('eth_getBlockByHash', [latest.hash, true])).toEqual(latest)
    expect(await chain.request('eth_getBlockByNumber', [latest.number, true])).toEqual(latest)
  })
})
