import { isIPv4, isIPv6 } from 'node:net'

/**
 * Whom an address belongs to, as far as limits are concerned. A host gets a whole IPv6 network of 64 bits and may use any
 * address in it, so the network is the caller.
 */
export const limitedAddress = (ip: string): string => {
  const address = toIPv4(ip)
  return isIPv6(address) ? `${readGroups(address, 4)}::/64` : address
}

/** The network that one organisation typically has: 24 bits of an IPv4 address, 48 of an IPv6 one. */
export const networkPrefix = (ip: string): string => {
  const address = toIPv4(ip)
  if (isIPv4(address)) return `${address.split('.').slice(0, 3).join('.')}.0/24`
  return isIPv6(address) ? `${readGroups(address, 3)}::/48` : address
}

/** A socket that serves both families shows an IPv4 caller as `::ffff:192.0.2.1`. */
const toIPv4 = (ip: string) => {
  const mapped = /^::ffff:([\d.]+)$/i.exec(ip)?.[1]
  return mapped && isIPv4(mapped) ? mapped : ip
}

function readGroups(ip: string, count: number): string {
  const [head = '', tail] = ip.split('%')[0]!.toLowerCase().split('::')
  const groups = head === '' ? [] : head.split(':')
  const last = tail ? tail.split(':') : []
  const missing = tail === undefined ? 0 : 8 - groups.length - last.length - (ip.includes('.') ? 1 : 0)
  return [...groups, ...Array<string>(Math.max(0, missing)).fill('0'), ...last]
    .slice(0, count)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':')
}
