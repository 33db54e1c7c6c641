import { afterAll, beforeAll, expect, test } from 'vitest'
import { type OpenApi, readApiDescription } from '../../src/modules/documentation/api-description.ts'
import { codeSamples } from '../../src/modules/documentation/code-samples.ts'
import { operationPage } from '../../src/modules/documentation/operation-page.ts'
import { confirmation } from '../../src/modules/documentation/try-it-form.ts'
import { startService, type TestService } from '../harness.ts'

let service: TestService
let api: ReturnType<typeof readApiDescription>
const pages = new Map<string, string>()

const read = async (path: string): Promise<string> => {
  const page = pages.get(path) ?? (await service.get(path)).text
  pages.set(path, page)
  return page
}
const linksOf = (page: string) => [...page.matchAll(/<a [^>]*?href="([^"]+)"/g)].map(([, href]) => href!)
const idsOf = (page: string) => [...page.matchAll(/\sid="([^"]+)"/g)].map(([, id]) => id!)

beforeAll(async () => {
  service = await startService()
  api = readApiDescription((await service.get('/openapi.json')).body as OpenApi)
})
afterAll(() => service?.close())

test.each([
  '/docs/operations/no-such-call',
  '/docs/operations/__proto__',
  '/docs/operations/constructor',
  '/docs/guides/no-such-guide',
  '/docs/guides/no-such-guide.md',
  '/docs/guides/..%2f..%2fpackage.json',
  '/docs/guides/..%2f..%2fSECURITY.md',
  '/docs/guides/..%2f..%2f.countersign%2fkeys%2fdev-payer.key',
  '/docs/guides/decisions%2f0022-the-sdk-owns-the-payment',
  '/docs/assets/..%2fapprove.css',
  '/docs/anything/else',
])('an address that names no page says so: %s', async (path) => {
  const response = await service.get(path)
  expect([response.status, response.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8'])
  expect(response.headers.get('content-security-policy')).toContain("script-src 'self'")
  expect(response.text).toContain('There is no such page')
  expect(response.text).not.toContain(decodeURIComponent(path.split('/').at(-1)!))
})

test('without scripts the overview links every call, every guide and its Markdown, and openapi.json', async () => {
  const response = await service.get('/docs')
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
  const links = new Set(linksOf(response.text))
  const missing = api.operations
    .map(({ operationId }) => `/docs/operations/${operationId}`)
    .filter((path) => !links.has(path))
  expect(missing).toEqual([])
  for (const name of ['money', 'governance', 'proof', 'webhooks', 'agents', 'markets', 'operations', 'sdk', 'cli'])
    for (const path of [`/docs/guides/${name}`, `/docs/guides/${name}.md`]) expect(links).toContain(path)
  expect(links).toContain('/openapi.json')
  const markdown = await service.get('/docs/guides/money.md')
  expect(markdown.headers.get('content-type')).toBe('text/markdown; charset=utf-8')
  expect(markdown.text).toMatch(/^# Money\n/)
})

test('every call has a page with its fields, statuses and samples, without scripts', async () => {
  for (const operation of api.operations) {
    const page = await read(`/docs/operations/${operation.operationId}`)
    const ids = new Set(idsOf(page))
    const body = operation.requestBody?.content?.['application/json']?.schema
    const expected = [
      ...(operation.parameters ?? []).map(({ in: place, name }) => `${place}.${name}`),
      ...(body ? api.fieldsOf(body, 'body').map(({ path }) => path) : []),
      ...Object.keys(operation.responses).map((status) => `answer-${status}`),
      'curl',
      'typescript',
    ]
    expect(
      expected.filter((id) => !ids.has(id)),
      operation.operationId,
    ).toEqual([])
    expect(page).toContain(`<code>${operation.path}</code>`)
  }
})

test('no page has the same id twice, an inline script or style, or a resource of another origin', async () => {
  const paths = new Set(
    linksOf(await read('/docs')).filter((path) => /^\/docs\/(operations|guides)\/[^.]+$/.test(path)),
  )
  expect(paths.size).toBeGreaterThan(api.operations.length + 10)
  for (const path of ['/docs', ...paths]) {
    const page = await read(path)
    const ids = idsOf(page)
    expect(
      ids.filter((id, index) => ids.indexOf(id) !== index),
      path,
    ).toEqual([])
    expect(page, path).not.toMatch(/<style|\sstyle=|<script(?! type="module" src="\/docs\/assets\/docs.js")|\son\w+=/)
    expect(page, path).not.toMatch(/<(script|link|img|iframe)[^>]*(src|href)="(?!\/)/)
  }
})

test('every link within the documentation leads to a page, and to an element of it', async () => {
  const broken: string[] = []
  const check = async (href: string, from: string) => {
    const { pathname, hash } = new URL(href, `http://docs${from}`)
    if (pathname.startsWith('/docs')) {
      const target = await read(pathname)
      const id = decodeURIComponent(hash.slice(1))
      if (target.includes('There is no such page') || (id && !idsOf(target).includes(id)))
        broken.push(`${from} → ${href}`)
    }
  }
  const guides = linksOf(await read('/docs')).filter((path) => /^\/docs\/guides\/[^.]+$/.test(path))
  for (const path of ['/docs', '/docs/operations/run', ...guides])
    for (const href of linksOf(await read(path))) if (!/^(https?|mailto):/.test(href)) await check(href, path)
  expect(broken).toEqual([])
})

test('every row of the search index leads to an element of a page, and none is found in vain', async () => {
  const rows: [string, string, string, string, string][] = (await service.get('/docs/search.json')).body
  const broken: string[] = []
  const ids = new Map<string, Set<string>>()
  for (const [, title, , url] of rows) {
    const { pathname, hash } = new URL(url, 'http://docs')
    if (!ids.has(pathname)) ids.set(pathname, new Set(idsOf(await read(pathname))))
    if (hash && !ids.get(pathname)!.has(decodeURIComponent(hash.slice(1)))) broken.push(`${title} ${url}`)
  }
  expect(broken).toEqual([])
  const urls = rows.map(([, , , url]) => url)
  expect(urls).toContain('/docs/operations/run')
  expect(urls).toContain('/docs/operations/run#body.budget.max_price_usdc')
  expect(urls).toContain('/docs/guides/money#idempotency')
})

test('no page shows a regular expression of a schema', async () => {
  const patterns = new Set(
    [...JSON.stringify(api.document).matchAll(/"pattern":("(?:[^"\\]|\\.)*")/g)].map(([, text]) => JSON.parse(text!)),
  )
  expect(patterns.size).toBeGreaterThan(10)
  for (const { operationId } of api.operations) {
    const page = (await read(`/docs/operations/${operationId}`)).replaceAll('&#39;', "'").replaceAll('&lt;', '<')
    for (const pattern of patterns)
      if (pattern.length > 4) expect(page.includes(pattern), `${operationId} ${pattern}`).toBe(false)
  }
})

test('every paid call is shown with an idempotency key, as a command and as a program', () => {
  const options = { baseUrl: 'http://127.0.0.1:4020', hasDevelopmentChain: true }
  const paid = api.operations.filter((operation) => 'x-payment-info' in operation)
  expect(paid.map(({ operationId }) => operationId).sort()).toEqual(['loop', 'run', 'topUpWallet'])
  for (const operation of paid) {
    const { curl, typescript } = codeSamples(operation, options)
    expect(curl).toMatch(/^IDEMPOTENCY_KEY=/)
    expect(curl).toContain('-H "Idempotency-Key: $IDEMPOTENCY_KEY"')
    expect(typescript).toContain('idempotencyKey: crypto.randomUUID()')
  }
})

test('a sample for a service without the development chain does not allow one', () => {
  const run = api.operations.find(({ operationId }) => operationId === 'run')!
  const { typescript } = codeSamples(run, { baseUrl: 'https://countersign.example', hasDevelopmentChain: false })
  expect(typescript).not.toContain('allowDevelopmentChain')
})

test('what deletes, changes or decides is asked about before the page sends it; what reads is not', () => {
  const asks = api.operations.filter((operation) => confirmation(operation)).map(({ operationId }) => operationId)
  for (const { method, operationId } of api.operations) {
    if (method === 'get') expect(asks).not.toContain(operationId)
    if (['delete', 'put', 'patch'].includes(method)) expect(asks).toContain(operationId)
  }
  const consequential = [
    'steerAgent',
    'closePreauth',
    'resolveApproval',
    'rhRun',
    'rhApprove',
    'rhAuthRevoke',
    'setRhKillSwitch',
    'settle',
    'rotateOwnKey',
    'revokeMandate',
    'releaseEscrow',
    'withdraw',
    'createTenant',
    'topUpWallet',
    'cancelRhRun',
  ]
  expect(consequential.filter((operationId) => !asks.includes(operationId))).toEqual([])
  for (const operationId of ['route', 'simulatePolicy', 'verifyReceipt', 'searchMemories', 'run'])
    expect(asks).not.toContain(operationId)
})

test('markup and quotes in the description of the API are shown as text', () => {
  const hostile = `<script>alert(1)</script>"'><img src=x onerror=alert(1)>`
  const schema = {
    type: 'object',
    properties: { [hostile]: { type: 'string', description: hostile, default: hostile, enum: [hostile] } },
  }
  const operation = {
    operationId: 'hostile',
    summary: hostile,
    description: hostile,
    tags: [hostile],
    parameters: [{ name: hostile, in: 'query' as const, description: hostile, schema: { enum: [hostile] } }],
    requestBody: { description: hostile, content: { 'application/json': { schema, example: { [hostile]: hostile } } } },
    responses: { 200: { description: hostile, content: { 'application/json': { schema, example: hostile } } } },
  }
  const description = readApiDescription({
    info: { title: '', version: '', description: '' },
    paths: { [`/${hostile}`]: { post: operation } },
    components: {},
  })
  const { markup } = operationPage(description.operations[0]!, description, {
    baseUrl: 'http://127.0.0.1:4020',
    hasDevelopmentChain: true,
  })
  expect(markup).not.toMatch(/<script|<img/)
  const withoutValues = markup.replaceAll(/="[^"]*"/g, '')
  expect(withoutValues).not.toMatch(/<[^>]*onerror/)
})
