/**
 * The embedded development chain: an EVM in this process with USDC where Base has it, and a journal that makes it
 * durable. Rules:
 * - a mined transaction is in the journal before its sender, or any reader, hears of it;
 * - when the journal cannot be written, the EVM is thrown away and built again from what the journal holds;
 * - block numbers and time only go forward, over restarts too; there is no queue of waiting transactions; gas is free.
 * Contracts that were deployed by transactions live until the process ends: only the token's state is rebuilt, and of its
 * used authorisations those that have not expired. Whether an older one was used, the journal says.
 */

import type { Hex } from '../../modules/payments/facilitator.ts'
import type { Clock } from '../../platform/clock.ts'
import { encodeCall, larger, quantity, SELECTOR } from './codec.ts'
import { createEvm, MINTER, USDC } from './edr.ts'
import { createGate } from './gate.ts'
import { type ChainJournal, JournalTaken, type MinedTransaction } from './journal.ts'
import { answerFromJournal } from './journal-answers.ts'
import { isAllowed, isTimeSensitive, readsState, withinLimits } from './methods.ts'
import { restoreState } from './restore.ts'
import {
  type ChainRequest,
  ChainUnreachable,
  type RpcBlock,
  RpcError,
  type RpcReceipt,
  type RpcTransaction,
} from './rpc.ts'
import { tokenEffects } from './token-effects.ts'

export type EmbeddedChain = {
  /** Any allowed JSON-RPC method. */
  request: ChainRequest
  /** The faucet: gives an account test USDC, and the transaction that did it. */
  mint(to: Hex, amountMicro: bigint): Promise<Hex>
  close(): Promise<void>
}

export type ChainLog = {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
}

type Deps = { journal: ChainJournal; clock: Clock; log: ChainLog }

type Live = {
  send: ChainRequest
  epoch: bigint
  /** The state of blocks before this one is not kept. */
  firstBlock: bigint
  reservedBlock: bigint
  headNumber: bigint
  headTime: bigint
  /** Whoever sent a transaction asks for its receipt at once; a large one is not worth reading twice. */
  recent: Map<string, RpcReceipt>
}

// Numbers are reserved in steps: a start skips at most this many, and appending seldom pays for it.
const RESERVE_STEP = 1_000n
const MINT_GAS = 200_000
const RECENT_RECEIPTS = 16

