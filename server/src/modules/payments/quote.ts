import { canonicalJson } from '../../platform/canonical.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Ids } from '../../platform/ids.ts'
import type { Signer } from '../../platform/keys.ts'
import { parseStrictJson } from '../../platform/strict-json.ts'

/**
 * A signed price. It rides in the 402 and comes back with the payment, so nothing is stored and the price that was
 * shown is the price that is taken, even when the list changes in between.
 */
export type Quote = {
  quote_id: string
  /** What the price is for: the exact request of a 402, or the task that `/api/route` was asked about. */
  bound_to: { request_hash: string } | { task_hash: string }
  kind: string
  agent_id: string
  amount: string
  pricing_version: string
  /** How the lane was chosen, so that the answer can tell it without routing anew. */
  route: Record<string, unknown>
  expires_at: string
}

export type QuoteDraft = Omit<Quote, 'quote_id' | 'expires_at'>

export const QUOTE_LIFE_MS = 600_000
const MAX_TOKEN = 8_192

export type Quotes = ReturnType<typeof createQuotes>

export function createQuotes(deps: { signer: Signer; clock: Clock; ids: Ids }) {
  return {
    issue(draft: QuoteDraft): { quote: Quote; token: string } {
      const expires_at = new Date(deps.clock.now().getTime() + QUOTE_LIFE_MS).toISOString()
      const quote = { quote_id: deps.ids.next('qot'), ...draft, expires_at }
      const text = canonicalJson(quote)
      return {
        quote,
        token: `${Buffer.from(text).toString('base64url')}.${deps.signer.sign(text).toString('base64url')}`,
      }
    },

    /** The quote if we signed it and it still holds; anything else is as if no quote had been sent. */
    read(token: string | undefined): Quote | undefined {
      if (!token || token.length > MAX_TOKEN) return undefined
      const [body, signature, ...rest] = token.split('.')
      if (!body || !signature || rest.length > 0) return undefined
      const bytes = Buffer.from(body, 'base64url')
      if (!deps.signer.verify(bytes, Buffer.from(signature, 'base64url'))) return undefined
      const quote = parseStrictJson(bytes.toString('utf8')) as Quote
      return new Date(quote.expires_at) > deps.clock.now() ? quote : undefined
    },
  }
}
