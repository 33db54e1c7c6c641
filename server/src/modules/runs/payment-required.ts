import { usdcFromMicro } from '../../platform/money.ts'
import type { Refusal } from '../payments/payments.ts'
import { buildChallenge } from '../payments/x402.ts'
import { hasPaidInput, inputDescriptionV1, inputExtension, type PaidInput, paidInputs } from './input-extension.ts'
import type { RunResponse } from './paid-unit.ts'
import { deadlineSecondsOf, type RunDeps } from './run-deps.ts'

/** A request with its price. */
export type PricedRequest = {
  kind: string
  /** The path of the call; its response is the resource that the payer buys. */
  path: string
  requestHash: string
  requestId: string
  agentId: string
  priceMicro: bigint
  pricingVersion: string
  route: Record<string, unknown>
  description: string
}

/** The 402, with a quote that binds the price to exactly this request. */
export function paymentRequiredResponse(deps: RunDeps, request: PricedRequest, refusal?: Refusal): RunResponse {
  const terms = deps.payments.termsFor(request.priceMicro, deadlineSecondsOf(deps, request.agentId))
  const { token } = deps.payments.quotes.issue({
    bound_to: { request_hash: request.requestHash },
    kind: request.kind,
    agent_id: request.agentId,
    amount: request.priceMicro.toString(),
    pricing_version: request.pricingVersion,
    route: request.route,
  })
  const url = `${deps.publicUrl()}${request.path}`
  const description = `${request.description} for ${usdcFromMicro(request.priceMicro)} USDC`
  const extensions = {
    ...deps.offerReceipt.offered(url, terms),
    ...(hasPaidInput(request.kind) && inputExtension(request.kind)),
  }
  const laneMode = hasPaidInput(request.kind) ? deps.lane.mode : undefined
  const { headers, body } = buildChallenge({
    terms,
    quote: token,
    laneMode,
    resource: { url, description },
    refusal,
    extensions,
    isDevelopmentChain: deps.payments.isDevelopmentChain,
  })
  return { status: 402, headers, body: JSON.stringify({ ...body, request_id: request.requestId }) }
}

/**
 * The 402 to a call without a body: the price range and how the call is made. There is no request that a quote or an offer
 * could be bound to, so it has neither, and nothing is stored.
 */
export function probeResponse(
  deps: Pick<RunDeps, 'lane' | 'payments' | 'priceRange' | 'publicUrl'>,
  kind: PaidInput,
  requestId: string,
): RunResponse {
  const { minMicro, maxMicro } = deps.priceRange(kind)
  const { headers, body } = buildChallenge({
    terms: deps.payments.termsFor(minMicro),
    maxAmountMicro: maxMicro,
    laneMode: deps.lane.mode,
    inputDescription: inputDescriptionV1(kind),
    resource: {
      url: `${deps.publicUrl()}/api/${kind}`,
      description: `One ${kind} for ${usdcFromMicro(minMicro)} to ${usdcFromMicro(maxMicro)} USDC`,
    },
    extensions: inputExtension(kind),
    isDevelopmentChain: deps.payments.isDevelopmentChain,
  })
  const { schema } = paidInputs[kind]
  return { status: 402, headers, body: JSON.stringify({ ...body, input_schema: schema, request_id: requestId }) }
}
