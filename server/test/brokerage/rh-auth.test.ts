import { createHash, randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTokenExchange } from '../../src/adapters/brokers/oauth-token-exchange.ts'
import { deriveAccountId } from '../../src/modules/brokerage/rh-auth.ts'
import { listen, type TestServer } from './fake-exchange.ts'
import { openWorld, type World } from './world.ts'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/

type Behaviour = {
  token: 'ok' | 'down' | 'nonsense'
  /** The codes that were sent to the token endpoint. */
  exchangedCodes: string[]
}

/** A small authorisation server: it redirects back with a code and exchanges it once, with client credentials and PKCE. */
async function startAuthorizationServer(): Promise<TestServer & { behaviour: Behaviour }> {
  const codes = new Map<string, { challenge: string | null; redirectUri: string }>()
  const behaviour: Behaviour = { token: 'ok', exchangedCodes: [] }
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://authority')
    if (url.pathname === '/authorize') {
      const code = randomBytes(8).toString('hex')
      const redirectUri = url.searchParams.get('redirect_uri')!
      codes.set(code, { challenge: url.searchParams.get('code_challenge'), redirectUri })
      const callbackUrl = new URL(redirectUri)
      callbackUrl.searchParams.set('code', code)
      callbackUrl.searchParams.set('state', url.searchParams.get('state')!)
      return void response.writeHead(302, { location: callbackUrl.href }).end()
    }
    let text = ''
    request.on('data', (chunk) => {
      text += chunk
    })
    request.on('end', () => {
      const form = new URLSearchParams(text)
      const issuedCode = codes.get(form.get('code') ?? '')
      behaviour.exchangedCodes.push(form.get('code') ?? '')
      const proof = createHash('sha256')
        .update(form.get('code_verifier') ?? '')
        .digest('base64url')
      const isProven = issuedCode && (issuedCode.challenge === null || issuedCode.challenge === proof)
      const hasClientCredentials =
        form.get('client_id') === 'client' &&
        form.get('client_secret') === 'secret' &&
        form.get('redirect_uri') === issuedCode?.redirectUri
      if (behaviour.token === 'down') return void request.socket.destroy()
      if (behaviour.token === 'nonsense') return void response.writeHead(200).end('not json')
      if (!isProven || !hasClientCredentials) return void response.writeHead(400).end('{"error":"invalid_grant"}')
      codes.delete(form.get('code')!)
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(
        JSON.stringify({ access_token: 'the-real-token', refresh_token: 'the-real-refresh', token_type: 'Bearer' }),
      )
    })
  })
  return { ...(await listen(server)), behaviour }
}

let authorizationServer: Awaited<ReturnType<typeof startAuthorizationServer>>
beforeAll(async () => {
  authorizationServer = await startAuthorizationServer()
})
afterAll(async () => authorizationServer.close())

const openAuthWorld = (mode: 'scaffold' | 'strict', unset: Record<string, undefined> = {}) =>
  openWorld({
    oauth: {
      mode,
      authorizeUrl: `${authorizationServer.url}/authorize?brand=1`,
      redirectUri: 'http://127.0.0.1/api/rh/auth/callback',
      ...unset,
    },
    exchange: createTokenExchange(`${authorizationServer.url}/token`, 2000),
  })

/** Follows the redirects as the user's browser would and returns the callback's parameters and the browser's cookie. */
async function authorizeInBrowser(world: World, headers: Record<string, string> = {}) {
  const redirect = await world.call('GET', '/api/rh/auth', undefined, headers)
  expect(redirect.status, redirect.text).toBe(302)
  const authorization = await fetch(String(redirect.headers.location), { redirect: 'manual' })
  const callbackUrl = new URL(authorization.headers.get('location')!)
  return {
    authorizeUrl: new URL(String(redirect.headers.location)),
    code: callbackUrl.searchParams.get('code')!,
    state: callbackUrl.searchParams.get('state')!,
    setCookie: String(redirect.headers['set-cookie'] ?? ''),
    cookie: String(redirect.headers['set-cookie'] ?? '').split(';')[0]!,
  }
}

const callback = (world: World, query: Record<string, string>, cookie = '') =>
  world.call('GET', `/api/rh/auth/callback?${new URLSearchParams(query)}`, undefined, {
    'x-api-key': '',
    ...(cookie && { cookie }),
  })

const readAccount = async (world: World, code: string) => {
  const { rows } = await sql<{ tenant_id: string; tokens: string; metadata: Record<string, unknown> }>`
    select tenant_id, tokens, metadata from rh_oauth_accounts where rh_account_id = ${deriveAccountId(code)}`.execute(
    world.db,
  )
  return rows[0]
}
const readTokens = async (world: World, code: string) =>
  JSON.parse(world.keys.decrypt((await readAccount(world, code))!.tokens))

