import { readFileSync } from 'node:fs'
import { Ajv } from 'ajv'
import { type Static, Type } from 'typebox'
import type { Covered } from './price-source.ts'

/** The coverage file: which wrappers are measured and where their parts are found. An operator may put another in its place. */
const Evm = Type.String({ pattern: '^0x[0-9a-fA-F]{40}$' })
const Name = Type.String({ minLength: 1, maxLength: 64 })
const Address = Type.String({ pattern: '^[0-9A-Za-z]{20,64}$' })
const closed = { additionalProperties: false }

const Deployment = Type.Object(
  {
    chain: Name,
    address: Address,
    decimals: Type.Integer({ minimum: 0, maximum: 24 }),
    issuer_api: Type.Optional(Type.Union([Type.Literal('xstocks'), Type.Literal('coinbase')])),
    feed: Type.Optional(
      Type.Object(
        { address: Evm, decimals: Type.Integer({ minimum: 0, maximum: 24 }), includes_multiplier: Type.Boolean() },
        closed,
      ),
    ),
    registry: Type.Optional(Evm),
    pools: Type.Optional(
      Type.Array(
        Type.Object(
          {
            kind: Type.Union([Type.Literal('uniswap-v3'), Type.Literal('slipstream')]),
            address: Evm,
            quote_address: Evm,
            quote_decimals: Type.Integer({ minimum: 0, maximum: 24 }),
          },
          closed,
        ),
        { maxItems: 8 },
      ),
    ),
    locked_holders: Type.Optional(Type.Array(Type.Object({ label: Name, address: Address }, closed), { maxItems: 32 })),
    meme: Type.Optional(Type.Object({ symbol: Name, address: Address }, closed)),
  },
  closed,
)

const CoverageFile = Type.Object(
  {
    version: Type.Literal(1),
    band_bps: Type.Integer({ minimum: 1, maximum: 1000 }),
    chains: Type.Record(
      Type.String(),
      Type.Object(
        { kind: Type.Union([Type.Literal('evm'), Type.Literal('solana')]), caip2: Name, asset_namespace: Name },
        closed,
      ),
    ),
    underlyings: Type.Record(
      Type.String(),
      Type.Object(
        {
          pyth_feed_id: Type.Optional(Type.String({ pattern: '^[0-9a-f]{64}$' })),
          preview_price: Type.Number({ exclusiveMinimum: 0, maximum: 1_000_000 }),
        },
        closed,
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
        closed,
      ),
      { minItems: 1, maxItems: 500 },
    ),
  },
  closed,
)

const isCoverageFile = new Ajv({ strict: false }).compile<Static<typeof CoverageFile>>(CoverageFile)

export type Coverage = {
  bandBps: number
  /** Every deployment; the first of a symbol is the one meant when no chain is named. */
  covered: readonly Covered[]
  symbols: readonly { symbol: string; underlying: string; issuer: string; chains: string[] }[]
  find(symbol: string, chain?: string): Covered | undefined
}

export const SHIPPED_COVERAGE = new URL('../../../data/basis/coverage.json', import.meta.url)

export const loadCoverage = (file: string | URL = SHIPPED_COVERAGE): Coverage =>
  readCoverage(JSON.parse(readFileSync(file, 'utf8')))

export function readCoverage(value: unknown): Coverage {
  if (!isCoverageFile(value)) {
    const [first] = isCoverageFile.errors ?? []
    throw new Error(
      `The coverage file is not usable: ${first?.instancePath || 'it'} ${first?.message ?? 'has the wrong shape'}.`,
    )
  }
  const covered = value.wrappers.flatMap((wrapper) =>
    wrapper.deployments.map((deployment) => flatten(value, wrapper, deployment)),
  )
  refuseDoubles(covered.map((each) => each.asset))
  refuseDoubles(covered.map((each) => `${each.symbol} on ${each.chain}`))
  // Symbols are found whatever their case: the letter that marks the issuer is easily mistyped.
  const byName = new Map<string, Covered[]>()
  for (const each of covered)
    byName.set(each.symbol.toLowerCase(), [...(byName.get(each.symbol.toLowerCase()) ?? []), each])
  return {
    bandBps: value.band_bps,
    covered,
    symbols: value.wrappers.map(({ symbol, underlying, issuer, deployments }) => ({
      symbol,
      underlying,
      issuer,
      chains: deployments.map(({ chain }) => chain),
    })),
    find: (symbol, chain) =>
      byName.get(symbol.toLowerCase())?.find((each) => chain === undefined || each.chain === chain),
  }
}

type File = Static<typeof CoverageFile>
type Wrapper = File['wrappers'][number]

function flatten(file: File, wrapper: Wrapper, deployment: Wrapper['deployments'][number]): Covered {
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

function refuseDoubles(names: readonly string[]) {
  const double = names.find((name, index) => names.indexOf(name) !== index)
  if (double) throw new Error(`The coverage file lists ${double} twice.`)
}
