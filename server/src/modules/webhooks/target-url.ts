import { BlockList, isIP } from 'node:net'
import { invalid } from '../../platform/problem.ts'

/**
 * Which URLs a webhook may use. A tenant chooses the URL and the service runs inside the operator's network: without
 * these rules a tenant could make it send requests to internal services (SSRF). The URL's text is checked here; the
 * addresses a name resolves to are checked again when connecting (`guarded-agent.ts`).
 */
export type TargetRules = { allowLoopback: boolean }

export const MAX_URL_LENGTH = 2048

export function checkTargetUrl(text: string, rules: TargetRules): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || text.length > MAX_URL_LENGTH) throw invalid('url is not a valid address.')
  const isLocal = rules.allowLoopback && isLoopbackHost(url.hostname)
  if (url.protocol !== 'https:' && !(isLocal && url.protocol === 'http:'))
    throw invalid('url must start with https://.')
  if (url.username || url.password) throw invalid('url must not contain a user name or password.')
  // The URL parser has normalised decimal, hexadecimal, octal and shortened forms to plain addresses.
  const address = literalAddress(url.hostname)
  if (!isLocal && (isLoopbackHost(url.hostname) || (address && !isPublicAddress(address))))
    throw invalid('url must lead to a public address.')
  url.hash = ''
  return url.href
}

/** The IP address if the host is one, not a name: `[::1]` or `127.0.0.1`. */
export function literalAddress(hostname: string): string | undefined {
  const unbracketed = hostname.replace(/^\[|\]$/g, '')
  return isIP(unbracketed) ? unbracketed : undefined
}

/** `localhost` or a literal loopback address; DNS is not consulted. */
export function isLoopbackHost(hostname: string): boolean {
  if (/^localhost\.?$/i.test(hostname)) return true
  const address = literalAddress(hostname)
  return address !== undefined && isLoopbackAddress(address)
}

export const isLoopbackAddress = (address: string) => isListed(loopback, address)

/** Only addresses known to be public are allowed; an unknown kind of address is refused. */
export function isPublicAddress(address: string): boolean {
  // A zone id names a network interface of this machine.
  if (address.includes('%')) return false
  if (isIP(address) === 6)
    return !isListed(notPublic, address) && (isListed(globalUnicast, address) || isMappedIpv4(address))
  return isIP(address) === 4 && !isListed(notPublic, address)
}

const isMappedIpv4 = (address: string) => isListed(mappedIpv4, address)

function isListed(list: BlockList, address: string): boolean {
  return list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
}

function blockList(...subnets: string[]): BlockList {
  const list = new BlockList()
  for (const subnet of subnets) {
    const [network, length] = subnet.split('/') as [string, string]
    list.addSubnet(network, Number(length), isIP(network) === 6 ? 'ipv6' : 'ipv4')
  }
  return list
}

const loopback = blockList('127.0.0.0/8', '::1/128')
const globalUnicast = blockList('2000::/3')
const mappedIpv4 = blockList('::ffff:0:0/96')

// The special-purpose registries of IANA, and the prefixes that carry an IPv4 address inside an IPv6 one.
const notPublic = blockList(
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  // A public address that is only reachable inside Azure, where it serves the host's secrets.
  '168.63.129.16/32',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
  '64:ff9b::/96',
  '64:ff9b:1::/48',
  '100::/64',
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '3fff::/20',
  '5f00::/16',
  'fc00::/7',
  'fe80::/10',
  'fec0::/10',
  'ff00::/8',
)
