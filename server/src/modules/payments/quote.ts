import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { canonicalJson } from '../../platform/canonical.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Ids } from '../../platform/ids.ts'
import type { Signer } from '../../platform/keys.ts'
import { parseStrictJson } from '../../platform/strict-json.ts'

/**
 * A signed price. The 402 carries it and the payment returns it, so nothing is stored, and the price that was shown is
 * the price that is charged, even when the price list changes in between.
 */
export type Quote = {
  quote_id: string
  /** What the price is for: the exact request that got the 402, or the task that was sent to `/api/route`. */
  bound_to: { request_hash: string } | { task_hash: string }
  kind: string
  agent_id: string
  amount: string
  pricing_version: string
  /** How the lane was chosen, so that the response can include it without routing again. */
  route: Record<string, unknown>
  /** The cell that made the price, where cells have names: only it may be paid this way. */
  cell?: string
  expires_at: string
}

export type QuoteDraft = Omit<Quote, 'quote_id' | 'cell' | 'expires_at'>

export const QUOTE_VALIDITY_MS = 600_000
const MAX_TOKEN_LENGTH = 8_192
const MAX_ISSUED = 4_096
/** Names the dictionary: another one is another format. */
const FORMAT = 'q1'

/** Text that most quotes contain, as zlib's preset dictionary. A quote is valid for minutes, so a new format may replace it. */
const QUOTE_DICTIONARY = Buffer.from(
  [
    '"reason":"No agent_id was given."},"reason":"The request names this lane."},"posture":"leaning","posture":"fallback",',
    '"posture":"constrained","kind":"topup","kind":"loop","agent_id":"default","agent_id":"wallet","bound_to":{"task_hash":"sha256:',
    'comedian writer support analyst coder strategist researcher-v2 entertainment content analysis code strategy research',
    '{"agent_id":"analyst-v1","amount":"25000","bound_to":{"request_hash":"sha256:"},"expires_at":"2026-11-01T00:00:00.000Z",',
    '"kind":"run","pricing_version":"2026-11-01","quote_id":"qot_01a1e2-7-8","route":{"agent_id":"analyst-v1","confidence":0.9,',
    '"posture":"confident","reason":"Clearly analysis work ( %): “, ”.","routing_version":"linear-1.","signals":[{"name":"“',
    '”","weight":1.},{"name":"“”","weight":0.}]}}',
  ].join(''),
)

export type Quotes = ReturnType<typeof createQuotes>

export function createQuotes(deps: { signer: Signer; clock: Clock; ids: Ids; cell?: string | undefined }) {
  // In the open as well as signed: a proxy before several cells reads it without the dictionary.
  const format = deps.cell ? `${FORMAT}-${deps.cell}` : FORMAT
  const place = deps.cell ? { cell: deps.cell } : {}
  // Most quotes come back to the process that issued them, where comparing the token replaces verifying its signature.
  const issuedQuotes = new Map<string, Quote>()
  const remember = (token: string, quote: Quote) => {
    if (issuedQuotes.size >= MAX_ISSUED) issuedQuotes.delete(issuedQuotes.keys().next().value!)
    issuedQuotes.set(token, quote)
  }

  return {
    issue(draft: QuoteDraft): { quote: Quote; token: string } {
      const expires_at = new Date(deps.clock.now().getTime() + QUOTE_VALIDITY_MS).toISOString()
      const quote = { quote_id: deps.ids.next('qot'), ...draft, ...place, expires_at }
      const text = canonicalJson(quote)
      const token = `${format}.${compress(text).toString('base64url')}.${deps.signer.sign(text).toString('base64url')}`
      // Parsed from the signed text, so that it is the same quote as one read from its token.
      remember(token, JSON.parse(text) as Quote)
      return { quote, token }
    },

    /** The quote if we signed it and it has not expired; otherwise undefined, as if no quote had been sent. */
    read(token: string | undefined): Quote | undefined {
      if (!token || token.length > MAX_TOKEN_LENGTH) return undefined
      const quote = issuedQuotes.get(token) ?? readSigned(token)
      return quote && new Date(quote.expires_at) > deps.clock.now() ? quote : undefined
    },
  }

  function readSigned(token: string): Quote | undefined {
    const [tokenFormat, body, signature, ...extraParts] = token.split('.')
    if (tokenFormat !== format || !body || !signature || extraParts.length > 0) return undefined
    const bytes = decompress(Buffer.from(body, 'base64url'))
    if (!bytes || !deps.signer.verify(bytes, Buffer.from(signature, 'base64url'))) return undefined
    const quote = parseStrictJson(bytes.toString('utf8')) as Quote
    return quote.cell === deps.cell ? quote : undefined
  }
}

// The window has room for the dictionary and a usual quote. A larger one packs no better and takes twice as long to set up.
const packing = { windowBits: 11, memLevel: 3, chunkSize: 1024, dictionary: QUOTE_DICTIONARY }

/** The token stands in a header beside everything else a 402 says, twice encoded: it is compressed to leave room for that. */
const compress = (text: string) => deflateRawSync(text, packing)

/** Undefined for bytes that are no compressed quote, or a larger one than any that was issued. */
function decompress(bytes: Buffer): Buffer | undefined {
  try {
    return inflateRawSync(bytes, { dictionary: QUOTE_DICTIONARY, maxOutputLength: MAX_TOKEN_LENGTH })
  } catch {
    return undefined
  }
}
