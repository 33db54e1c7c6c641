/** A journal in memory, for tests and benches that need no durable chain. */

import {
  type ChainJournal,
  JournalTakenOver,
  type MinedBlock,
  type MinedTransaction,
  type UsedAuthorization,
} from '../../src/adapters/chain/journal.ts'
import type { Hex } from '../../src/modules/payments/facilitator.ts'

export function createMemoryJournal(): ChainJournal {
  let epoch = 0n
  let reservedBlock = 0n
  let time = 0n
  let supplyMicro = 0n
  const blocks = new Map<bigint, MinedBlock>()
  const numbers = new Map<string, bigint>()
  const transactions = new Map<string, MinedTransaction>()
  const balances = new Map<Hex, bigint>()
  const authorizations = new Map<string, UsedAuthorization>()
  const allowances = new Map<string, { owner: Hex; spender: Hex; amount: bigint }>()
  const permitNonces = new Map<Hex, bigint>()
  const accounts = new Map<Hex, bigint>()

  const requireEpoch = (claimed: bigint) => {
    if (claimed !== epoch) throw new JournalTakenOver()
  }
  async function* toPages<Item>(items: Item[]) {
    if (items.length > 0) yield items
  }

  return {
    async load() {
      epoch += 1n
      return {
        epoch,
        reservedBlock,
        time,
        supplyMicro,
        balances: toPages([...balances].map(([owner, amountMicro]) => ({ owner, amountMicro }))),
        authorizations: toPages(
          [...authorizations.values()].filter(({ validBefore }) => validBefore === null || validBefore > time),
        ),
        allowances: toPages([...allowances.values()]),
        permitNonces: toPages([...permitNonces].map(([owner, count]) => ({ owner, count }))),
        accounts: toPages([...accounts].map(([address, nonce]) => ({ address, nonce }))),
      }
    },

    async append(claimed, block) {
      requireEpoch(claimed)
      const number = BigInt(block.header.number)
      if (blocks.has(number)) throw new Error(`Block ${number} is in the journal already.`)
      blocks.set(number, block)
      numbers.set(block.header.hash, number)
      if (number > reservedBlock) reservedBlock = number
      time = BigInt(block.header.timestamp)
      for (const mined of block.transactions) {
        transactions.set(mined.transaction.hash, mined)
        accounts.set(mined.transaction.from as Hex, BigInt(mined.transaction.nonce) + 1n)
      }
      const { effects } = block
      supplyMicro += effects.supplyDeltaMicro
      for (const { owner, deltaMicro } of effects.balanceDeltas) {
        balances.set(owner, (balances.get(owner) ?? 0n) + deltaMicro)
      }
      for (const authorization of effects.authorizations)
        authorizations.set(`${authorization.authorizer}${authorization.nonce}`, authorization)
      for (const allowance of effects.allowances) allowances.set(`${allowance.owner}${allowance.spender}`, allowance)
      for (const { owner, count } of effects.permitNonces) permitNonces.set(owner, count)
    },

    async reserveBlocks(claimed, upTo) {
      requireEpoch(claimed)
      if (upTo > reservedBlock) reservedBlock = upTo
    },

    async isAuthorizationUsed(authorizer, nonce) {
      return authorizations.has(`${authorizer}${nonce}`)
    },

    async findTransaction(hash) {
      return transactions.get(hash.toLowerCase()) ?? null
    },

    async findBlock(key) {
      const number = 'hash' in key ? numbers.get(key.hash.toLowerCase()) : key.number
      const block = number === undefined ? undefined : blocks.get(number)
      return block ? { header: block.header, transactions: block.transactions.map((mined) => mined.transaction) } : null
    },

    async findReceipts({ fromBlock, toBlock, authorization, limit }) {
      const use = authorization && authorizations.get(`${authorization.authorizer}${authorization.nonce}`)
      const candidates = authorization
        ? use
          ? [transactions.get(use.transaction)!]
          : []
        : [...blocks.values()].flatMap((block) => block.transactions)
      const receipts = candidates
        .map((mined) => mined.receipt)
        .filter((receipt) => BigInt(receipt.blockNumber) >= fromBlock && BigInt(receipt.blockNumber) <= toBlock)
      return receipts.length > limit ? 'too_many' : receipts
    },
  }
}
