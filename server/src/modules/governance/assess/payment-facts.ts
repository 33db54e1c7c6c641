/** Everything that a rule can check about a payment. */
export type PaymentFacts = {
  kind: 'run' | 'loop' | 'preauth' | 'action'
  action: string
  agentId: string
  amountMicro: bigint
  /** The merchant's id first, then its other names: the host of its URL and the address it is paid at. */
  merchants: readonly string[]
  network: string | null
  sessionId: string | null
  at: Date
  /** True for a run with a pre-authorisation token, and for the pre-authorisation itself. */
  preauthorised: boolean
  /** Set for trades only. */
  instrument?: string
  leverage?: number
  notionalMicro?: bigint
}

/** The merchant id of this service's own runs and loops. */
export const OWN_MERCHANT = 'countersign'

export type Merchant = { id: string; url?: string; pay_to?: string }

/** Addresses and host names are compared without case; other ids of agents and merchants are case-sensitive. */
export const normalizeName = (name: string): string => (/^0x|\./i.test(name) ? name.toLowerCase() : name)

/** All names of a merchant, the address in lower case. */
export function merchantNames(merchant: Merchant): string[] {
  const hosts = merchant.url === undefined ? [] : urlHosts(merchant.url)
  return [merchant.id, ...hosts, merchant.pay_to?.toLowerCase()].filter((name) => name !== undefined)
}

/** The host, and the host with its port if there is one. A trailing dot is dropped, so both spellings are one merchant. */
export function urlHosts(url: string): string[] {
  const { hostname, port } = new URL(url)
  const host = hostname.replace(/\.$/, '')
  return [host, port && `${host}:${port}`].filter((name) => name !== '')
}
