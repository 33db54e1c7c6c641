import type { TenantCaller } from '../../../platform/auth-context.ts'
import { forbidden, invalid } from '../../../platform/problem.ts'

/** Everything that a rule can check about a payment. */
export type PaymentFacts = {
  kind: 'run' | 'loop' | 'preauth' | 'trade' | 'action'
  action: string
  /** The lane of a run; elsewhere the agent that the request names; null for a trade that names none. */
  agentId: string | null
  spender: string | null
  /** The lane that runs, or for which a pre-authorisation of ours is; null where the payment is no run's. */
  lane: string | null
  team: string | null
  keyId: string | null
  tags: Tags
  amountMicro: bigint
  /** The merchant's id first, then its other names: the host of its URL and the address it is paid at. */
  merchants: readonly string[]
  /** The address that is paid; null when a pre-authorisation leaves it out, undefined where no address is paid. */
  payTo?: string | null
  network: string | null
  sessionId: string | null
  at: Date
  /** True for a run with a pre-authorisation token, and for the pre-authorisation itself. */
  preauthorised: boolean
  /** The mandate that the payment uses; set while the rules are evaluated. */
  mandateId?: string | null
  /** Set for trades only. */
  instrument?: string
  symbol?: string
  leverage?: number
  notionalMicro?: bigint
}

export type Tags = Readonly<Record<string, string>>

/** What a tag may be called. A rule about another name would refuse everything, because no request can send it. */
export const TAG_NAME = '[A-Za-z0-9_.-]{1,64}'

/** A rule about an agent is about the lane or the named agent, and the spender. */
export const agentNames = ({ agentId, spender }: Pick<PaymentFacts, 'agentId' | 'spender'>): string[] => [
  ...new Set([agentId, spender].filter((name) => name !== null)),
]

/**
 * The names by which a mandate, a list or a rule lets the payment pass. An agent that is named beside the spender is only a
 * claim of the caller, so it permits nothing, except the lane of a run.
 */
export const permittingNames = ({
  agentId,
  spender,
  lane,
}: Pick<PaymentFacts, 'agentId' | 'spender' | 'lane'>): string[] =>
  agentNames({ agentId: lane, spender: spender ?? agentId })

/** In records, a payment that names no spender is its key's. */
const KEY_PREFIX = 'key:'

/** The spender that the request names, else the key's, else the agent of a payment that is not a run. */
export function readSpender(
  caller: Pick<TenantCaller, 'spender'>,
  named: string | undefined,
  agentId: string | null,
): string | null {
  const field = named === undefined ? 'agent_id' : 'spender'
  const name = named ?? agentId
  if (name?.startsWith(KEY_PREFIX)) throw invalid(`body/${field} must not begin with '${KEY_PREFIX}'.`)
  if (name?.trim() === '') throw invalid(`body/${field} must not be blank.`)
  if (caller.spender !== null && named !== undefined && named !== caller.spender)
    throw forbidden(`This key is bound to the spender '${caller.spender}' and cannot name another.`)
  return named ?? caller.spender ?? agentId
}

/** Which of the payments that a budget can apply to this one is. */
export const paymentClasses = ['runs', 'payments', 'spend', 'trades'] as const
export type PaymentClass = (typeof paymentClasses)[number]

export function paymentClass({ kind, instrument }: Pick<PaymentFacts, 'kind' | 'instrument'>): PaymentClass {
  if (kind === 'preauth') return 'payments'
  if (kind !== 'trade') return 'runs'
  return instrument === 'spend' ? 'spend' : 'trades'
}

/** The merchant id of this service's own runs and loops. */
export const OWN_MERCHANT = 'countersign'

export type Merchant = { id: string; url?: string; pay_to?: string }

export const isAddress = (name: string): boolean => /^0x[0-9a-fA-F]{40}$/.test(name)

/** All names of a merchant: its id, the host of its URL with the port if there is one, its address in lower case. */
export function merchantNames(merchant: Merchant): string[] {
  const host = merchant.url === undefined ? undefined : urlHost(merchant.url)
  return [merchant.id, host, merchant.pay_to?.toLowerCase()].filter((name) => name !== undefined)
}

/** The host with its port. A trailing dot is dropped, so both spellings are one merchant. */
export function urlHost(url: string): string | undefined {
  const { hostname, port } = new URL(url)
  const host = hostname.replace(/\.$/, '')
  if (host === '') return undefined
  return port === '' ? host : `${host}:${port}`
}
