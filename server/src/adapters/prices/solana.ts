import {
  type Observation,
  type PriceSource,
  PriceSourceError,
  type SourceRequest,
} from '../../modules/basis/price-source.ts'
import {
  type JsonObject,
  parseJson,
  requireInteger,
  requireList,
  requireObject,
  requirePastTime,
  requireText,
  toPublicUrl,
} from './response-parsing.ts'
import { decodeMint, type Mint } from './solana-mint.ts'

const TOKEN_PROGRAMS = new Set([
  'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb',
  'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA',
])
const MAX_ACCOUNT_BYTES = 20_000

type MintContext = {
  stage: 'mint' | 'time'
  asset: string
  decimals: number
  holderCount: number
  slot?: number
  mint?: MintState
}
type MintState = { supply: string; scaled: Mint['scaled']; paused: boolean; locked: number | null }

/** A Solana node over JSON-RPC: supply, shares per token and locked balances, at finalized commitment. */
export function createSolana(options: { rpcUrl: string; chain?: string; everySeconds?: number }): PriceSource {
  const chain = options.chain ?? 'solana'
  const buildRequest = (calls: { method: string; params: unknown[] }[], context: MintContext): SourceRequest => ({
    method: 'POST',
    url: options.rpcUrl,
    // Providers put keys into the path of an endpoint, so only its host is published.
    publicUrl: new URL(toPublicUrl(options.rpcUrl)).origin,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(calls.map((call, id) => ({ jsonrpc: '2.0', id, ...call }))),
    context: context,
  })

  return {
    id: 'solana',
    everySeconds: options.everySeconds ?? 30,

    buildRequests: (wrappers) =>
      wrappers
        .filter((wrapper) => wrapper.chain === chain && wrapper.chainKind === 'solana')
        .map(({ asset, address, decimals, lockedHolders }) =>
          buildRequest(
            [
              { method: 'getAccountInfo', params: [address, { encoding: 'base64', commitment: 'finalized' }] },
              ...lockedHolders.map((holder) => ({
                method: 'getTokenAccountBalance',
                params: [holder.address, { commitment: 'finalized' }],
              })),
            ],
            { stage: 'mint', asset, decimals, holderCount: lockedHolders.length },
          ),
        ),

    parseResponse(request, response) {
      const context = request.context as MintContext
      const results = parseBatch(parseJson(response), context.stage === 'mint' ? 1 + context.holderCount : 1)
      if (context.stage === 'mint') {
        const { slot, mint } = parseMint(results, context)
        return {
          observations: [],
          block: slot,
          followUps: [
            buildRequest([{ method: 'getBlockTime', params: [slot] }], { ...context, stage: 'time', slot, mint }),
          ],
        }
      }
      const publishedAt = requirePastTime(
        requireInteger(results[0], 'the time of the block'),
        'the time of the block',
        response.fetchedAt,
      )
      return { observations: toObservations(context, publishedAt), publishedAt, block: context.slot }
    },
  }
}

function parseBatch(body: unknown, count: number): unknown[] {
  const results: unknown[] = new Array(count).fill(undefined)
  for (const entry of requireList(body, 'the batch')) {
    const { id, error, result } = requireObject(entry, 'an entry of the batch')
    if (error)
      throw new PriceSourceError(
        `the node refused a call: ${String((error as JsonObject).message ?? '').slice(0, 200)}`,
      )
    if (typeof id === 'number' && id in results) results[id] = result
  }
  if (results.some((result) => result === undefined || result === null))
    throw new PriceSourceError('the batch is not complete')
  return results
}

function parseMint(results: unknown[], context: MintContext): { slot: number; mint: MintState } {
  const info = requireObject(results[0], 'the account')
  const account = requireObject(info.value, 'the mint account')
  if (!TOKEN_PROGRAMS.has(requireText(account.owner, 'the owner of the account')))
    throw new PriceSourceError('the account does not belong to a token program')
  const [data, encoding] = requireList(account.data, 'the data of the account')
  if (encoding !== 'base64' || typeof data !== 'string' || data.length > MAX_ACCOUNT_BYTES)
    throw new PriceSourceError('the data of the account is not base64')
  const decoded = decodeMint(Buffer.from(data, 'base64'))
  if (decoded.decimals !== context.decimals)
    throw new PriceSourceError('the mint has other decimals than the coverage list says')
  const locked = results.slice(1).reduce((sum: number, entry) => {
    const amount = requireText(requireObject(requireObject(entry, 'a balance').value, 'a balance').amount, 'a balance')
    if (!/^\d{1,20}$/.test(amount)) throw new PriceSourceError('a balance is not a number')
    return sum + Number(amount) / 10 ** context.decimals
  }, 0)
  return {
    slot: requireInteger(requireObject(info.context, 'the context').slot, 'the slot'),
    mint: {
      supply: String(decoded.supply),
      scaled: decoded.scaled,
      paused: decoded.paused,
      locked: context.holderCount > 0 ? locked : null,
    },
  }
}

function toObservations({ asset, decimals, slot, mint }: MintContext, publishedAt: Date): Observation[] {
  const { supply, scaled, paused, locked } = mint!
  const next = scaled && scaled.nextAt > 0 ? { value: scaled.next, at: new Date(scaled.nextAt * 1000) } : null
  return [
    { kind: 'supply', asset, tokens: Number(supply) / 10 ** decimals, block: slot!, publishedAt },
    // In a mint without the extension one token represents one share.
    { kind: 'multiplier', asset, current: scaled?.multiplier ?? 1, next, onChain: true, publishedAt },
    ...(paused
      ? [{ kind: 'issuer' as const, asset, accepting: false, reason: 'the mint is paused', publishedAt }]
      : []),
    ...(locked === null ? [] : [{ kind: 'locked' as const, asset, tokens: locked, publishedAt }]),
  ]
}
