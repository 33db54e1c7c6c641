import { readFileSync } from 'node:fs'
import { createPublicClient, createWalletClient, custom, parseAbi, parseSignature } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { base } from 'viem/chains'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestClock } from '../../../test/clock.ts'
import { createMemoryJournal } from '../../../test/contract/memory-journal.ts'
import { createPayer, createTerms, NETWORK, PAY_TO, signCancel, signPayment } from '../../../test/contract/payments.ts'
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

const createClients = ({ request }: EmbeddedChain) => {
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

function journalContract(
  name: string,
  createJournal: () => Promise<{ journal: ChainJournal; close(): Promise<void> }>,
) {
  describe(`a chain on ${name}`, () => {
    let journal: ChainJournal
    let closeJournal: () => Promise<void>
    const clock = createTestClock()
    beforeAll(async () => {
      const created = await createJournal()
      journal = created.journal
      closeJournal = created.close
    })
    afterAll(async () => closeJournal())

    test('keeps balances, used nonces and history across restarts, and block numbers only increase', async () => {
      const first = await createEmbeddedChain({ journal, clock, log })
      const { walletOf } = createClients(first)
      const keys = [generatePrivateKey(), generatePrivateKey()] as const
      const [owner, spender] = [privateKeyToAccount(keys[0]), privateKeyToAccount(keys[1])]
      await first.mint(owner.address, 5_000_000n)

      const facilitatorKey = generatePrivateKey()
      const createFacilitator = ({ request }: EmbeddedChain) =>
        createLocalFacilitator({ request, network: NETWORK, asset: USDC, privateKeys: [facilitatorKey], clock })
      const terms = createTerms()
      const payment = await signPayment(owner, terms, { clock })
      const settlement = await createFacilitator(first).settle(payment, terms)
      if (settlement.state !== 'settled') throw new Error(settlement.message)

      const approvalHash = await walletOf(keys[0]).writeContract({
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
      const cancel = splitSignature(await signCancel(owner, cancelled.authorization.nonce))
      await walletOf(keys[1]).writeContract({
        address: USDC,
        abi: token,
        functionName: 'cancelAuthorization',
        args: [owner.address, cancelled.authorization.nonce, cancel.v, cancel.r, cancel.s],
      })

      const readChain = async (chain: EmbeddedChain) => {
        const reader = createChainReader(chain)
        const client = createClients(chain)
        return {
          supply: await client.read('totalSupply'),
          balances: await Promise.all(
            [owner.address, spender.address, PAY_TO].map((address) => reader.balanceOf(USDC, address)),
          ),
          allowance: await client.read('allowance', owner.address, spender.address),
          permits: await client.read('nonces', owner.address),
          counts: await Promise.all(
            [owner, spender].map(({ address }) => client.reads.getTransactionCount({ address })),
          ),
          payment: await reader.authorization(USDC, owner.address, payment.authorization.nonce),
          cancelled: await reader.authorization(USDC, owner.address, cancelled.authorization.nonce),
          transaction: await chain.request('eth_getTransactionByHash', [settlement.transaction]),
          receipt: await chain.request('eth_getTransactionReceipt', [approvalHash]),
          block: await chain.request('eth_getBlockByNumber', [`0x${settlement.block!.toString(16)}`, true]),
          logs: await chain.request('eth_getLogs', [{ fromBlock: '0x0', toBlock: 'latest', address: USDC }]),
        }
      }
      const before = await readChain(first)
      const headBefore = BigInt((await first.request('eth_blockNumber')) as string)
      expect(before).toMatchObject({
        supply: 5_000_000n,
        balances: [4_989_600n, 400n, 10_000n],
        allowance: 700n,
        permits: 1n,
        counts: [1, 3],
        payment: { used: true, transaction: settlement.transaction, transfer: { value: 10_000n } },
        cancelled: { used: true, transfer: null },
      })
      expect(before.logs).toHaveLength(9)
      await first.close()
      await expect(first.request('eth_blockNumber')).rejects.toBeInstanceOf(ChainUnreachable)

      clock.advance(3_600_000)
      const second = await createEmbeddedChain({ journal, clock, log })
      expect(await readChain(second)).toEqual(before)
      const head = (await second.request('eth_getBlockByNumber', ['latest', false])) as RpcBlock
      expect(BigInt(head.number)).toBeGreaterThan(headBefore)
      expect(Number(head.timestamp)).toBe(Math.floor(clock.now().getTime() / 1000))
      expect(await second.request('eth_getBlockByHash', [(before.block as RpcBlock).hash, true])).toEqual(before.block)

      // A new facilitator finds the old payment, and new payments work.
      const facilitator = createFacilitator(second)
      expect(await facilitator.verify(payment, terms)).toMatchObject({ valid: false })
      expect(await facilitator.settle(payment, terms)).toMatchObject({
        state: 'settled',
        transaction: settlement.transaction,
      })
      const next = await facilitator.settle(await signPayment(owner, terms, { clock }), terms)
      expect(next).toMatchObject({ state: 'settled' })
      expect((next as typeof settlement).block!).toBeGreaterThan(headBefore)
      await expect(second.request('eth_call', [{ to: USDC, data: '0x' }, '0x1'])).rejects.toThrow('not available')
      await second.close()

      // The first payment has expired, so a start no longer loads it; the journal still reports it as used.
      const third = await createEmbeddedChain({ journal, clock, log })
      const reader = createChainReader(third)
      expect(await reader.authorization(USDC, owner.address, payment.authorization.nonce)).toEqual(before.payment)
      expect(await createFacilitator(third).settle(payment, terms)).toMatchObject({
        state: 'settled',
        transaction: settlement.transaction,
      })
      expect(await reader.balanceOf(USDC, PAY_TO)).toBe(20_000n)
      await third.close()
    })

    test('only the process that took the journal over can write', async () => {
      const formerOwner = await createEmbeddedChain({ journal, clock, log })
      const newOwner = await createEmbeddedChain({ journal, clock, log })
      const account = createPayer().address
      await expect(formerOwner.mint(account, 1n)).rejects.toBeInstanceOf(ChainUnreachable)
      await newOwner.mint(account, 2n)
      await expect(formerOwner.mint(account, 1n)).rejects.toThrow('taken over')
      expect(await createChainReader(newOwner).balanceOf(USDC, account)).toBe(2n)
      await newOwner.close()
    })

    test('logs are found by block, address and topics', async () => {
      const chain = await createEmbeddedChain({ journal, clock, log })
      const [firstAccount, secondAccount] = [createPayer().address, createPayer().address]
      const [hash] = [await chain.mint(firstAccount, 1n), await chain.mint(secondAccount, 2n)]
      const receipt = (await chain.request('eth_getTransactionReceipt', [hash])) as RpcReceipt
      const findLogs = async (filter: object) => (await chain.request('eth_getLogs', [filter])) as RpcLog[]
      const blockFilter = { fromBlock: receipt.blockNumber, toBlock: receipt.blockNumber }
      expect(await findLogs(blockFilter)).toEqual(receipt.logs)
      expect(await findLogs({ blockHash: receipt.blockHash })).toEqual(receipt.logs)
      expect(await findLogs({ ...blockFilter, address: MULTICALL3 })).toEqual([])
      expect(
        await findLogs({
          fromBlock: '0x0',
          topics: [null, null, `0x${firstAccount.slice(2).toLowerCase().padStart(64, '0')}`],
        }),
      ).toHaveLength(2)
      expect(
        await findLogs({ fromBlock: '0x0', topics: [receipt.logs[0]!.topics[0]!, [`0x${'00'.repeat(32)}`]] }),
      ).toHaveLength(0)
      expect(await findLogs({ blockHash: `0x${'00'.repeat(32)}` })).toEqual([])
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
  return splitSignature(signature)
}

const splitSignature = (signature: Hex) => {
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
