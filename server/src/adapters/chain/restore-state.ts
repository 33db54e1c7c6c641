/** Writes the journalled state into a new EVM, through the loader contract that is at the token's address until then. */
import type { Hex } from '../../modules/payments/facilitator.ts'
import { encodeArrays, encodeCall, SELECTOR, toQuantity } from './codec.ts'
import { BLOCK_GAS_LIMIT, LOADER, USDC } from './edr.ts'
import type { JournalState } from './journal.ts'
import type { ChainRequest, RpcReceipt } from './rpc.ts'

// A new storage slot costs 22,100 gas; this many fit under the block gas limit.
const SLOTS_PER_BLOCK = 500

export async function restoreState(send: ChainRequest, state: JournalState): Promise<void> {
  const write = async (data: Hex) => {
    await send('evm_setNextBlockTimestamp', [toQuantity(state.time)])
    const transaction = { from: LOADER, to: USDC, data, gas: toQuantity(BLOCK_GAS_LIMIT), gasPrice: '0x0' }
    const hash = await send('eth_sendTransaction', [transaction])
    const receipt = (await send('eth_getTransactionReceipt', [hash])) as RpcReceipt
    if (receipt.status !== '0x1') throw new Error('The journalled state could not be written into the chain.')
  }

  if (state.supplyMicro > 0n) await write(encodeCall(SELECTOR.restoreSupply, state.supplyMicro))
  for await (const rows of splitPages(state.balances)) {
    const owners = rows.map((row) => row.owner)
    await write(
      encodeArrays(
        SELECTOR.restoreBalances,
        owners,
        rows.map((row) => row.amountMicro),
      ),
    )
  }
  for await (const rows of splitPages(state.authorizations)) {
    const authorizers = rows.map((row) => row.authorizer)
    await write(
      encodeArrays(
        SELECTOR.restoreAuthorizations,
        authorizers,
        rows.map((row) => row.nonce),
      ),
    )
  }
  for await (const rows of splitPages(state.allowances)) {
    const [owners, spenders] = [rows.map((row) => row.owner), rows.map((row) => row.spender)]
    await write(
      encodeArrays(
        SELECTOR.restoreAllowances,
        owners,
        spenders,
        rows.map((row) => row.amount),
      ),
    )
  }
  for await (const rows of splitPages(state.permitNonces)) {
    const owners = rows.map((row) => row.owner)
    await write(
      encodeArrays(
        SELECTOR.restorePermitNonces,
        owners,
        rows.map((row) => row.count),
      ),
    )
  }

  for await (const accounts of state.accounts) {
    for (const { address, nonce } of accounts) await send('hardhat_setNonce', [address, toQuantity(nonce)])
  }
}

async function* splitPages<Row>(pages: AsyncIterable<Row[]>): AsyncGenerator<Row[]> {
  for await (const rows of pages) {
    for (let start = 0; start < rows.length; start += SLOTS_PER_BLOCK) yield rows.slice(start, start + SLOTS_PER_BLOCK)
  }
}
