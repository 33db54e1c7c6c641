import { BlockList, isIP } from 'node:net'
import { invalid } from '../../platform/problem.ts'

/**
 * Where a webhook may go. A tenant chooses the address, and the service stands inside somebody's network: without these
 * rules it could be sent to knock on its neighbours' doors. Text is judged here; names are judged again when they
 * have been looked up, at the moment of connecting (`guarded-agent.ts`).
 */
export type TargetRules = { allowLoopback: boolean }

export const MAX_URL_LENGTH = 2048

export function checkTargetUrl(text: string, rules: TargetRules): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || text.length > MAX_URL_LENGTH) throw invalid('url is not a valid address.')
  const local = rules.allowLoopback && isLoopbackHost(url.hostname)
  if (url.protocol !== 'https:' && !(local && url.protocol === 'http:')) throw invalid('url must start with https://.')
  if (url.username || url.password) throw invalid('url must not carry a user name or password.')
  // The parser has already turned decimal, hexadecimal, octal and shortened forms into plain addresses.
  const address = literalAddress(url.hostname)
  if (!local && (isLoopbackHost(url.hostname) || (address && !isPublicAddress(address))))
    throw invalid('url must lead to a public address.')
  url.hash = ''
  return url.href
}

/** The host is an address itself, not a name: `[::1]` or `127.0.0.1`. */
export function literalAddress(hostname: string): string | undefined {
  const bare = hostname.replace(/^\[|\]$/g, '')
  return isIP(bare) ? bare : undefined
}

/** A host that means this machine by its own words, whatever a name server would say. */
export function isLoopbackHost(hostname: string): boolean {
  if (/^localhost\.?$/i.test(hostname)) return true
  const address = literalAddress(hostname)
  return address !== undefined && isLoopbackAddress(address)
}

export const isLoopbackAddress = (address: string) => listed(loopback, address)

/** Everything that is not plainly public is refused: an unknown kind of address is not a reason to connect. */
export function isPublicAddress(address: string): boolean {
  // A zone names one of our own network cards.
  if (address.includes('%')) return false
  if (isIP(address) === 6) return !listed(notPublic, address) && (listed(globalUnicast, address) || isMapped(address))
  return isIP(address) === 4 && !listed(notPublic, address)
}

const isMapped = (address: string) => listed(mapped, address)

function listed(list: BlockList, address: string): boolean {
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
const mapped = blockList('::ffff:0:0/96')

// The special-purpose registries of IANA, and the prefixes that carry an IPv4 address inside an IPv6 one.
const notPublic = blockList(
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  // A public number that only answers machines inside Azure: it hands them their host's secrets.
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
