import type { Coverage } from './coverage.ts'

/** One covered wrapper symbol with the chains it is deployed on. */
export type CoveredSymbol = { symbol: string; underlying: string; issuer: string; chains: string[] }

export type SymbolList = { symbols: readonly CoveredSymbol[]; count: number }

export const listSymbols = ({ symbols }: Coverage): SymbolList => ({ symbols, count: symbols.length })
