/** One covered wrapper symbol with the chains it is deployed on. */
export type CoveredSymbol = { symbol: string; underlying: string; issuer: string; chains: string[] }

export type SymbolList = { symbols: readonly CoveredSymbol[]; count: number }

export const listSymbols = ({ symbols }: Pick<SymbolList, 'symbols'>): SymbolList => ({
  symbols,
  count: symbols.length,
})
