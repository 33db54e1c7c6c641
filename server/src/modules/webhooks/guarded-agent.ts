import { type LookupAddress, lookup as systemLookup } from 'node:dns'
import type { LookupFunction, Socket } from 'node:net'
import { Agent, buildConnector } from 'undici'
import { isLoopbackAddress, isLoopbackHost, isPublicAddress, literalAddress, type TargetRules } from './target.ts'

export class AddressRefused extends Error {
  constructor(hostname: string) {
    super(`${hostname} does not lead to a public address`)
    this.name = 'AddressRefused'
  }
}

export type ResolveAll = (hostname: string) => Promise<LookupAddress[]>

const CONNECT_MS = 5_000
const KEEP_ALIVE_MS = 4_000
const CONNECTIONS_A_TARGET = 8

/**
 * An agent that connects only to where a webhook may go. The addresses that are judged are the very ones that are
 * connected to, so a name that changes between two look-ups gains nothing; redirects are not followed at all.
 */
export function createGuardedAgent(rules: TargetRules, resolveAll: ResolveAll = resolveBySystem): Agent {
  return new Agent({
    connections: CONNECTIONS_A_TARGET,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    pipelining: 1,
    connect(options, callback) {
      const allowed = allowedFor(options.hostname, rules)
      const address = literalAddress(options.hostname)
      if (address !== undefined && !allowed(address)) return callback(new AddressRefused(options.hostname), null)
      const connect = buildConnector({
        timeout: CONNECT_MS,
        lookup: guardLookup(resolveAll, allowed),
        // Sessions are kept by host name, and a host may be another machine the next time.
        maxCachedSessions: 0,
      })
      connect(options, (error, socket) => {
        if (error) return callback(error, null)
        // The last word: whatever led here, this is whom we are talking to.
        if (!allowed(remoteOf(socket))) {
          socket.destroy()
          return callback(new AddressRefused(options.hostname), null)
        }
        callback(null, socket)
      })
    },
  })
}

/** This machine is reached only by its own name, and by that name nothing else is. */
function allowedFor(hostname: string, rules: TargetRules): (address: string) => boolean {
  return rules.allowLoopback && isLoopbackHost(hostname) ? isLoopbackAddress : isPublicAddress
}

const remoteOf = (socket: Socket) => socket.remoteAddress ?? ''

function guardLookup(resolveAll: ResolveAll, allowed: (address: string) => boolean): LookupFunction {
  return (hostname, options, callback) => {
    resolveAll(hostname).then(
      (found) => {
        const usable = found.filter(({ address }) => allowed(address))
        const first = usable[0]
        if (!first) return callback(new AddressRefused(hostname), '', 4)
        if (options.all) return callback(null, usable)
        callback(null, first.address, first.family)
      },
      (error) => callback(error, '', 4),
    )
  }
}

const resolveBySystem: ResolveAll = (hostname) =>
  new Promise((resolve, reject) => {
    systemLookup(hostname, { all: true }, (error, found) => (error ? reject(error) : resolve(found)))
  })
