import { readFileSync } from 'node:fs'
import { Ajv } from 'ajv'
import { type Static, Type } from 'typebox'
import type { CoveredWrapper } from './price-source.ts'
import type { CoveredSymbol } from './symbols.ts'

/** The coverage file: the measured wrappers with their addresses, feeds and pools. An operator may configure another. */
const EvmAddress = Type.String({ pattern: '^0x[0-9a-fA-F]{40}$' })
const Name = Type.String({ minLength: 1, maxLength: 64 })
const Address = Type.String({ pattern: '^[0-9A-Za-z]{20,64}$' })
const strict = { additionalProperties: false }

const Deployment = Type.Object(
  {
    chain: Name,
    address: Address,
    decimals: Type.Integer({ minimum: 0, maximum: 24 }),
    issuer_api: Type.Optional(Type.Union([Type.Literal('xstocks'), Type.Literal('coinbase')])),
    feed: Type.Optional(
      Type.Object(
        {
          address: EvmAddress,
          decimals: Type.Integer({ minimum: 0, maximum: 24 }),
          includes_multiplier: Type.Boolean(),
        },
        strict,
      ),
    ),
    registry: Type.Optional(EvmAddress),
    pools: Type.Optional(
      Type.Array(
        Type.Object(
          {
            kind: Type.Union([Type.Literal('uniswap-v3'), Type.Literal('slipstream')]),
            address: EvmAddress,
            quote_address: EvmAddress,
            quote_decimals: Type.Integer({ minimum: 0, maximum: 24 }),
          },
          strict,
        ),
        { maxItems: 8 },
      ),
    ),
    locked_holders: Type.Optional(Type.Array(Type.Object({ label: Name, address: Address }, strict), { maxItems: 32 })),
    meme: Type.Optional(Type.Object({ symbol: Name, address: Address }, strict)),
  },
  strict,
)

const CoverageFile = Type.Object(
  {
    version: Type.Literal(1),
    band_bps: Type.Integer({ minimum: 1, maximum: 1000 }),
    chains: Type.Record(
      Type.String(),
      Type.Object(
        { kind: Type.Union([Type.Literal('evm'), Type.Literal('solana')]), caip2: Name, asset_namespace: Name },
        strict,
      ),
    ),
    underlyings: Type.Record(
      Type.String(),
      Type.Object(
        {
          pyth_feed_id: Type.Optional(Type.String({ pattern: '^[0-9a-f]{64}$' })),
          preview_price: Type.Number({ exclusiveMinimum: 0, maximum: 1_000_000 }),
        },
        strict,
      ),
    ),
    wrappers: Type.Array(
      Type.Object(
        {
          symbol: Name,
          underlying: Name,
          issuer: Name,
          deployments: Type.Array(Deployment, { minItems: 1, maxItems: 8 }),
        },
        strict,
      ),
      { minItems: 1, maxItems: 500 },
    ),
  },
  strict,
)

const isCoverageFile = new Ajv({ strict: false }).compile<Static<typeof CoverageFile>>(CoverageFile)

export type Coverage = {
  bandBps: number
  /** Every deployment. The first deployment of a symbol is used when a request names no chain. */
  wrappers: readonly CoveredWrapper[]
  symbols: readonly CoveredSymbol[]
  find(symbol: string, chain?: string): CoveredWrapper | undefined
}

export const DEFAULT_COVERAGE_FILE = new URL('../../../data/basis/coverage.json', import.meta.url)

export const loadCoverage = (file: string | URL = DEFAULT_COVERAGE_FILE): Coverage =>
  parseCoverage(JSON.parse(readFileSync(file, 'utf8')))

export function parseCoverage(value: unknown): Coverage {
  if (!isCoverageFile(value)) {
    const [error] = isCoverageFile.errors ?? []
    throw new Error(
      `The coverage file is not usable: ${error?.instancePath || 'it'} ${error?.message ?? 'has the wrong shape'}.`,
    )
  }
  const wrappers = value.wrappers.flatMap((wrapper) =>
    wrapper.deployments.map((deployment) => toCoveredWrapper(value, wrapper, deployment)),
  )
  rejectDuplicates(wrappers.map((wrapper) => wrapper.asset))
  rejectDuplicates(wrappers.map((wrapper) => `${wrapper.symbol} on ${wrapper.chain}`))
  // Lookup ignores case, because the letter that marks the issuer is easily mistyped.
  const bySymbol = new Map<string, CoveredWrapper[]>()
  for (const wrapper of wrappers)
    bySymbol.set(wrapper.symbol.toLowerCase(), [...(bySymbol.get(wrapper.symbol.toLowerCase()) ?? []), wrapper])
  return {
    bandBps: value.band_bps,
    wrappers,
    symbols: value.wrappers.map(({ symbol, underlying, issuer, deployments }) => ({
      symbol,
      underlying,
      issuer,
      chains: deployments.map(({ chain }) => chain),
    })),
    find: (symbol, chain) =>
      bySymbol.get(symbol.toLowerCase())?.find((wrapper) => chain === undefined || wrapper.chain === chain),
  }
}

type File = Static<typeof CoverageFile>
type Wrapper = File['wrappers'][number]

function toCoveredWrapper(file: File, wrapper: Wrapper, deployment: Wrapper['deployments'][number]): CoveredWrapper {
  const chain = file.chains[deployment.chain]
  const underlying = file.underlyings[wrapper.underlying]
  if (!chain)
    throw new Error(`The coverage file puts ${wrapper.symbol} on '${deployment.chain}', which is not among its chains.`)
  if (!underlying)
    throw new Error(`The coverage file does not list ${wrapper.underlying}, the underlying of ${wrapper.symbol}.`)
  const address = chain.kind === 'evm' ? deployment.address.toLowerCase() : deployment.address
  return {
    symbol: wrapper.symbol,
    underlying: wrapper.underlying,
    issuer: wrapper.issuer,
    chain: deployment.chain,
    chainKind: chain.kind,
    address,
    asset: `${deployment.chain}:${address}`,
    caip19: `${chain.caip2}/${chain.asset_namespace}:${deployment.address}`,
    decimals: deployment.decimals,
    issuerApi: deployment.issuer_api ?? null,
    feed: deployment.feed
      ? {
          address: deployment.feed.address,
          decimals: deployment.feed.decimals,
          includesMultiplier: deployment.feed.includes_multiplier,
        }
      : null,
    registry: deployment.registry ?? null,
    pools: (deployment.pools ?? []).map((pool) => ({
      kind: pool.kind,
      address: pool.address.toLowerCase(),
      quoteAddress: pool.quote_address.toLowerCase(),
      quoteDecimals: pool.quote_decimals,
    })),
    lockedHolders: deployment.locked_holders ?? [],
    meme: deployment.meme ?? null,
    pythFeedId: underlying.pyth_feed_id ?? null,
    previewPrice: underlying.preview_price,
  }
}

function rejectDuplicates(names: readonly string[]) {
  const duplicate = names.find((name, index) => names.indexOf(name) !== index)
  if (duplicate) throw new Error(`The coverage file lists ${duplicate} twice.`)
}
