import type { IncomingHttpHeaders } from 'node:http'

/** Headers that other services take keys in. */
const OTHER_HEADERS = ['api-key', 'apikey', 'x-apikey', 'x-api-token', 'x-auth-token']
const KEY = /^["']?csk_/

/** Where a request without an X-API-Key has its key instead, in words; undefined when it has none. */
export function findMisplacedKey(headers: IncomingHttpHeaders, url: string): string | undefined {
  const [, scheme = '', credentials = ''] = /^(?:(bearer|basic|token) +)?(.*)$/i.exec(headers.authorization ?? '') ?? []
  const value = /^basic$/i.test(scheme) ? Buffer.from(credentials, 'base64').toString() : credentials
  if (KEY.test(value))
    return `as Authorization${scheme && `: ${scheme[0]!.toUpperCase()}${scheme.slice(1).toLowerCase()}`}`
  const header = OTHER_HEADERS.find((name) => KEY.test(String(headers[name] ?? '')))
  if (header) return `as ${header}`
  return /[?&][^=&]*=csk_/.test(url) ? 'in the address, which ends up in logs' : undefined
}
