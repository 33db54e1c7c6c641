import { createHash } from 'node:crypto'
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs'
import { keccak256, recoverTypedDataAddress, toBytes } from 'viem'

/**
 * A chain that shares no code and no database with the service: balances and used authorisations in a file, each written
 * and flushed before it is visible, and just enough JSON-RPC to read them.
 */
export const USDC = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913'

export type Authorization = Record<'from' | 'to' | 'value' | 'validAfter' | 'validBefore' | 'nonce', string>
export type MinedTransfer = {
  hash: string
  block: number
  time: number
  from: string
  to: string
  value: string
  nonce: string | null
}

const topic = (signature: string) => keccak256(toBytes(signature))
const TRANSFER = topic('Transfer(address,address,uint256)')
const USED = topic('AuthorizationUsed(address,bytes32)')
const BALANCE_OF = topic('balanceOf(address)').slice(0, 10)
const AUTHORIZATION_STATE = topic('authorizationState(address,bytes32)').slice(0, 10)
const ZERO_ADDRESS = `0x${'0'.repeat(40)}`

const lower = (text: string) => text.toLowerCase()
const word = (value: string) => `0x${value.replace(/^0x/, '').padStart(64, '0')}`
const quantity = (value: number | bigint) => `0x${value.toString(16)}`
/** How far the chain's clock is ahead of the system's, in seconds. */
let offset = 0
const currentSeconds = () => Math.floor(Date.now() / 1000) + offset

export const readTransfers = (file: string): MinedTransfer[] =>
  existsSync(file)
    ? readFileSync(file, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line))
    : []

export function computeBalances(transfers: readonly MinedTransfer[]): Map<string, bigint> {
  const balances = new Map<string, bigint>()
  const add = (address: string, amount: bigint) => balances.set(address, (balances.get(address) ?? 0n) + amount)
  for (const { from, to, value } of transfers) {
    if (from !== ZERO_ADDRESS) add(from, -BigInt(value))
    add(to, BigInt(value))
  }
  return balances
}

export type ExternalChain = ReturnType<typeof openExternalChain>

