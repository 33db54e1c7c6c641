import {
  type Observation,
  type PriceSource,
  SourceRefused,
  type SourceRequest,
} from '../../modules/basis/price-source.ts'
import { integer, type Json, list, object, pastTime, readJson, shown, text } from './reading.ts'
import { decodeMint, type Mint } from './solana-mint.ts'

const TOKEN_PROGRAMS = new Set([
  'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb',
  'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA',
])
const MOST_ACCOUNT_BYTES = 20_000

type MintMemo = {
  stage: 'mint' | 'time'
  asset: string
  decimals: number
  holders: number
  slot?: number
  observed?: StoredMint
}
type StoredMint = { supply: string; scaled: Mint['scaled']; paused: boolean; locked: number | null }

/** A Solana node, over plain JSON-RPC: supply, shares per token and locked balances, as far as they are final. */
export function createSolana(options: { rpcUrl: string; chain?: string; everySeconds?: number }): PriceSource {
  const chain = options.chain ?? 'solana'
  const ask = (calls: { method: string; params: unknown[] }[], memo: MintMemo): SourceRequest => ({
    method: 'POST',
    url: options.rpcUrl,
    // Providers put keys into the path of an endpoint, so only its host is published.
    shownUrl: new URL(shown(options.rpcUrl)).origin,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(calls.map((call, id) => ({ jsonrpc: '2.0', id, ...call }))),
    memo,
  })

  return {
    id: 'solana',
    everySeconds: options.everySeconds ?? 30,

    ask: (covered) =>
      covered
        .filter((each) => each.chain === chain && each.chainKind === 'solana')
        .map(({ asset, address, decimals, lockedHolders }) =>
          ask(
            [
              { method: 'getAccountInfo', params: [address, { encoding: 'base64', commitment: 'finalized' }] },
              ...lockedHolders.map((holder) => ({
                method: 'getTokenAccountBalance',
                params: [holder.address, { commitment: 'finalized' }],
              })),
            ],
            { stage: 'mint', asset, decimals, holders: lockedHolders.length },
          ),
        ),

    read(request, answer) {
      const memo = request.memo as MintMemo
      const results = readBatch(readJson(answer), memo.stage === 'mint' ? 1 + memo.holders : 1)
      if (memo.stage === 'mint') {
        const { slot, observed } = readMint(results, memo)
        return {
          observations: [],
          block: slot,
          follow: [ask([{ method: 'getBlockTime', params: [slot] }], { ...memo, stage: 'time', slot, observed })],
        }
      }
      const publishedAt = pastTime(
        integer(results[0], 'the time of the block'),
        'the time of the block',
        answer.fetchedAt,
      )
      return { observations: observe(memo, publishedAt), publishedAt, block: memo.slot }
    },
  }
}

function readBatch(body: unknown, count: number): unknown[] {
  const results: unknown[] = new Array(count).fill(undefined)
  for (const entry of list(body, 'the batch')) {
    const { id, error, result } = object(entry, 'an answer of the batch')
    if (error)
      throw new SourceRefused(`the node refused a call: ${String((error as Json).message ?? '').slice(0, 200)}`)
    if (typeof id === 'number' && id in results) results[id] = result
  }
  if (results.some((result) => result === undefined || result === null))
    throw new SourceRefused('the batch is not complete')
  return results
}

function readMint(results: unknown[], memo: MintMemo): { slot: number; observed: StoredMint } {
  const info = object(results[0], 'the account')
  const account = object(info.value, 'the mint account')
  if (!TOKEN_PROGRAMS.has(text(account.owner, 'the owner of the account')))
    throw new SourceRefused('the account does not belong to a token program')
  const [data, encoding] = list(account.data, 'the data of the account')
  if (encoding !== 'base64' || typeof data !== 'string' || data.length > MOST_ACCOUNT_BYTES)
    throw new SourceRefused('the data of the account is not base64')
  const mint = decodeMint(Buffer.from(data, 'base64'))
  if (mint.decimals !== memo.decimals)
    throw new SourceRefused('the mint has other decimals than the coverage list says')
  const locked = results.slice(1).reduce((sum: number, entry) => {
    const amount = text(object(object(entry, 'a balance').value, 'a balance').amount, 'a balance')
    if (!/^\d{1,20}$/.test(amount)) throw new SourceRefused('a balance is not a number')
    return sum + Number(amount) / 10 ** memo.decimals
  }, 0)
  return {
    slot: integer(object(info.context, 'the context').slot, 'the slot'),
    observed: {
      supply: String(mint.supply),
      scaled: mint.scaled,
      paused: mint.paused,
      locked: memo.holders > 0 ? locked : null,
    },
  }
}

function observe({ asset, decimals, slot, observed }: MintMemo, publishedAt: Date): Observation[] {
  const { supply, scaled, paused, locked } = observed!
  const next = scaled && scaled.nextAt > 0 ? { value: scaled.next, at: new Date(scaled.nextAt * 1000) } : null
  return [
    { kind: 'supply', asset, tokens: Number(supply) / 10 ** decimals, block: slot!, publishedAt },
    // A mint without the extension stands for one share a token.
    { kind: 'multiplier', asset, current: scaled?.multiplier ?? 1, next, onChain: true, publishedAt },
    ...(paused ? [{ kind: 'issuer' as const, asset, accepting: false, why: 'the mint is paused', publishedAt }] : []),
    ...(locked === null ? [] : [{ kind: 'locked' as const, asset, tokens: locked, publishedAt }]),
  ]
}