export async function createEmbeddedChain({ journal, clock, log }: Deps): Promise<EmbeddedChain> {
  const gate = createGate()
  let live: Promise<Live> | undefined
  let ended: string | undefined

  const now = () => BigInt(Math.floor(clock.now().getTime() / 1000))

  const boot = async (): Promise<Live> => {
    const startedAt = performance.now()
    const state = await journal.load()
    const { send, finishLoading } = await createEvm(state.time > 0n ? state.time : now())
    await restoreState(send, state)
    await finishLoading()
    const loaded = BigInt((await send('eth_blockNumber')) as string)
    const headNumber = larger(state.reservedBlock, loaded)
    if (headNumber > loaded) await send('hardhat_mine', [quantity(headNumber - loaded), '0x0'])
    const head = (await send('eth_getBlockByNumber', ['latest', false])) as RpcBlock
    const booted: Live = {
      send,
      epoch: state.epoch,
      firstBlock: headNumber,
      reservedBlock: state.reservedBlock,
      headNumber,
      headTime: BigInt(head.timestamp),
      recent: new Map(),
    }
    await reserve(booted)
    log.info(
      {
        block: headNumber.toString(),
        supply_micro: state.supplyMicro.toString(),
        ms: Math.round(performance.now() - startedAt),
      },
      'embedded chain ready',
    )
    return booted
  }

  const reserve = async (chain: Live) => {
    if (chain.headNumber + RESERVE_STEP / 10n < chain.reservedBlock) return
    const upTo = chain.headNumber + RESERVE_STEP
    await journal.reserveBlocks(chain.epoch, upTo)
    chain.reservedBlock = upTo
  }

  const alive = async (): Promise<Live> => {
    if (ended) throw new ChainUnreachable(ended)
    live ??= boot()
    try {
      return await live
    } catch (cause) {
      live = undefined
      if (cause instanceof JournalTaken) ended = cause.message
      throw new ChainUnreachable('The embedded chain cannot read its journal.', { cause })
    }
  }

  /** Mines with `submit`, journals the block that came of it, and only then gives the outcome away. */
  const mine = async <Result>(chain: Live, submit: () => Promise<Result>, raw: Hex | null): Promise<Result> => {
    try {
      await reserve(chain)
      await evm(chain, 'evm_setNextBlockTimestamp', [quantity(larger(now(), chain.headTime))])
      const outcome = await submit().then(
        (value) => ({ value }),
        (error: unknown) => ({ error }),
      )
      await keepNewBlock(chain, raw)
      if ('error' in outcome) throw outcome.error
      return outcome.value
    } catch (error) {
      if (error instanceof RpcError) throw error
      // The EVM may now hold what the journal does not. What is not in the journal never happened.
      live = undefined
      if (error instanceof JournalTaken) ended = error.message
      log.warn({ err: error }, 'embedded chain could not write its journal and will be built again from it')
      throw new ChainUnreachable('The embedded chain could not write its journal.', { cause: error })
    }
  }

  /** A submission mines one block, or none when the EVM refused it. */
  const keepNewBlock = async (chain: Live, raw: Hex | null) => {
    const latest = (await evm(chain, 'eth_getBlockByNumber', ['latest', true])) as RpcBlock & {
      transactions: RpcTransaction[]
    }
    const { transactions, ...header } = latest
    const number = BigInt(header.number)
    if (number === chain.headNumber) return
    if (number !== chain.headNumber + 1n) throw new Error(`Block ${number} came after block ${chain.headNumber}.`)
    if (transactions.length > 0) {
      const receipts = await Promise.all(
        transactions.map(({ hash }) => evm(chain, 'eth_getTransactionReceipt', [hash]) as Promise<RpcReceipt>),
      )
      const mined: MinedTransaction[] = transactions.map((transaction, index) => ({
        transaction,
        receipt: receipts[index]!,
        raw,
      }))
      const effects = await tokenEffects(mined, (method, params) => evm(chain, method, params))
      await journal.append(chain.epoch, { header: header as RpcBlock, transactions: mined, effects })
      for (const receipt of receipts) keepReceipt(chain.recent, receipt)
    }
    chain.headNumber = number
    chain.headTime = BigInt(header.timestamp)
  }

  /** The EVM's own refusals while we collect are not the caller's: they must not pass for a definite answer. */
  const evm = async (chain: Live, method: string, params: readonly unknown[] = []) => {
    try {
      return await chain.send(method, params)
    } catch (cause) {
      throw new Error(`The embedded chain refused ${method}.`, { cause })
    }
  }

  const sendRaw = (raw: unknown) =>
    gate.write(async () => {
      if (typeof raw !== 'string' || !/^0x([0-9a-f]{2})+$/i.test(raw))
        throw new RpcError(-32602, 'not a raw transaction')
      const chain = await alive()
      return mine(chain, () => chain.send('eth_sendRawTransaction', [raw]), raw.toLowerCase() as Hex)
    })

  /** Time passes on a chain although nobody sends anything; here a block is mined when somebody looks. */
  const catchUp = async () => {
    const behind = async () => now() > (await alive()).headTime
    if (!(await gate.read(behind))) return
    await gate.write(async () => {
      const chain = await alive()
      if (now() > chain.headTime) await mine(chain, () => chain.send('evm_mine'), null)
    })
  }

  const request: ChainRequest = async (method, params = []) => {
    if (!isAllowed(method)) throw new RpcError(-32601, `The method ${method.slice(0, 64)} is not offered here.`)
    if (method === 'eth_sendRawTransaction') return sendRaw(params[0])
    if (method === 'eth_gasPrice' || method === 'eth_maxPriorityFeePerGas') return '0x0'
    if (isTimeSensitive(method, params)) await catchUp()
    return gate.read(async () => {
      const chain = await alive()
      if (readsState(method, params, chain.firstBlock) === 'too_old') {
        throw new RpcError(-32000, `The state of blocks before ${chain.firstBlock} is not kept.`)
      }
      const kept = await answerFromJournal(journal, chain, method, params)
      return kept === undefined ? chain.send(method, withinLimits(method, params)) : kept
    })
  }

  const mint = (to: Hex, amountMicro: bigint) =>
    gate.write(async () => {
      const chain = await alive()
      const transaction = {
        from: MINTER,
        to: USDC,
        data: encodeCall(SELECTOR.mint, to, amountMicro),
        gas: quantity(MINT_GAS),
        gasPrice: '0x0',
      }
      const hash = (await mine(chain, () => chain.send('eth_sendTransaction', [transaction]), null)) as Hex
      const receipt = (await chain.send('eth_getTransactionReceipt', [hash])) as RpcReceipt
      if (receipt.status !== '0x1') throw new RpcError(3, 'The token refused to mint.')
      return hash
    })

  await alive()
  return {
    request,
    mint,
    close: () =>
      gate.write(async () => {
        ended = 'The embedded chain is closed.'
        live = undefined
      }),
  }
}

function keepReceipt(recent: Live['recent'], receipt: RpcReceipt) {
  if (recent.size >= RECENT_RECEIPTS) recent.delete(recent.keys().next().value!)
  recent.set(receipt.transactionHash, receipt)
}