const LINKED = { domain: 'rh', oauth_ready: true, token_stored: true, account_stub_created: true, encrypted: true }

describe('scaffold mode', () => {
  let world: World
  beforeAll(async () => {
    world = await openAuthWorld('scaffold')
  })
  afterAll(async () => world.close())

  test('/api/rh/auth redirects with exactly client_id, redirect_uri, scope and a random state', async () => {
    const { authorizeUrl, setCookie } = await authorizeInBrowser(world, { 'x-api-key': 'not a key' })
    expect(setCookie).toBe('')
    expect(authorizeUrl.origin + authorizeUrl.pathname).toBe(`${authorizationServer.url}/authorize`)
    expect([...authorizeUrl.searchParams.keys()]).toEqual(['brand', 'client_id', 'redirect_uri', 'scope', 'state'])
    expect(authorizeUrl.searchParams.get('state')).toMatch(UUID)
    expect((await authorizeInBrowser(world)).authorizeUrl.searchParams.get('state')).not.toBe(
      authorizeUrl.searchParams.get('state'),
    )
  })

  test('tokens are stored encrypted, for the tenant oauth-scaffold, under an id derived from the code', async () => {
    const { code } = await authorizeInBrowser(world)
    const linkResponse = await callback(world, { code, state: 'anything' })
    expect([linkResponse.status, linkResponse.body]).toEqual([200, LINKED])
    const row = await readAccount(world, code)
    expect(row).toMatchObject({ tenant_id: 'oauth-scaffold', metadata: { stub: false } })
    expect(row!.tokens).not.toContain('the-real-token')
    expect(await readTokens(world, code)).toMatchObject({ access_token: 'the-real-token' })
  })

  test.each(['down', 'nonsense'] as const)('when the token exchange is %s, stub tokens are stored', async (failure) => {
    authorizationServer.behaviour.token = failure
    const linkResponse = await callback(world, { code: `code-${failure}` })
    authorizationServer.behaviour.token = 'ok'
    expect([linkResponse.status, linkResponse.body]).toEqual([200, LINKED])
    expect(await readTokens(world, `code-${failure}`)).toMatchObject({ stub: true, token_type: 'stub' })
  })

  test('a callback without a code is a 400', async () => {
    expect((await callback(world, {})).status).toBe(400)
    expect((await callback(world, { code: '' })).status).toBe(400)
  })

  test('revoke is always a 200, and marks a matching account once', async () => {
    const revoke = (body?: unknown) => world.call('POST', '/api/rh/auth/revoke', body, { 'x-api-key': 'not a key' })
    expect((await revoke()).body).toEqual({ domain: 'rh', revoked: true, rh_account_id: null })
    expect((await revoke({ rh_account_id: 'nobody' })).body).toEqual({
      domain: 'rh',
      revoked: true,
      rh_account_id: 'nobody',
    })
    await callback(world, { code: 'to-revoke' })
    const id = deriveAccountId('to-revoke')
    expect((await revoke({ rh_account_id: id })).status).toBe(200)
    const revokedAt = (await readAccount(world, 'to-revoke'))!.metadata.revoked_at
    expect(revokedAt).toBe(world.clock.now().toISOString())
    world.clock.advance(5000)
    await revoke({ rh_account_id: id })
    await callback(world, { code: 'to-revoke' })
    expect((await readAccount(world, 'to-revoke'))!.metadata.revoked_at).toBe(revokedAt)
  })
})

describe('not configured', () => {
  let world: World
  beforeAll(async () => {
    world = await openAuthWorld('scaffold', { clientId: undefined, clientSecret: undefined, redirectUri: undefined })
  })
  afterAll(async () => world.close())

  test('redirect and callback are a 503, a missing code is a 400 and revoke is a 200', async () => {
    expect((await world.call('GET', '/api/rh/auth')).body).toMatchObject({ error: 'error', code: 'not_configured' })
    expect((await world.call('GET', '/api/rh/auth')).status).toBe(503)
    expect((await callback(world, { code: 'x' })).status).toBe(503)
    expect((await callback(world, {})).status).toBe(400)
    for (const body of [{}, { rh_account_id: null }, { reason: 'left the company' }])
      expect((await world.call('POST', '/api/rh/auth/revoke', body)).status).toBe(200)
  })
})

