/** Writes the journalled state into a fresh EVM, through the loader that stands at the token's address for the moment. */
import type { Hex } from '../../modules/payments/facilitator.ts'
import { encodeArrays, encodeCall, quantity, SELECTOR } from './codec.ts'
import { BLOCK_GAS_LIMIT, LOADER, USDC } from './edr.ts'
import type { JournalState } from './journal.ts'
import type { ChainRequest, RpcReceipt } from './rpc.ts'

// A new storage slot costs 22,100 gas; this many of them stay under the block's limit.
const SLOTS_PER_BLOCK = 500

export async function restoreState(send: ChainRequest, state: JournalState): Promise<void> {
  const load = async (data: Hex) => {
    await send('evm_setNextBlockTimestamp', [quantity(state.time)])
    const transaction = { from: LOADER, to: USDC, data, gas: quantity(BLOCK_GAS_LIMIT), gasPrice: '0x0' }
    const hash = await send('eth_sendTransaction', [transaction])
    const receipt = (await send('eth_getTransactionReceipt', [hash])) as RpcReceipt
    if (receipt.status !== '0x1') throw new Error('The journalled state could not be written into the chain.')
  }

  if (state.supplyMicro > 0n) await load(encodeCall(SELECTOR.restoreSupply, state.supplyMicro))
  for await (const rows of inChunks(state.balances)) {
    const owners = rows.map((row) => row.owner)
    await load(
      encodeArrays(
        SELECTOR.restoreBalances,
        owners,
        rows.map((row) => row.amountMicro),
      ),
    )
  }
  for await (const rows of inChunks(state.authorizations)) {
    const authorizers = rows.map((row) => row.authorizer)
    await load(
      encodeArrays(
        SELECTOR.restoreAuthorizations,
        authorizers,
        rows.map((row) => row.nonce),
      ),
    )
  }
  for await (const rows of inChunks(state.allowances)) {
    const [owners, spenders] = [rows.map((row) => row.owner), rows.map((row) => row.spender)]
    await load(
      encodeArrays(
        SELECTOR.restoreAllowances,
        owners,
        spenders,
        rows.map((row) => row.amount),
      ),
    )
  }
  for await (const rows of inChunks(state.permitNonces)) {
    const owners = rows.map((row) => row.owner)
    await load(
      encodeArrays(
        SELECTOR.restorePermitNonces,
        owners,
        rows.map((row) => row.count),
      ),
    )
  }

  for await (const accounts of state.accounts) {
    for (const { address, nonce } of accounts) await send('hardhat_setNonce', [address, quantity(nonce)])
  }
}

async function* inChunks<Row>(pages: AsyncIterable<Row[]>): AsyncGenerator<Row[]> {
  for await (const rows of pages) {
    for (let start = 0; start < rows.length; start += SLOTS_PER_BLOCK) yield rows.slice(start, start + SLOTS_PER_BLOCK)
  }
}
