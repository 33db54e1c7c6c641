/**
 * The address of a database as libpq reads it: one or more servers, of which the primary is used.
 * `postgres://user:password@host1:5432,host2:5432/database?target_session_attrs=read-write`
 */
const SCHEME = /^postgres(ql)?:\/\//
const HOST = /^(\[[0-9a-f:.]+\]|[^\s:[\]@]*)(?::(\d{1,5}))?$/i
const MAX_HOSTS = 16
const MAX_PORT = 65_535
/** What the service needs; every other value of libpq would let it use a server that it cannot write to. */
const SESSION_ATTRIBUTES = ['read-write', 'primary']

/** The message says what the address must be, and quotes nothing of it, because it holds a password. */
export class InvalidDatabaseUrl extends Error {}

/** One address for each server, in the order in which they are tried. */
export function splitDatabaseUrl(text: string): string[] {
  const url = text.trim()
  const scheme = SCHEME.exec(url)?.[0]
  if (!scheme) throw new InvalidDatabaseUrl('an address that starts with postgres://, postgresql://')
  const authorityEnd = url.slice(scheme.length).search(/[/?#]/)
  const authority =
    authorityEnd === -1 ? url.slice(scheme.length) : url.slice(scheme.length, scheme.length + authorityEnd)
  const rest = url.slice(scheme.length + authority.length)
  const credentialsEnd = authority.lastIndexOf('@') + 1
  const hosts = authority.slice(credentialsEnd).split(',')
  if (hosts.length > MAX_HOSTS) throw new InvalidDatabaseUrl(`an address with at most ${MAX_HOSTS} hosts`)
  const prefix = scheme + authority.slice(0, credentialsEnd)
  return hosts.map((host, index) => {
    checkHost(host, index, hosts.length)
    const single = `${prefix}${host}${withoutSessionAttributes(rest)}`
    if (!URL.canParse(single))
      throw new InvalidDatabaseUrl('an address like postgres://user:password@host:5432/database')
    return single
  })
}

function checkHost(host: string, index: number, count: number) {
  const place = count === 1 ? 'its host' : `host ${index + 1} of ${count}`
  const match = HOST.exec(host)
  if (!match || (count > 1 && match[1] === ''))
    throw new InvalidDatabaseUrl(
      `an address like postgres://user@host1:5432,host2:5432/database, and ${place} is not one`,
    )
  const port = match[2] === undefined ? undefined : Number(match[2])
  if (port !== undefined && (port < 1 || port > MAX_PORT))
    throw new InvalidDatabaseUrl(`an address whose ports are from 1 to ${MAX_PORT}, and that of ${place} is not`)
}

/** `pg` does not know the parameter; the check of each connection does what it asks for. */
function withoutSessionAttributes(rest: string): string {
  const queryAt = rest.indexOf('?')
  if (queryAt === -1) return rest
  const parameters = rest.slice(queryAt + 1).split('&')
  const kept = parameters.filter((parameter) => {
    const [name, value = ''] = parameter.split('=')
    if (name === 'host' && /,|%2c/i.test(value))
      throw new InvalidDatabaseUrl('an address with its hosts before the database, not in the parameter `host`')
    if (name !== 'target_session_attrs') return true
    if (!SESSION_ATTRIBUTES.includes(value))
      throw new InvalidDatabaseUrl(
        `an address whose target_session_attrs is ${SESSION_ATTRIBUTES.join(' or ')}, because the service writes`,
      )
    return false
  })
  return rest.slice(0, queryAt) + (kept.length > 0 ? `?${kept.join('&')}` : '')
}
