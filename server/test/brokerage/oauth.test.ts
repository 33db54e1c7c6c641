import { createHash, randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTokenExchange } from '../../src/adapters/brokers/oauth-token.ts'
import { accountIdOf } from '../../src/modules/brokerage/oauth.ts'
import { listen, type Served } from './fake-exchange.ts'
import { openWorld, type World } from './world.ts'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** A small authorisation server: it redirects back with a code, and gives a token for it once, to who can prove it. */
async function openAuthority(): Promise<Served & { mood: { token: 'ok' | 'down' | 'nonsense' } }> {
  const codes = new Map<string, { challenge: string | null; redirectUri: string }>()
  const mood = { token: 'ok' as 'ok' | 'down' | 'nonsense' }
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://authority')
    if (url.pathname === '/authorize') {
      const code = randomBytes(8).toString('hex')
      const redirectUri = url.searchParams.get('redirect_uri')!
      codes.set(code, { challenge: url.searchParams.get('code_challenge'), redirectUri })
      const back = new URL(redirectUri)
      back.searchParams.set('code', code)
      back.searchParams.set('state', url.searchParams.get('state')!)
      return void response.writeHead(302, { location: back.href }).end()
    }
    let text = ''
    request.on('data', (chunk) => {
      text += chunk
    })
    request.on('end', () => {
      const form = new URLSearchParams(text)
      const issued = codes.get(form.get('code') ?? '')
      const proof = createHash('sha256')
        .update(form.get('code_verifier') ?? '')
        .digest('base64url')
      const proven = issued && (issued.challenge === null || issued.challenge === proof)
      const right =
        form.get('client_id') === 'client' &&
        form.get('client_secret') === 'secret' &&
        form.get('redirect_uri') === issued?.redirectUri
      if (mood.token === 'down') return void request.socket.destroy()
      if (mood.token === 'nonsense') return void response.writeHead(200).end('not json')
      if (!proven || !right) return void response.writeHead(400).end('{"error":"invalid_grant"}')
      codes.delete(form.get('code')!)
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(
        JSON.stringify({ access_token: 'the-real-token', refresh_token: 'the-real-refresh', token_type: 'Bearer' }),
      )
    })
  })
  return { ...(await listen(server)), mood }
}

let authority: Awaited<ReturnType<typeof openAuthority>>
beforeAll(async () => {
  authority = await openAuthority()
})
afterAll(async () => authority.close())

const openLinked = (mode: 'scaffold' | 'strict', unset: Record<string, undefined> = {}) =>
  openWorld({
    oauth: {
      mode,
      authorizeUrl: `${authority.url}/authorize?brand=1`,
      redirectUri: 'http://127.0.0.1/api/rh/auth/callback',
      ...unset,
    },
    exchange: createTokenExchange(`${authority.url}/token`, 2000),
  })

/** The user's browser: goes where it is sent, and comes back with what it was given. */
async function visit(world: World, headers: Record<string, string> = {}) {
  const sent = await world.call('GET', '/api/rh/auth', undefined, headers)
  expect(sent.status, sent.text).toBe(302)
  const there = await fetch(String(sent.headers.location), { redirect: 'manual' })
  const back = new URL(there.headers.get('location')!)
  return {
    asked: new URL(String(sent.headers.location)),
    code: back.searchParams.get('code')!,
    state: back.searchParams.get('state')!,
  }
}

const callback = (world: World, query: Record<string, string>) =>
  world.call('GET', `/api/rh/auth/callback?${new URLSearchParams(query)}`, undefined, { 'x-api-key': '' })

const account = async (world: World, code: string) => {
  const { rows } = await sql<{ tenant_id: string; tokens: string; metadata: Record<string, unknown> }>`
    select tenant_id, tokens, metadata from rh_oauth_accounts where rh_account_id = ${accountIdOf(code)}`.execute(
    world.db,
  )
  return rows[0]
}
const tokensOf = async (world: World, code: string) =>
  JSON.parse(world.keys.decrypt((await account(world, code))!.tokens))

const LINKED = { domain: 'rh', oauth_ready: true, token_stored: true, account_stub_created: true, encrypted: true }