describe('strict mode', () => {
  let world: World
  beforeAll(async () => {
    world = await openAuthWorld('strict')
    await world.addTenant('ten_two')
  })
  afterAll(async () => world.close())

  test('linking requires a key, a state that works once, and PKCE', async () => {
    expect((await world.call('GET', '/api/rh/auth', undefined, { 'x-api-key': 'nobody' })).status).toBe(401)
    const { authorizeUrl, code, state, cookie } = await authorizeInBrowser(world)
    expect(authorizeUrl.searchParams.get('response_type')).toBe('code')
    expect(authorizeUrl.searchParams.get('code_challenge_method')).toBe('S256')
    const linkResponse = await callback(world, { code, state }, cookie)
    expect([linkResponse.status, linkResponse.body]).toEqual([200, LINKED])
    expect(linkResponse.headers['set-cookie']).toMatch(/^countersign_rh_link_[0-9a-f]{16}=; Path=\/; Max-Age=0;/)
    expect(await readAccount(world, code)).toMatchObject({
      tenant_id: 'ten_one',
      metadata: { mode: 'strict', stub: false },
    })
    expect((await callback(world, { code, state }, cookie)).status).toBe(400)
  })

  test('a login that was begun in another browser is refused, its code is not exchanged, and its own browser can still finish it', async () => {
    const attacker = await authorizeInBrowser(world, { 'x-api-key': 'ten_two' })
    expect(attacker.setCookie).toMatch(/; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax$/)
    // The victim follows the attacker's address: with no cookie, and with the cookie of a login of his own.
    const victim = await authorizeInBrowser(world)
    const query = { code: attacker.code, state: attacker.state }
    const ownCookie = victim.cookie.split('=')[1]!
    const cookieName = attacker.cookie.split('=')[0]!
    for (const cookie of ['', victim.cookie, `${cookieName}=${ownCookie}`, `${cookieName}=`, `${cookieName}=short`]) {
      const refused = await callback(world, query, cookie)
      expect([refused.status, refused.body.error]).toEqual([400, 'invalid_request'])
    }
    expect((await callback(world, query)).body.message).toContain('not begun in this browser')
    expect(authorizationServer.behaviour.exchangedCodes).not.toContain(attacker.code)
    expect(await readAccount(world, attacker.code)).toBeUndefined()
    expect((await callback(world, query, `other=1; ${attacker.cookie}`)).status).toBe(200)
    expect(await readAccount(world, attacker.code)).toMatchObject({ tenant_id: 'ten_two' })
    // Two logins in one browser do not end each other.
    const cookies = `${attacker.cookie}; ${victim.cookie}`
    expect((await callback(world, { code: victim.code, state: victim.state }, cookies)).status).toBe(200)
  })

  test('a missing, invented, expired or foreign state is a 400 and stores nothing', async () => {
    const firstLogin = await authorizeInBrowser(world)
    const secondLogin = await authorizeInBrowser(world)
    const cookies = `${firstLogin.cookie}; ${secondLogin.cookie}`
    expect((await callback(world, { code: firstLogin.code }, cookies)).status).toBe(400)
    expect((await callback(world, { code: firstLogin.code, state: 'made-up' }, cookies)).status).toBe(400)
    // With the state of another login the PKCE verifier does not match the code, so the broker refuses it.
    const swapped = await callback(world, { code: firstLogin.code, state: secondLogin.state }, cookies)
    expect([swapped.status, swapped.body.message]).toEqual([400, 'The broker does not accept this code.'])
    const expiredLogin = await authorizeInBrowser(world)
    world.clock.advance(10 * 60_000)
    const { code: lateCode, state: lateState, cookie: lateCookie } = expiredLogin
    expect((await callback(world, { code: lateCode, state: lateState }, lateCookie)).status).toBe(400)
    for (const { code } of [firstLogin, secondLogin, expiredLogin])
      expect(await readAccount(world, code)).toBeUndefined()
  })

  test('when the broker is down the callback is a 503 and stores no stub', async () => {
    const { code, state, cookie } = await authorizeInBrowser(world)
    authorizationServer.behaviour.token = 'down'
    expect((await callback(world, { code, state }, cookie)).status).toBe(503)
    authorizationServer.behaviour.token = 'ok'
    expect(await readAccount(world, code)).toBeUndefined()
  })

  test('only the owner can revoke; a foreign account and an unknown one give the same 404', async () => {
    const { code, state, cookie } = await authorizeInBrowser(world)
    await callback(world, { code, state }, cookie)
    const body = { rh_account_id: deriveAccountId(code) }
    const otherHeaders = { 'x-api-key': 'ten_two', 'x-request-id': 'same' }
    expect((await world.call('POST', '/api/rh/auth/revoke', body, { 'x-api-key': 'nobody' })).status).toBe(401)
    const foreignResponse = await world.call('POST', '/api/rh/auth/revoke', body, otherHeaders)
    const unknownResponse = await world.call('POST', '/api/rh/auth/revoke', { rh_account_id: 'rh_x' }, otherHeaders)
    expect([foreignResponse.status, foreignResponse.text]).toEqual([404, unknownResponse.text])
    expect((await readAccount(world, code))!.metadata.revoked_at).toBeUndefined()
    expect((await world.call('POST', '/api/rh/auth/revoke', body)).status).toBe(200)
    expect((await readAccount(world, code))!.metadata.revoked_at).toBeDefined()
  })
})
