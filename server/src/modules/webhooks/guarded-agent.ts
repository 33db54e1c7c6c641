import { type LookupAddress, lookup as systemLookup } from 'node:dns'
import type { LookupFunction, Socket } from 'node:net'
import { Agent, buildConnector } from 'undici'
import { isLoopbackAddress, isLoopbackHost, isPublicAddress, literalAddress, type TargetRules } from './target-url.ts'

export class ForbiddenAddressError extends Error {
  constructor(hostname: string) {
    super(`${hostname} does not lead to a public address`)
    this.name = 'ForbiddenAddressError'
  }
}

export type ResolveAll = (hostname: string) => Promise<LookupAddress[]>

const CONNECT_MS = 5_000
const KEEP_ALIVE_MS = 4_000
const CONNECTIONS_PER_TARGET = 8

/**
 * An HTTP agent that protects against SSRF: it connects only to addresses a webhook may use. The addresses that are
 * checked are the ones it connects to, so DNS rebinding does not help an attacker; redirects are not followed.
 */
export function createGuardedAgent(rules: TargetRules, resolveAll: ResolveAll = systemResolve): Agent {
  return new Agent({
    connections: CONNECTIONS_PER_TARGET,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    pipelining: 1,
    connect(options, callback) {
      const isAllowed = addressRule(options.hostname, rules)
      const address = literalAddress(options.hostname)
      if (address !== undefined && !isAllowed(address))
        return callback(new ForbiddenAddressError(options.hostname), null)
      const connect = buildConnector({
        timeout: CONNECT_MS,
        lookup: guardLookup(resolveAll, isAllowed),
        // TLS sessions are cached by host name, and the name may resolve to another machine the next time.
        maxCachedSessions: 0,
      })
      connect(options, (error, socket) => {
        if (error) return callback(error, null)
        // The final check, on the address of the connected socket.
        if (!isAllowed(remoteAddress(socket))) {
          socket.destroy()
          return callback(new ForbiddenAddressError(options.hostname), null)
        }
        callback(null, socket)
      })
    },
  })
}

/** With `allowLoopback`, a loopback host name may reach only loopback addresses, and every other name only public ones. */
function addressRule(hostname: string, rules: TargetRules): (address: string) => boolean {
  return rules.allowLoopback && isLoopbackHost(hostname) ? isLoopbackAddress : isPublicAddress
}

const remoteAddress = (socket: Socket) => socket.remoteAddress ?? ''

function guardLookup(resolveAll: ResolveAll, isAllowed: (address: string) => boolean): LookupFunction {
  return (hostname, options, callback) => {
    resolveAll(hostname).then(
      (addresses) => {
        const allowedAddresses = addresses.filter(({ address }) => isAllowed(address))
        const first = allowedAddresses[0]
        if (!first) return callback(new ForbiddenAddressError(hostname), '', 4)
        if (options.all) return callback(null, allowedAddresses)
        callback(null, first.address, first.family)
      },
      (error) => callback(error, '', 4),
    )
  }
}

const systemResolve: ResolveAll = (hostname) =>
  new Promise((resolve, reject) => {
    systemLookup(hostname, { all: true }, (error, addresses) => (error ? reject(error) : resolve(addresses)))
  })
