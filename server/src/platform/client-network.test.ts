import { expect, test } from 'vitest'
import { limitedAddress, networkPrefix } from './client-network.ts'

test.each([
  ['192.0.2.77', '192.0.2.77', '192.0.2.0/24'],
  ['::ffff:192.0.2.77', '192.0.2.77', '192.0.2.0/24'],
  ['::1', '0:0:0:0::/64', '0:0:0::/48'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64', '2001:db8:1::/48'],
  ['2001:DB8:0001::6', '2001:db8:1:0::/64', '2001:db8:1::/48'],
  ['2001:db8::', '2001:db8:0:0::/64', '2001:db8:0::/48'],
  ['fe80::1:2%eth0', 'fe80:0:0:0::/64', 'fe80:0:0::/48'],
  ['64:ff9b::192.0.2.1', '64:ff9b:0:0::/64', '64:ff9b:0::/48'],
  ['not an address', 'not an address', 'not an address'],
])('%s is limited as %s, in the network %s', (ip, address, prefix) => {
  expect([limitedAddress(ip), networkPrefix(ip)]).toEqual([address, prefix])
})