describe('the scaffold, as the interface says', () => {
  let world: World
  beforeAll(async () => {
    world = await openLinked('scaffold')
  })
  afterAll(async () => world.close())

  test('302 to the configured address with exactly client_id, redirect_uri, scope and a random state', async () => {
    const { asked } = await visit(world, { 'x-api-key': 'not a key' })
    expect(asked.origin + asked.pathname).toBe(`${authority.url}/authorize`)
    expect([...asked.searchParams.keys()]).toEqual(['brand', 'client_id', 'redirect_uri', 'scope', 'state'])
    expect(asked.searchParams.get('state')).toMatch(UUID)
    expect((await visit(world)).asked.searchParams.get('state')).not.toBe(asked.searchParams.get('state'))
  })

  test('the tokens are kept encrypted, for the tenant oauth-scaffold, under an id derived from the code', async () => {
    const { code } = await visit(world)
    const linked = await callback(world, { code, state: 'anything' })
    expect([linked.status, linked.body]).toEqual([200, LINKED])
    const row = await account(world, code)
    expect(row).toMatchObject({ tenant_id: 'oauth-scaffold', metadata: { stub: false } })
    expect(row!.tokens).not.toContain('the-real-token')
    expect(await tokensOf(world, code)).toMatchObject({ access_token: 'the-real-token' })
  })

  test.each(['down', 'nonsense'] as const)('the exchange is %s: stub tokens instead of an error', async (mood) => {
    authority.mood.token = mood
    const linked = await callback(world, { code: `code-${mood}` })
    authority.mood.token = 'ok'
    expect([linked.status, linked.body]).toEqual([200, LINKED])
    expect(await tokensOf(world, `code-${mood}`)).toMatchObject({ stub: true, token_type: 'stub' })
  })

  test('without a code: 400', async () => {
    expect((await callback(world, {})).status).toBe(400)
    expect((await callback(world, { code: '' })).status).toBe(400)
  })

  test('revoke is always 200; a row that matches is marked once and kept', async () => {
    const revoke = (body?: unknown) => world.call('POST', '/api/rh/auth/revoke', body, { 'x-api-key': 'not a key' })
    expect((await revoke()).body).toEqual({ domain: 'rh', revoked: true, rh_account_id: null })
    expect((await revoke({ rh_account_id: 'nobody' })).body).toEqual({
      domain: 'rh',
      revoked: true,
      rh_account_id: 'nobody',
    })
    await callback(world, { code: 'to-revoke' })
    const id = accountIdOf('to-revoke')
    expect((await revoke({ rh_account_id: id })).status).toBe(200)
    const marked = (await account(world, 'to-revoke'))!.metadata.revoked_at
    expect(marked).toBe(world.clock.now().toISOString())
    world.clock.advance(5000)
    await revoke({ rh_account_id: id })
    await callback(world, { code: 'to-revoke' })
    expect((await account(world, 'to-revoke'))!.metadata.revoked_at).toBe(marked)
  })
})

describe('not configured', () => {
  let world: World
  beforeAll(async () => {
    world = await openLinked('scaffold', { clientId: undefined, clientSecret: undefined, redirectUri: undefined })
  })
  afterAll(async () => world.close())

  test('503 for the redirect and the callback; a missing code is still a 400, and revoke still 200', async () => {
    expect((await world.call('GET', '/api/rh/auth')).body).toMatchObject({ error: 'error', code: 'not_configured' })
    expect((await world.call('GET', '/api/rh/auth')).status).toBe(503)
    expect((await callback(world, { code: 'x' })).status).toBe(503)
    expect((await callback(world, {})).status).toBe(400)
    for (const body of [{}, { rh_account_id: null }, { reason: 'left the company' }])
      expect((await world.call('POST', '/api/rh/auth/revoke', body)).status).toBe(200)
  })
})

describe('strict', () => {
  let world: World
  beforeAll(async () => {
    world = await openLinked('strict')
    await world.addTenant('ten_two')
  })
  afterAll(async () => world.close())

  test('a key is asked for, the state is bound and works once, and the code is proven by PKCE', async () => {
    expect((await world.call('GET', '/api/rh/auth', undefined, { 'x-api-key': 'nobody' })).status).toBe(401)
    const { asked, code, state } = await visit(world)
    expect(asked.searchParams.get('response_type')).toBe('code')
    expect(asked.searchParams.get('code_challenge_method')).toBe('S256')
    const linked = await callback(world, { code, state })
    expect([linked.status, linked.body]).toEqual([200, LINKED])
    expect(await account(world, code)).toMatchObject({
      tenant_id: 'ten_one',
      metadata: { mode: 'strict', stub: false },
    })
    expect((await callback(world, { code, state })).status).toBe(400)
  })

  test('no state, a made-up one, an old one, or another code’s: 400 and nothing stored', async () => {
    const first = await visit(world)
    const second = await visit(world)
    expect((await callback(world, { code: first.code })).status).toBe(400)
    expect((await callback(world, { code: first.code, state: 'made-up' })).status).toBe(400)
    // Another login's state: the proof does not fit the code, and the broker says so.
    expect((await callback(world, { code: first.code, state: second.state })).status).toBe(400)
    const late = await visit(world)
    world.clock.advance(10 * 60_000)
    expect((await callback(world, { code: late.code, state: late.state })).status).toBe(400)
    for (const { code } of [first, second, late]) expect(await account(world, code)).toBeUndefined()
  })

  test('a broker that is down is a 503, never a stub', async () => {
    const { code, state } = await visit(world)
    authority.mood.token = 'down'
    expect((await callback(world, { code, state })).status).toBe(503)
    authority.mood.token = 'ok'
    expect(await account(world, code)).toBeUndefined()
  })

  test('only the owner revokes; another’s account and an unknown one look the same', async () => {
    const { code, state } = await visit(world)
    await callback(world, { code, state })
    const body = { rh_account_id: accountIdOf(code) }
    const other = { 'x-api-key': 'ten_two', 'x-request-id': 'same' }
    expect((await world.call('POST', '/api/rh/auth/revoke', body, { 'x-api-key': 'nobody' })).status).toBe(401)
    const foreign = await world.call('POST', '/api/rh/auth/revoke', body, other)
    const unknown = await world.call('POST', '/api/rh/auth/revoke', { rh_account_id: 'rh_x' }, other)
    expect([foreign.status, foreign.text]).toEqual([404, unknown.text])
    expect((await account(world, code))!.metadata.revoked_at).toBeUndefined()
    expect((await world.call('POST', '/api/rh/auth/revoke', body)).status).toBe(200)
    expect((await account(world, code))!.metadata.revoked_at).toBeDefined()
  })
})
