/** What is known of a payment when it is judged. Everything a rule can ask about stands here, and nothing else. */
export type PaymentFacts = {
  kind: 'run' | 'loop' | 'preauth' | 'action'
  action: string
  agentId: string
  amountMicro: bigint
  /** The merchant's id first, then the other names it goes by: the host of its address, where it is paid. */
  merchants: readonly string[]
  network: string | null
  sessionId: string | null
  at: Date
  /** A signed token came before it, or it is itself the request for one. */
  preauthorised: boolean
  /** Only trades have these. */
  instrument?: string
  leverage?: number
  notionalMicro?: bigint
}

/** The merchant of our own runs and loops. */
export const OWN_MERCHANT = 'countersign'

export type Merchant = { id: string; url?: string; pay_to?: string }

/** Addresses and host names are the same in any case; other ids of agents and merchants are not. */
export const normalizeName = (name: string): string => (/^0x|\./i.test(name) ? name.toLowerCase() : name)

/** All names of a merchant, in lower case where case says nothing. */
export function merchantNames(merchant: Merchant): string[] {
  const hosts = merchant.url === undefined ? [] : urlHosts(merchant.url)
  return [merchant.id, ...hosts, merchant.pay_to?.toLowerCase()].filter((name) => name !== undefined)
}

/** The host, and the host with its port where one is named: neither a port nor the dot at the end makes it another. */
export function urlHosts(url: string): string[] {
  const { hostname, port } = new URL(url)
  const host = hostname.replace(/\.$/, '')
  return [host, port && `${host}:${port}`].filter((name) => name !== '')
}
