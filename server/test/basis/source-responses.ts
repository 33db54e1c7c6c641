import type { CoveredWrapper } from '../../src/modules/basis/price-source.ts'

/** Responses in the format of each service, with the values a test needs. */
export const NOW = new Date('2026-11-16T15:00:00.000Z')
export const unix = (at: Date) => Math.floor(at.getTime() / 1000)

export const pythResponse = (
  feeds: Record<string, { price: string; conf?: string; expo?: number; publish_time?: number }>,
  publishTime = unix(NOW),
) => ({
  binary: { encoding: 'hex', data: ['504e4155'] },
  parsed: Object.entries(feeds).map(([id, { price, conf = '5000', expo = -5, publish_time = publishTime }]) => ({
    id,
    price: { price, conf, expo, publish_time },
    ema_price: { price, conf, expo, publish_time },
    metadata: { slot: 1, proof_available_time: publish_time, prev_publish_time: publish_time - 1 },
  })),
})

export const xstocksAsset = (overrides: Record<string, unknown> = {}) => ({
  symbol: 'TSLAx',
  underlyingSymbol: 'TSLA',
  isTradingHalted: false,
  trading: { currentPeriod: 'Market', openNow: true },
  deployments: [{ network: 'Solana', address: 'XsDoVfqeBukxuZHWhdvWHBhgEHjGNst4MLodqsJHzoB' }],
  ...overrides,
})

export const xstocksMultiplier = (overrides: Record<string, unknown> = {}) => ({
  currentMultiplier: 1,
  newMultiplier: null,
  activationDateTime: null,
  ...overrides,
})

export const xstocksReserves = (overrides: Record<string, unknown> = {}) => ({
  symbol: 'TSLAx',
  timestamp: new Date(NOW.getTime() - 600_000).toISOString(),
  sharesHeld: '101000',
  circulatingSupply: '100000',
  holdings: [{ custodian: 'A custodian', shares: '101000' }],
  ...overrides,
})

export const coinbaseToken = (
  wrapper: Pick<CoveredWrapper, 'address' | 'symbol' | 'decimals'>,
  overrides: Record<string, unknown> = {},
) => ({
  contract_address: wrapper.address,
  symbol: wrapper.symbol,
  decimals: wrapper.decimals,
  total_supply: '250000000000',
  multiplier: '1',
  paused_features: [],
  nav_price: '250.10',
  nav_price_updated_at: new Date(NOW.getTime() - 20_000).toISOString(),
  ...overrides,
})

/** The bytes of a Token-2022 mint: base, padding, account type, a metadata pointer to skip, then the given extensions. */
export function mintAccount(options: {
  supply: bigint
  decimals: number
  scaled?: { multiplier: number; next: number; nextAt: number }
  paused?: boolean
}): string {
  const base = Buffer.alloc(166)
  base.writeBigUInt64LE(options.supply, 36)
  base.writeUInt8(options.decimals, 44)
  base.writeUInt8(1, 45)
  base.writeUInt8(1, 165)
  const parts = [base, extension(18, Buffer.alloc(64, 7))]
  if (options.scaled) {
    const value = Buffer.alloc(56)
    value.writeDoubleLE(options.scaled.multiplier, 32)
    value.writeBigInt64LE(BigInt(options.scaled.nextAt), 40)
    value.writeDoubleLE(options.scaled.next, 48)
    parts.push(extension(25, value))
  }
  if (options.paused !== undefined) {
    const value = Buffer.alloc(33)
    value.writeUInt8(options.paused ? 1 : 0, 32)
    parts.push(extension(26, value))
  }
  return Buffer.concat(parts).toString('base64')
}

function extension(type: number, value: Buffer): Buffer {
  const header = Buffer.alloc(4)
  header.writeUInt16LE(type, 0)
  header.writeUInt16LE(value.length, 2)
  return Buffer.concat([header, value])
}

export const solanaAccountResponse = (data: string, overrides: Record<string, unknown> = {}) => ({
  context: { apiVersion: '2.2.0', slot: 380_000_000 },
  value: {
    data: [data, 'base64'],
    executable: false,
    lamports: 1,
    owner: 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb',
    rentEpoch: 2 ** 64,
    space: 500,
    ...overrides,
  },
})

export const word = (value: bigint | number) => BigInt.asUintN(256, BigInt(value)).toString(16).padStart(64, '0')
export const words = (...values: (bigint | number)[]) => `0x${values.map(word).join('')}`
export const block = (number: number, at = NOW) => ({
  number: `0x${number.toString(16)}`,
  timestamp: `0x${unix(at).toString(16)}`,
  hash: `0x${'1'.repeat(64)}`,
})
