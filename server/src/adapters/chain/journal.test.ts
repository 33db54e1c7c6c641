import { readFileSync } from 'node:fs'
import { createPublicClient, createWalletClient, custom, parseAbi, parseSignature } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { base } from 'viem/chains'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestClock } from '../../../test/clock.ts'
import { createMemoryJournal } from '../../../test/contract/memory-journal.ts'
import { NETWORK, newPayer, PAY_TO, signCancel, signPayment, termsOf } from '../../../test/contract/payments.ts'
import { createTestDatabase } from '../../../test/database.ts'
import type { Hex } from '../../modules/payments/facilitator.ts'
import { createLocalFacilitator } from '../facilitators/local-facilitator.ts'
import { createChainReader } from './chain-reader.ts'
import { MULTICALL3, USDC } from './edr.ts'
import { createEmbeddedChain, type EmbeddedChain } from './embedded-chain.ts'
import { type ChainJournal, createPostgresJournal } from './journal.ts'
import { ChainUnreachable, type RpcBlock, type RpcLog, type RpcReceipt } from './rpc.ts'

const log = { info() {}, warn() {} }
const token = parseAbi([
  'function totalSupply() view returns (uint256)',
  'function allowance(address,address) view returns (uint256)',
  'function nonces(address) view returns (uint256)',
  'function approve(address,uint256) returns (bool)',
  'function transferFrom(address,address,uint256) returns (bool)',
  'function permit(address,address,uint256,uint256,uint8,bytes32,bytes32)',
  'function cancelAuthorization(address,bytes32,uint8,bytes32,bytes32)',
])

const clientOf = ({ request }: EmbeddedChain) => {
  const transport = custom({ request: ({ method, params }) => request(method, params as unknown[]) })
  const reads = createPublicClient({ chain: base, transport, pollingInterval: 1 })
  const read = (functionName: 'totalSupply' | 'allowance' | 'nonces', ...args: Hex[]) =>
    reads.readContract({ address: USDC, abi: token, functionName, args } as never) as Promise<bigint>
  return {
    reads,
    read,
    walletOf: (key: Hex) => createWalletClient({ account: privateKeyToAccount(key), chain: base, transport }),
  }
}

