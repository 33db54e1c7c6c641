import { usdcFromMicro } from '../../platform/money.ts'
import type { Refusal } from '../payments/payments.ts'
import { buildChallenge } from '../payments/x402.ts'
import type { Answer } from './answer.ts'
import type { Deps } from './execute-run.ts'

/** What is asked to be paid for, and by which request. */
export type Priced = {
  kind: string
  /** The path of the call; its answer is what the payer buys. */
  route: string
  requestHash: string
  requestId: string
  agentId: string
  priceMicro: bigint
  pricingVersion: string
  how: Record<string, unknown>
  description: string
}

/** The 402, with a quote that binds the price to this very request. */
export function challenge(d: Deps, priced: Priced, rejected?: Refusal): Answer {
  const terms = d.payments.termsFor(priced.priceMicro)
  const { token } = d.payments.quotes.issue({
    bound_to: { request_hash: priced.requestHash },
    kind: priced.kind,
    agent_id: priced.agentId,
    amount: priced.priceMicro.toString(),
    pricing_version: priced.pricingVersion,
    route: priced.how,
  })
  const url = `${d.publicUrl()}${priced.route}`
  const description = `${priced.description} for ${usdcFromMicro(priced.priceMicro)} USDC`
  const extensions = d.offer.offered(url, terms)
  const built = buildChallenge({ terms, quote: token, resource: { url, description }, refusal: rejected, extensions })
  return { status: 402, headers: built.headers, body: JSON.stringify({ ...built.body, request_id: priced.requestId }) }
}
