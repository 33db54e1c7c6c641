/** The effects of one block on the token, read from its logs: the token emits a log for every change of its state. */
import type { Hex } from '../../modules/payments/facilitator.ts'
import { addressInWord, encodeCall, SELECTOR, TOPIC } from './codec.ts'
import { USDC } from './edr.ts'
import type { MinedTransaction, TokenEffects } from './journal.ts'
import type { ChainRequest } from './rpc.ts'

const ZERO_ADDRESS = `0x${'0'.repeat(40)}`

export async function readTokenEffects(mined: MinedTransaction[], send: ChainRequest): Promise<TokenEffects> {
  let supplyDeltaMicro = 0n
  const deltas = new Map<Hex, bigint>()
  const allowances = new Map<string, TokenEffects['allowances'][number]>()
  const authorizations: TokenEffects['authorizations'] = []
  const addDelta = (owner: Hex, deltaMicro: bigint) => {
    if (owner === ZERO_ADDRESS) supplyDeltaMicro -= deltaMicro
    else deltas.set(owner, (deltas.get(owner) ?? 0n) + deltaMicro)
  }

  const inputs = new Map(mined.map(({ transaction }) => [transaction.hash, String(transaction.input)]))
  for (const log of mined.flatMap(({ receipt }) => receipt.logs)) {
    const [kind, first, second] = log.topics
    if (log.address.toLowerCase() !== USDC || !first || !second) continue
    if (kind === TOPIC.transfer) {
      addDelta(addressInWord(first), -BigInt(log.data))
      addDelta(addressInWord(second), BigInt(log.data))
    } else if (kind === TOPIC.approval) {
      const [owner, spender] = [addressInWord(first), addressInWord(second)]
      allowances.set(`${owner}${spender}`, { owner, spender, amount: BigInt(log.data) })
    } else if (kind === TOPIC.authorizationUsed || kind === TOPIC.authorizationCanceled) {
      authorizations.push({
        authorizer: addressInWord(first),
        nonce: second as Hex,
        cancelled: kind === TOPIC.authorizationCanceled,
        transaction: log.transactionHash as Hex,
        validBefore: findValidBefore(inputs.get(log.transactionHash) ?? '', second),
      })
    }
  }

  // An Approval does not show whether it came from a permit, so the permit nonces of those owners are read.
  const owners = [...new Set([...allowances.values()].map((allowance) => allowance.owner))]
  const permitNonces = await Promise.all(
    owners.map(async (owner) => {
      const count = await send('eth_call', [{ to: USDC, data: encodeCall(SELECTOR.nonces, owner) }, 'latest'])
      return { owner, count: BigInt(count as string) }
    }),
  )
  return {
    supplyDeltaMicro,
    balanceDeltas: [...deltas].map(([owner, deltaMicro]) => ({ owner, deltaMicro })),
    authorizations,
    allowances: [...allowances.values()],
    permitNonces: permitNonces.filter((permit) => permit.count > 0n),
  }
}

/**
 * In every call that uses an authorisation, `validBefore` is the word before the nonce, however deep the call is nested.
 * The largest match counts, and a cancellation has an address in that place: both only keep the authorisation longer.
 */
function findValidBefore(input: string, nonce: string): bigint | null {
  const needle = nonce.slice(2).toLowerCase()
  let latest: bigint | null = null
  for (let index = input.indexOf(needle); index >= 0; index = input.indexOf(needle, index + 1)) {
    if (index < 2 + 64) continue
    const validBefore = BigInt(`0x${input.slice(index - 64, index)}`)
    if (latest === null || validBefore > latest) latest = validBefore
  }
  return latest
}
