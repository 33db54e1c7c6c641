import { HTTPFacilitatorClient } from '@x402/core/http'
import { validateDiscoveryExtension, validateDiscoveryExtensionSpec, withBazaar } from '@x402/extensions/bazaar'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readChallenge, startService, type TestService } from '../harness.ts'

const admin = { 'x-admin-key': 'an-admin-key-for-this-test-only' }

let service: TestService
beforeAll(async () => {
  service = await startService({
    env: { ADMIN_KEY: admin['x-admin-key'], SECURITY_CONTACT: 'mailto:security@example.com' },
  })
})
afterAll(() => service.close())

const documents = [
  ['/.well-known/x402', 'application/json'],
  ['/discovery/resources', 'application/json'],
  ['/.well-known/agent-card.json', 'application/json'],
  ['/llms.txt', 'text/plain'],
  ['/llms-full.txt', 'text/plain'],
  ['/robots.txt', 'text/plain'],
  ['/.well-known/security.txt', 'text/plain'],
] as const

test('the list of resources refuses a limit or an offset out of range and an unknown parameter', async () => {
  for (const query of ['limit=0', 'limit=101', 'limit=x', 'offset=-1', 'offset=1.5', 'colour=red', 'type='])
    expect((await service.get(`/discovery/resources?${query}`)).status, query).toBe(400)
  for (const [path] of documents) {
    const response = await service.call('POST', path)
    expect([response.status, response.headers.get('allow')], path).toEqual([405, 'GET, HEAD'])
  }
})

test.each(documents)('%s is served as %s, to pages of any origin, with an ETag', async (path, type) => {
  const response = await service.get(path)
  expect([response.status, response.headers.get('content-type')!.split(';')[0]]).toEqual([200, type])
  expect(response.headers.get('access-control-allow-origin')).toBe('*')
  const etag = response.headers.get('etag')!
  expect((await service.get(path, { 'if-none-match': etag })).status).toBe(304)
})

test('documents are limited by address like any anonymous call', async () => {
  const strict = await startService({ env: { RATE_LIMIT_ANON_PER_MINUTE: '2' } })
  try {
    for (const status of [200, 200, 429]) expect((await strict.get('/llms-full.txt')).status).toBe(status)
  } finally {
    await strict.close()
  }
})

