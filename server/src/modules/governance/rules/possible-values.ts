import { invalid } from '../../../platform/problem.ts'
import { instrumentName } from './name-list.ts'

/** The types of instruments of `POST /api/rh/run`. */
export const INSTRUMENT_TYPES = ['equity', 'perp', 'crypto', 'rwa', 'earn', 'spend'] as const

export const isInstrumentType = (name: string): boolean =>
  (INSTRUMENT_TYPES as readonly string[]).includes(instrumentName(name))

const NETWORK = /^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}$/

export function requireNetwork(path: string, name: string): void {
  if (!NETWORK.test(name)) throw invalid(`${path} '${name}' is no network; write it like eip155:8453.`)
}

/** Words for types that the interface calls otherwise. No symbol is one of them. */
const OTHER_WORDS =
  /^(?:equit(?:y|ies)|stocks?|shares?|perps?|perpetuals?|futures?|cryptos?|cryptocurrenc(?:y|ies)|coins?|rwas?|earns?|spends?|spending|options?|bonds?|funds?|forex)$/

/** A symbol has letters or digits and no white space; a merchant, as the symbol of a spend, may have more words. */
const SYMBOL = /^[\p{L}\p{N}][^,;]*$/u

/** A list of instruments has types and symbols; what can be neither would match no trade. */
export function requireInstrument(path: string, name: string): void {
  if (isInstrumentType(name)) return
  if (OTHER_WORDS.test(instrumentName(name)) || !SYMBOL.test(name))
    throw invalid(
      `${path} '${name}' is neither a type of instrument (${INSTRUMENT_TYPES.join(', ')}) nor a symbol like BTC-USD.`,
    )
}