export function openExternalChain(file: string) {
  const transfers = readTransfers(file)
  const balances = computeBalances(transfers)
  const uses = new Map(
    transfers.flatMap((transfer) =>
      transfer.nonce ? [[`${transfer.from}:${transfer.nonce}`, transfer] as const] : [],
    ),
  )
  const hashes = new Map(transfers.map((transfer) => [transfer.hash, transfer]))
  const journal = openSync(file, 'a')

  const mine = (from: string, to: string, value: string, nonce: string | null): MinedTransfer => {
    const block = transfers.length + 1
    const hash = `0x${createHash('sha256').update(`${block}:${from}:${to}:${value}:${nonce}`).digest('hex')}`
    const transfer: MinedTransfer = { hash, block, time: currentSeconds(), from, to, value, nonce }
    writeSync(journal, `${JSON.stringify(transfer)}\n`)
    fsyncSync(journal)
    transfers.push(transfer)
    hashes.set(hash, transfer)
    if (nonce) uses.set(`${from}:${nonce}`, transfer)
    if (from !== ZERO_ADDRESS) balances.set(from, balances.get(from)! - BigInt(value))
    balances.set(to, (balances.get(to) ?? 0n) + BigInt(value))
    return transfer
  }

  const logsOf = ({ hash, block, from, to, value, nonce }: MinedTransfer) => {
    const common = {
      address: USDC,
      blockNumber: quantity(block),
      blockHash: hash,
      transactionHash: hash,
      transactionIndex: '0x0',
    }
    const transfer = {
      ...common,
      topics: [TRANSFER, word(from), word(to)],
      data: word(BigInt(value).toString(16)),
      logIndex: '0x1',
    }
    return nonce
      ? [{ ...common, topics: [USED, word(from), nonce], data: '0x', logIndex: '0x0' }, transfer]
      : [transfer]
  }

  const call = (data: string): string => {
    const address = `0x${data.slice(34, 74)}`
    if (data.startsWith(BALANCE_OF)) return word((balances.get(address) ?? 0n).toString(16))
    if (data.startsWith(AUTHORIZATION_STATE)) return word(uses.has(`${address}:0x${data.slice(74, 138)}`) ? '1' : '0')
    throw new Error(`no such method: ${data.slice(0, 10)}`)
  }

  type Filter = { topics: [string[], string, string] }
  const methods: Record<string, (params: never) => unknown> = {
    eth_blockNumber: () => quantity(transfers.length),
    eth_getBlockByNumber: () => ({
      number: quantity(transfers.length),
      hash: word('1'),
      timestamp: quantity(currentSeconds()),
    }),
    eth_getCode: () => '0x',
    eth_call: ([{ data }]: [{ data: string }]) => call(lower(data)),
    eth_getLogs: ([{ topics }]: [Filter]) => {
      const use = uses.get(`0x${topics[1].slice(-40)}:${topics[2]}`)
      return use ? [logsOf(use)[0]] : []
    },
    eth_getTransactionReceipt: ([hash]: string[]) => {
      const transfer = hashes.get(hash!)
      return transfer
        ? { transactionHash: hash, blockNumber: quantity(transfer.block), status: '0x1', logs: logsOf(transfer) }
        : null
    },
  }

  return {
    mint: (to: string, value: bigint) => mine(ZERO_ADDRESS, lower(to), value.toString(), null),
    hashes: () => [...hashes.keys()],
    advance: (deltaSeconds: number) => {
      offset += deltaSeconds
    },

    /** The reason why the token would refuse this authorisation. */
    async findRefusal(
      { from, to, value, validAfter, validBefore, nonce }: Authorization,
      signature: string,
    ): Promise<string | undefined> {
      if (Number(validBefore) <= currentSeconds()) return 'invalid_exact_evm_payload_authorization_valid_before'
      if (Number(validAfter) > currentSeconds()) return 'invalid_exact_evm_payload_authorization_valid_after'
      if (uses.has(`${lower(from)}:${lower(nonce)}`)) return 'invalid_exact_evm_nonce_already_used'
      if ((balances.get(lower(from)) ?? 0n) < BigInt(value)) return 'invalid_exact_evm_insufficient_balance'
      const signer = await recoverTypedDataAddress({
        domain: { name: 'USD Coin', version: '2', chainId: 8453, verifyingContract: USDC },
        types: {
          TransferWithAuthorization: [
            { name: 'from', type: 'address' },
            { name: 'to', type: 'address' },
            { name: 'value', type: 'uint256' },
            { name: 'validAfter', type: 'uint256' },
            { name: 'validBefore', type: 'uint256' },
            { name: 'nonce', type: 'bytes32' },
          ],
        },
        primaryType: 'TransferWithAuthorization',
        message: {
          from,
          to,
          value: BigInt(value),
          validAfter: BigInt(validAfter),
          validBefore: BigInt(validBefore),
          nonce,
        } as never,
        signature: signature as `0x${string}`,
      })
      return lower(signer) === lower(from) ? undefined : 'invalid_exact_evm_signature'
    },

    findUse: ({ from, nonce }: Authorization) => uses.get(`${lower(from)}:${lower(nonce)}`),

    /** Moves the money once: a second call returns the first transfer. */
    transfer({ from, to, value, nonce }: Authorization): MinedTransfer {
      const existing = uses.get(`${lower(from)}:${lower(nonce)}`)
      if (existing) return existing
      if ((balances.get(lower(from)) ?? 0n) < BigInt(value)) throw new Error('exceeds balance')
      return mine(lower(from), lower(to), value, lower(nonce))
    },

    rpc({ id, method, params }: { id: number; method: string; params: never }) {
      const handler = methods[method]
      if (!handler) return { jsonrpc: '2.0', id, error: { code: -32601, message: `no ${method} here` } }
      return { jsonrpc: '2.0', id, result: handler(params) }
    },

    close: () => closeSync(journal),
  }
}