function journalContract(name: string, make: () => Promise<{ journal: ChainJournal; close(): Promise<void> }>) {
  describe(`a chain on ${name}`, () => {
    let journal: ChainJournal
    let end: () => Promise<void>
    const clock = createTestClock()
    beforeAll(async () => {
      const made = await make()
      journal = made.journal
      end = made.close
    })
    afterAll(async () => end())

    test('comes back after a restart with its money, its used nonces and its history, and only goes forward', async () => {
      const first = await createEmbeddedChain({ journal, clock, log })
      const { walletOf } = clientOf(first)
      const keys = [generatePrivateKey(), generatePrivateKey()] as const
      const [owner, spender] = [privateKeyToAccount(keys[0]), privateKeyToAccount(keys[1])]
      await first.mint(owner.address, 5_000_000n)

      const facilitatorKey = generatePrivateKey()
      const facilitate = ({ request }: EmbeddedChain) =>
        createLocalFacilitator({ request, network: NETWORK, asset: USDC, privateKeys: [facilitatorKey], clock })
      const terms = termsOf()
      const payment = await signPayment(owner, terms, { clock })
      const paid = await facilitate(first).settle(payment, terms)
      if (paid.state !== 'settled') throw new Error(paid.message)

      const approved = await walletOf(keys[0]).writeContract({
        address: USDC,
        abi: token,
        functionName: 'approve',
        args: [spender.address, 1_000n],
      })
      await walletOf(keys[1]).writeContract({
        address: USDC,
        abi: token,
        functionName: 'transferFrom',
        args: [owner.address, spender.address, 400n],
      })
      const permit = await signPermit(owner, spender.address, 700n)
      await walletOf(keys[1]).writeContract({
        address: USDC,
        abi: token,
        functionName: 'permit',
        args: [owner.address, spender.address, 700n, 2n ** 64n, permit.v, permit.r, permit.s],
      })
      const cancelled = await signPayment(owner, terms, { clock })
      const cancel = split(await signCancel(owner, cancelled.authorization.nonce))
      await walletOf(keys[1]).writeContract({
        address: USDC,
        abi: token,
        functionName: 'cancelAuthorization',
        args: [owner.address, cancelled.authorization.nonce, cancel.v, cancel.r, cancel.s],
      })

      const seen = async (chain: EmbeddedChain) => {
        const reader = createChainReader(chain)
        const client = clientOf(chain)
        return {
          supply: await client.read('totalSupply'),
          balances: await Promise.all(
            [owner.address, spender.address, PAY_TO].map((who) => reader.balanceOf(USDC, who)),
          ),
          allowance: await client.read('allowance', owner.address, spender.address),
          permits: await client.read('nonces', owner.address),
          counts: await Promise.all(
            [owner, spender].map(({ address }) => client.reads.getTransactionCount({ address })),
          ),
          payment: await reader.authorization(USDC, owner.address, payment.authorization.nonce),
          cancelled: await reader.authorization(USDC, owner.address, cancelled.authorization.nonce),
          transaction: await chain.request('eth_getTransactionByHash', [paid.transaction]),
          receipt: await chain.request('eth_getTransactionReceipt', [approved]),
          block: await chain.request('eth_getBlockByNumber', [`0x${paid.block!.toString(16)}`, true]),
          logs: await chain.request('eth_getLogs', [{ fromBlock: '0x0', toBlock: 'latest', address: USDC }]),
        }
      }
      const before = await seen(first)
      const headBefore = BigInt((await first.request('eth_blockNumber')) as string)
      expect(before).toMatchObject({
        supply: 5_000_000n,
        balances: [4_989_600n, 400n, 10_000n],
        allowance: 700n,
        permits: 1n,
        counts: [1, 3],
        payment: { used: true, transaction: paid.transaction, transfer: { value: 10_000n } },
        cancelled: { used: true, transfer: null },
      })
      expect(before.logs).toHaveLength(9)
      await first.close()
      await expect(first.request('eth_blockNumber')).rejects.toBeInstanceOf(ChainUnreachable)

      clock.advance(3_600_000)
      const second = await createEmbeddedChain({ journal, clock, log })
      expect(await seen(second)).toEqual(before)
      const head = (await second.request('eth_getBlockByNumber', ['latest', false])) as RpcBlock
      expect(BigInt(head.number)).toBeGreaterThan(headBefore)
      expect(Number(head.timestamp)).toBe(Math.floor(clock.now().getTime() / 1000))
      expect(await second.request('eth_getBlockByHash', [(before.block as RpcBlock).hash, true])).toEqual(before.block)

      // The old payment is found again by a facilitator that never saw it, and new ones work.
      const facilitator = facilitate(second)
      expect(await facilitator.verify(payment, terms)).toMatchObject({ valid: false })
      expect(await facilitator.settle(payment, terms)).toMatchObject({
        state: 'settled',
        transaction: paid.transaction,
      })
      const next = await facilitator.settle(await signPayment(owner, terms, { clock }), terms)
      expect(next).toMatchObject({ state: 'settled' })
      expect((next as typeof paid).block!).toBeGreaterThan(headBefore)
      await expect(second.request('eth_call', [{ to: USDC, data: '0x' }, '0x1'])).rejects.toThrow('not kept')
      await second.close()

      // By now the first payment has expired, and a start no longer loads it; that it was used is still known.
      const third = await createEmbeddedChain({ journal, clock, log })
      const reader = createChainReader(third)
      expect(await reader.authorization(USDC, owner.address, payment.authorization.nonce)).toEqual(before.payment)
      expect(await facilitate(third).settle(payment, terms)).toMatchObject({
        state: 'settled',
        transaction: paid.transaction,
      })
      expect(await reader.balanceOf(USDC, PAY_TO)).toBe(20_000n)
      await third.close()
    })

    test('who has taken the journal over is the only one that may write', async () => {
      const old = await createEmbeddedChain({ journal, clock, log })
      const now = await createEmbeddedChain({ journal, clock, log })
      const account = newPayer().address
      await expect(old.mint(account, 1n)).rejects.toBeInstanceOf(ChainUnreachable)
      await now.mint(account, 2n)
      await expect(old.mint(account, 1n)).rejects.toThrow('taken over')
      expect(await createChainReader(now).balanceOf(USDC, account)).toBe(2n)
      await now.close()
    })

    test('logs are found by block, address and topics, and never by guessing', async () => {
      const chain = await createEmbeddedChain({ journal, clock, log })
      const [one, two] = [newPayer().address, newPayer().address]
      const [hash] = [await chain.mint(one, 1n), await chain.mint(two, 2n)]
      const receipt = (await chain.request('eth_getTransactionReceipt', [hash])) as RpcReceipt
      const find = async (filter: object) => (await chain.request('eth_getLogs', [filter])) as RpcLog[]
      const ofBlock = { fromBlock: receipt.blockNumber, toBlock: receipt.blockNumber }
      expect(await find(ofBlock)).toEqual(receipt.logs)
      expect(await find({ blockHash: receipt.blockHash })).toEqual(receipt.logs)
      expect(await find({ ...ofBlock, address: MULTICALL3 })).toEqual([])
      expect(
        await find({ fromBlock: '0x0', topics: [null, null, `0x${one.slice(2).toLowerCase().padStart(64, '0')}`] }),
      ).toHaveLength(2)
      expect(
        await find({ fromBlock: '0x0', topics: [receipt.logs[0]!.topics[0]!, [`0x${'00'.repeat(32)}`]] }),
      ).toHaveLength(0)
      expect(await find({ blockHash: `0x${'00'.repeat(32)}` })).toEqual([])
      await chain.close()
    })
  })
}

const DOMAIN = { name: 'USD Coin', version: '2', chainId: 8453, verifyingContract: USDC } as const

async function signPermit(owner: ReturnType<typeof privateKeyToAccount>, spender: Hex, value: bigint) {
  const fields = ['owner address', 'spender address', 'value uint256', 'nonce uint256', 'deadline uint256']
  const signature = await owner.signTypedData({
    domain: DOMAIN,
    types: { Permit: fields.map((field) => ({ name: field.split(' ')[0]!, type: field.split(' ')[1]! })) },
    primaryType: 'Permit',
    message: { owner: owner.address, spender, value, nonce: 0n, deadline: 2n ** 64n },
  })
  return split(signature)
}

const split = (signature: Hex) => {
  const { r, s, v } = parseSignature(signature)
  return { r, s, v: Number(v) }
}

journalContract('a journal in memory', async () => ({ journal: createMemoryJournal(), close: async () => {} }))

journalContract('a journal in PostgreSQL', async () => {
  const database = await createTestDatabase({ empty: true })
  const { pool } = database.open(4)
  await pool.query(readFileSync(new URL('../../../migrations/0002_chain.sql', import.meta.url), 'utf8'))
  const close = async () => {
    await pool.end()
    await database.drop()
  }
  return { journal: createPostgresJournal(pool), close }
})