describe('every document agrees with the routes and the price list', () => {
  const read = async (path: string) => (await service.get(path)).body
  const readText = async (path: string) => (await service.get(path)).text

  async function compare() {
    const [pricing, openapi, wellKnown, resources, card, llms, full, robots] = await Promise.all([
      read('/api/pricing'),
      read('/openapi.json'),
      read('/.well-known/x402'),
      read('/discovery/resources'),
      read('/.well-known/agent-card.json'),
      readText('/llms.txt'),
      readText('/llms-full.txt'),
      readText('/robots.txt'),
    ])
    type Record_ = { path: string; from_usdc: number; to_usdc: number }
    const paid = (pricing.paid_execution as Record_[]).map(({ path, ...range }) => ({
      url: path.split(' ')[1]!,
      ...range,
    }))
    const urls = paid.map(({ url }) => `${service.url}${url}`)

    expect(wellKnown).toMatchObject({ version: 1, x402Version: 2, resources: urls })
    const http = resources.items.filter(({ type }: { type: string }) => type === 'http')
    expect(http.map(({ resource }: { resource: string }) => resource)).toEqual(urls)
    for (const [index, { url, from_usdc, to_usdc }] of paid.entries()) {
      const challenge = await fetch(`${service.url}${url}`, { method: 'POST' })
      expect(challenge.status, url).toBe(402)
      const required = readChallenge(challenge.headers)
      const item = http[index]
      expect(item.accepts).toEqual(required.accepts)
      expect(item.extensions).toEqual(required.extensions)
      expect(validateDiscoveryExtension(item.extensions.bazaar)).toEqual({ valid: true })
      expect(item.accepts[0].extra).toMatchObject({
        min_amount: String(Math.round(from_usdc * 1e6)),
        max_amount: String(Math.round(to_usdc * 1e6)),
      })
      expect(openapi.paths[url].post.responses).toHaveProperty('402')
      for (const text of [llms, full]) expect(text).toContain(`POST ${url}: ${from_usdc} to ${to_usdc} USDC`)
    }

    const [tool, ...otherTools] = resources.items.filter(({ type }: { type: string }) => type === 'mcp')
    expect(otherTools).toEqual([])
    expect(tool).toMatchObject({ resource: `${service.url}/mcp`, accepts: http[0].accepts })
    expect(validateDiscoveryExtension(tool.extensions.bazaar)).toEqual({ valid: true })
    expect(validateDiscoveryExtensionSpec(tool.extensions.bazaar)).toEqual({ valid: true })
    const list = await service.post(
      '/mcp',
      { jsonrpc: '2.0', id: 1, method: 'tools/list' },
      { accept: 'application/json, text/event-stream' },
    )
    const { tools } = JSON.parse(list.text.slice(list.text.indexOf('{'))).result
    const run = tools.find(({ name }: { name: string }) => name === tool.extensions.bazaar.info.input.toolName)
    expect(tool.extensions.bazaar.info.input.inputSchema).toEqual(run.inputSchema)
    const linkedPosts = [...urls, `${service.url}/mcp`]

    type Lane = { agent_id: string; display_name: string; price_usdc: number }
    const lanes = pricing.lanes as Lane[]
    expect(card.skills.map(({ id }: { id: string }) => id)).toEqual(lanes.map(({ agent_id }) => agent_id))
    for (const { agent_id, display_name, price_usdc } of lanes) {
      const skill = card.skills.find(({ id }: { id: string }) => id === agent_id)
      expect(skill).toMatchObject({ name: display_name, description: expect.stringContaining(`${price_usdc} USDC`) })
      for (const text of [llms, full]) expect(text).toMatch(new RegExp(`\`${agent_id}\`.*: ${price_usdc} USDC`))
    }
    expect(card.supportedInterfaces.map(({ url }: { url: string }) => url)).toContain(`${service.url}/api/run`)

    // Every operation is described, and nothing that does not exist.
    const operations = Object.entries(openapi.paths as Record<string, object>).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    )
    const described = [...full.matchAll(/^### `([A-Z]+ \/\S*)`/gm)].map(([, operation]) => operation)
    expect(described.toSorted()).toEqual(operations.toSorted())

    // Every address that a document names answers.
    const linked = new Set(
      [wellKnown, card, llms, robots]
        .map((document) => (typeof document === 'string' ? document : JSON.stringify(document)))
        .flatMap((text) => [...text.matchAll(/https?:\/\/127\.0\.0\.1:\d+[^\s)"'`>]*/g)].map(([address]) => address)),
    )
    expect(linked.size).toBeGreaterThan(8)
    for (const address of linked) {
      const { status } = await fetch(address, { redirect: 'manual' })
      expect([address, status]).toEqual([
        address,
        linkedPosts.includes(address) ? 405 : new URL(address).pathname === '/' ? 302 : 200,
      ])
    }
  }

  test('as shipped', compare)

  test('after the operator has changed a price and added a lane', async () => {
    const lane = { agent_id: 'poet-v1', display_name: 'Poet', category: 'verse', base_price_usdc: 0.75 }
    expect((await service.post('/api/lane', lane, admin)).status).toBe(201)
    expect((await service.call('PATCH', '/api/lane/writer-v1', { base_price_usdc: 0.009 }, admin)).status).toBe(200)
    await compare()
    expect(await readText('/llms.txt')).toContain('POST /api/run: 0.01 to 0.755 USDC')
  })
})

test('the bazaar client of x402 lists the resources, filtered and in pages', async () => {
  const client = withBazaar(new HTTPFacilitatorClient({ url: service.url }))
  const { listResources } = client.extensions.bazaar
  const all = await listResources()
  expect(all).toMatchObject({ x402Version: 2, pagination: { offset: 0, total: all.items.length } })
  expect(all.items.map(({ resource }) => resource)).toContain(`${service.url}/api/run`)
  const page = await listResources({ limit: 1, offset: 1 })
  expect(page).toMatchObject({
    items: [{ resource: all.items[1]!.resource }],
    pagination: { limit: 1, offset: 1, total: all.items.length },
  })
  expect((await listResources({ type: 'http' })).items).toHaveLength(2)
  for (const filter of [{ network: 'eip155:1' }, { scheme: 'upto' }, { payTo: '0x00' }, { extensions: 'other' }])
    expect((await listResources(filter)).items, JSON.stringify(filter)).toEqual([])
  const { network, scheme, payTo } = all.items[0]!.accepts[0]!
  expect((await listResources({ network, scheme, payTo, extensions: 'bazaar' })).items).toHaveLength(all.items.length)
})

test('security.txt has a contact and expires within a year', async () => {
  const { text } = await service.get('/.well-known/security.txt')
  expect(text).toContain('Contact: mailto:security@example.com\n')
  expect(text).toContain(`Canonical: ${service.url}/.well-known/security.txt\n`)
  const expires = Date.parse(/^Expires: (\S+)$/m.exec(text)![1]!)
  expect(expires).toBeGreaterThan(Date.now() + 30 * 86_400_000)
  expect(expires).toBeLessThan(Date.now() + 365 * 86_400_000)
})

test('robots.txt keeps crawlers away from what is private and costs work, and lets them read the rest', async () => {
  const { text } = await service.get('/robots.txt')
  expect(text).toMatch(/^User-agent: \*$/m)
  for (const path of ['/dashboard', '/api/']) expect(text).toContain(`Disallow: ${path}\n`)
  for (const path of ['/api/pricing', '/docs', '/llms.txt']) expect(text).toContain(`Allow: ${path}\n`)
})
