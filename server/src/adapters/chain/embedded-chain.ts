/**
 * The embedded development chain: an EVM in this process with USDC where Base has it, and a journal that makes it
 * durable. Rules:
 * - a mined transaction is in the journal before its sender or any reader can see it;
 * - when the journal cannot be written, the EVM is discarded and rebuilt from the journal;
 * - block numbers and time only increase, across restarts too; there is no transaction pool; gas is free.
 * Contracts deployed by transactions last until the process ends: a restart rebuilds only the token's state, and of the
 * used authorisations only those that have not expired. Requests about older ones are answered from the journal.
 */

import type { Hex } from '../../modules/payments/facilitator.ts'
import type { Clock } from '../../platform/clock.ts'
import { encodeCall, keccak, maxBigInt, SELECTOR, toBytes, toHex, toQuantity } from './codec.ts'
import { createEvm, type Evm, type EvmCall, MINTER, USDC } from './edr.ts'
import { type ChainJournal, JournalTakenOver, type MinedTransaction } from './journal.ts'
import { answerFromJournal } from './journal-rpc.ts'
import { createReadWriteLock } from './read-write-lock.ts'
import { restoreState } from './restore-state.ts'
import {
  type ChainRequest,
  ChainUnreachable,
  type RpcBlock,
  RpcError,
  type RpcReceipt,
  type RpcTransaction,
} from './rpc.ts'
import { isAllowed, isTimeSensitive, limitParams, pinToHead, stateAvailability } from './rpc-methods.ts'
import { readTokenEffects } from './token-effects.ts'

export type EmbeddedChain = {
  /** Any allowed JSON-RPC method. */
  request: ChainRequest
  /** The faucet: mints test USDC to an account and returns the transaction hash. */
  mint(to: Hex, amountMicro: bigint): Promise<Hex>
  /** Whether another process has taken the journal over, so that this chain is not the current one any more. */
  isTakenOver(): boolean
  close(): Promise<void>
}

export type ChainLog = {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
}

type Deps = { journal: ChainJournal; clock: Clock; log: ChainLog }

type RunningEvm = Evm & {
  epoch: bigint
  /** The state of earlier blocks is not available. */
  firstBlock: bigint
  reservedBlock: bigint
  headNumber: bigint
  headTime: bigint
  /** Senders ask for the receipt right after sending; caching it avoids reading a large one twice. */
  recentReceipts: Map<string, RpcReceipt>
}

// Block numbers are reserved in steps: a restart skips at most this many, and few appends need to reserve.
const RESERVE_STEP = 1_000n
const MINT_GAS = 200_000
const MAX_RECENT_RECEIPTS = 16
const READ_LATEST: EvmCall = ['eth_getBlockByNumber', ['latest', true]]

type MinedRpcBlock = RpcBlock & { transactions: RpcTransaction[] }

