import type { Operation } from './tools.ts'

/** An answer of the HTTP API to a call made for an MCP client. */
export type Answer = { status: number; headers: Record<string, string | undefined>; body: unknown }

/** Sends a request through the whole HTTP API of this process, so that every check, limit and rule of it applies. */
export type SendRequest = (request: {
  method: string
  path: string
  headers: Record<string, string>
  body?: unknown
  /** The address of the MCP client, which limits by address count. */
  address: string
}) => Promise<Answer>

/** Who calls: only a key is passed on, never a cookie, because a page of another origin cannot send the key. */
export type ClientRequest = { apiKey: string | undefined; address: string }

export async function callOperation(
  send: SendRequest,
  { method, url, schema }: Operation,
  args: Record<string, unknown>,
  client: ClientRequest,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const remaining = { ...args }
  const names = [...url.matchAll(/:(\w+)/g)].map(([, name]) => name!)
  const badName = names.find((name) => !isPathPart(args[name]))
  if (badName !== undefined) return refuse(`The argument ${badName} is missing or not usable as a part of a path.`)
  for (const name of names) delete remaining[name]
  const path = url.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(args[name] as string))
  const key: Record<string, string> = client.apiKey === undefined ? {} : { 'x-api-key': client.apiKey }
  const request = { method, headers: { ...headers, ...key }, address: client.address }
  if (schema.body) return send({ ...request, path, body: remaining })
  const query = new URLSearchParams(
    Object.entries(remaining).map(([name, value]): [string, string] => [name, toText(value)]),
  )
  return send({ ...request, path: query.size > 0 ? `${path}?${query}` : path })
}

/** Dots alone would be resolved to another path before the route is chosen. */
const isPathPart = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= MAX_PATH_PART && !/^\.{0,2}$/.test(value)

const MAX_PATH_PART = 256

const refuse = (message: string): Answer => ({ status: 400, headers: {}, body: { error: 'invalid_request', message } })

const toText = (value: unknown) => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))