export async function createEmbeddedChain({ journal, clock, log }: Deps): Promise<EmbeddedChain> {
  const lock = createReadWriteLock()
  let running: Promise<RunningEvm> | undefined
  let closedReason: string | undefined
  let takenOver = false
  const noteTakeOver = (error: unknown) => {
    if (!(error instanceof JournalTakenOver)) return
    takenOver = true
    closedReason = error.message
  }

  const now = () => BigInt(Math.floor(clock.now().getTime() / 1000))

  const startEvm = async (): Promise<RunningEvm> => {
    const startedAt = performance.now()
    const state = await journal.load()
    const { finishLoading, ...evm } = await createEvm(state.time > 0n ? state.time : now())
    const { send } = evm
    await restoreState(send, state)
    await finishLoading()
    const loadedBlock = BigInt((await send('eth_blockNumber')) as string)
    const headNumber = maxBigInt(state.reservedBlock, loadedBlock)
    if (headNumber > loadedBlock) await send('hardhat_mine', [toQuantity(headNumber - loadedBlock), '0x0'])
    const head = (await send('eth_getBlockByNumber', ['latest', false])) as RpcBlock
    const startedEvm: RunningEvm = {
      ...evm,
      epoch: state.epoch,
      firstBlock: headNumber,
      reservedBlock: state.reservedBlock,
      headNumber,
      headTime: BigInt(head.timestamp),
      recentReceipts: new Map(),
    }
    await reserveBlocks(startedEvm)
    log.info(
      {
        block: headNumber.toString(),
        supply_micro: state.supplyMicro.toString(),
        ms: Math.round(performance.now() - startedAt),
      },
      'embedded chain ready',
    )
    return startedEvm
  }

  const reserveBlocks = async (evm: RunningEvm) => {
    if (evm.headNumber + RESERVE_STEP / 10n < evm.reservedBlock) return
    const upTo = evm.headNumber + RESERVE_STEP
    await journal.reserveBlocks(evm.epoch, upTo)
    evm.reservedBlock = upTo
  }

  const getEvm = async (): Promise<RunningEvm> => {
    if (closedReason) throw new ChainUnreachable(closedReason)
    running ??= startEvm()
    try {
      return await running
    } catch (cause) {
      running = undefined
      noteTakeOver(cause)
      throw new ChainUnreachable('The embedded chain cannot read its journal.', { cause })
    }
  }

  /**
   * Sends a call that mines, journals the resulting block, and only then returns what the call returned. `raw` is the
   * transaction where it was signed by somebody else.
   */
  const mine = async (evm: RunningEvm, call: EvmCall, raw: Hex | null = null): Promise<unknown> => {
    try {
      await reserveBlocks(evm)
      const outcome = await evm
        .sendAll([
          ['evm_setNextBlockTimestamp', [toQuantity(maxBigInt(now(), evm.headTime))]],
          call,
          READ_LATEST,
          ...(raw ? [['eth_getTransactionReceipt', [toHex(keccak(toBytes(raw)))]] satisfies EvmCall] : []),
        ])
        .then(
          ([, value, latest, receipt]) => ({ value, latest: latest as MinedRpcBlock, receipt }),
          (error: unknown) => ({ error }),
        )
      if (!('error' in outcome)) {
        await journalNewBlock(evm, outcome.latest, raw, outcome.receipt as RpcReceipt | null | undefined)
        return outcome.value
      }
      const latest = (await callEvm(evm, ...READ_LATEST)) as MinedRpcBlock
      if (await journalNewBlock(evm, latest, raw)) throw new Error('A block was mined, and its call failed.')
      throw outcome.error
    } catch (error) {
      if (error instanceof RpcError) throw error
      // The EVM may now hold a transaction that the journal does not: discard the EVM, because the journal is authoritative.
      running = undefined
      noteTakeOver(error)
      log.warn({ err: error }, 'embedded chain could not write its journal and will be rebuilt from it')
      throw new ChainUnreachable('The embedded chain could not write its journal.', { cause: error })
    }
  }

  /** A call mines one block, or none when the EVM refused it; returns whether it did. `receipt` is one of its own, if there is any. */
  const journalNewBlock = async (
    evm: RunningEvm,
    { transactions, ...header }: MinedRpcBlock,
    raw: Hex | null,
    receipt?: RpcReceipt | null,
  ): Promise<boolean> => {
    const number = BigInt(header.number)
    if (number === evm.headNumber) return false
    if (number !== evm.headNumber + 1n) throw new Error(`Block ${number} came after block ${evm.headNumber}.`)
    if (transactions.length > 0) {
      const readReceipt = async (hash: string) =>
        receipt?.transactionHash === hash
          ? receipt
          : ((await callEvm(evm, 'eth_getTransactionReceipt', [hash])) as RpcReceipt)
      const receipts = await Promise.all(transactions.map(({ hash }) => readReceipt(hash)))
      const mined: MinedTransaction[] = transactions.map((transaction, index) => ({
        transaction,
        receipt: receipts[index]!,
        raw,
      }))
      const effects = await readTokenEffects(mined, (method, params) => callEvm(evm, method, params))
      await journal.append(evm.epoch, { header: header as RpcBlock, transactions: mined, effects })
      for (const minedReceipt of receipts) cacheReceipt(evm.recentReceipts, minedReceipt)
    }
    evm.headNumber = number
    evm.headTime = BigInt(header.timestamp)
    return true
  }

  /** Errors of internal calls are not answers to the caller's request, so they must not surface as an RpcError. */
  const callEvm = async (evm: RunningEvm, method: string, params: readonly unknown[] = []) => {
    try {
      return await evm.send(method, params)
    } catch (cause) {
      throw new Error(`The embedded chain refused ${method}.`, { cause })
    }
  }

  const sendRaw = (raw: unknown) =>
    lock.write(async () => {
      if (typeof raw !== 'string' || !/^0x([0-9a-f]{2})+$/i.test(raw))
        throw new RpcError(-32602, 'not a raw transaction')
      const evm = await getEvm()
      return mine(evm, ['eth_sendRawTransaction', [raw]], raw.toLowerCase() as Hex)
    })

  /** Block time advances even when no transaction is sent: a block is mined when a caller reads the head. */
  const mineIfBehind = async () => {
    if (now() <= (await getEvm()).headTime) return
    await lock.write(async () => {
      const evm = await getEvm()
      if (now() > evm.headTime) await mine(evm, ['evm_mine', []])
    })
  }

  const request: ChainRequest = async (method, params = []) => {
    if (!isAllowed(method)) throw new RpcError(-32601, `The method ${method.slice(0, 64)} is not offered here.`)
    if (method === 'eth_sendRawTransaction') return sendRaw(params[0])
    if (method === 'eth_gasPrice' || method === 'eth_maxPriorityFeePerGas') return '0x0'
    if (isTimeSensitive(method, params)) await mineIfBehind()
    const evm = await getEvm()
    // The state of the newest journalled block is read by its number, so this need not wait for the block being mined.
    const pinnedParams = pinToHead(method, params, evm.headNumber)
    return pinnedParams ? read(evm, method, pinnedParams) : lock.read(async () => read(await getEvm(), method, params))
  }

  const read = async (evm: RunningEvm, method: string, params: readonly unknown[]) => {
    if (stateAvailability(method, params, evm.firstBlock) === 'too_old') {
      throw new RpcError(-32000, `The state of blocks before ${evm.firstBlock} is not available.`)
    }
    const journalAnswer = await answerFromJournal(journal, evm, method, params)
    return journalAnswer === undefined ? evm.send(method, limitParams(method, params)) : journalAnswer
  }

  const mint = (to: Hex, amountMicro: bigint) =>
    lock.write(async () => {
      const evm = await getEvm()
      const transaction = {
        from: MINTER,
        to: USDC,
        data: encodeCall(SELECTOR.mint, to, amountMicro),
        gas: toQuantity(MINT_GAS),
        gasPrice: '0x0',
      }
      const hash = (await mine(evm, ['eth_sendTransaction', [transaction]])) as Hex
      const receipt = (await evm.send('eth_getTransactionReceipt', [hash])) as RpcReceipt
      if (receipt.status !== '0x1') throw new RpcError(3, 'The token refused to mint.')
      return hash
    })

  await getEvm()
  return {
    request,
    mint,
    isTakenOver: () => takenOver,
    close: () =>
      lock.write(async () => {
        closedReason = 'The embedded chain is closed.'
        running = undefined
      }),
  }
}

function cacheReceipt(recentReceipts: RunningEvm['recentReceipts'], receipt: RpcReceipt) {
  if (recentReceipts.size >= MAX_RECENT_RECEIPTS) recentReceipts.delete(recentReceipts.keys().next().value!)
  recentReceipts.set(receipt.transactionHash, receipt)
}
