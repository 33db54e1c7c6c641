import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  cosignatureLine,
  cosignatureMessage,
  formatVerifierKey,
  NOTE_COSIGNATURE_V1,
  parseNote,
} from '@countersign/proof'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { clients, readChallenge, signAuthorization, signPayment, USDC } from '../harness.ts'

/** Text that only the victim's rows contain; an answer to anybody else that contains it is a leak. */
export const CANARY = 'quokka-canary-58213'

export const ADMIN_KEY = 'the-admin-key-of-the-fuzzer'
const NETWORK = 'eip155:8453'
const WITNESS = 'witness.fuzz.test'

/** What every other party answers; the service stores it as the evidence of a price source. */
export const UPSTREAM_BODY = '{}'

export type Tenant = { tenantId: string; apiKey: string; headers: Record<string, string>; walletId: string }
type Call = ReturnType<typeof clients>['call']

/** The parts outside the service that its settings name: a receiver of webhooks, a billing provider, a witness and the payee's key. */
export async function openSurroundings() {
  const server = createServer(async (request, response) => {
    request.resume()
    const isBilling = request.url?.includes('billing_portal')
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(
      isBilling
        ? '{"id":"bps_1","object":"billing_portal.session","url":"https://billing.test/session/1"}'
        : UPSTREAM_BODY,
    )
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const payee = privateKeyToAccount(generatePrivateKey())
  const witness = generateKeyPairSync('ed25519')
  const env = {
    ADMIN_KEY,
    // Our key, not one of the service: withdrawals then wait for the operator, and can be confirmed and cancelled.
    PAY_TO_ADDRESS: payee.address,
    LOG_WITNESSES: formatVerifierKey({
      name: WITNESS,
      type: NOTE_COSIGNATURE_V1,
      publicKey: rawPublicKey(witness.publicKey),
    }),
    XSTOCKS_API_URL: url,
    STRIPE_SECRET_KEY: 'sk_test_fuzz',
    STRIPE_API_URL: url,
    RH_OAUTH_CLIENT_ID: 'client',
    RH_OAUTH_CLIENT_SECRET: 'secret-of-the-fuzzer',
    RH_OAUTH_REDIRECT_URI: `${url}/back`,
    RH_OAUTH_AUTHORIZE_URL: `${url}/authorize`,
    RH_OAUTH_TOKEN_URL: `${url}/token`,
  }
  return {
    url,
    env,
    payee,
    witness: witness.privateKey,
    close: () =>
      new Promise<void>((closed) => {
        server.close(() => closed())
        server.closeAllConnections()
      }),
  }
}

export type Surroundings = Awaited<ReturnType<typeof openSurroundings>>

const rawPublicKey = (key: KeyObject) =>
  new Uint8Array(Buffer.from(key.export({ format: 'jwk' }).x as string, 'base64url'))

export type World = Awaited<ReturnType<typeof createWorld>>

/** Tenants with money and rows of every kind. The victim's rows contain the canary; the caller's requests are mutated. */
export async function createWorld(url: string, surroundings: Surroundings) {
  const client = clients(url)
  const admin = { 'x-admin-key': ADMIN_KEY }
  const payer = privateKeyToAccount(generatePrivateKey())
  await expectSuccess(client.call, 'POST', '/api/dev/faucet', { address: payer.address, amount_usdc: 100_000 })

  /** A call that must succeed, because the world is made of it. */
  const make = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    expectSuccess(client.call, method, path, body, headers)

  const pay = async (path: string, body: unknown, headers: Record<string, string>) =>
    make('POST', path, body, { ...headers, ...(await paymentFor(client.call, payer, path, body, headers)) })

  const createTenant = async (name: string, usdc: number): Promise<Tenant> => {
    const tenant = await make(
      'POST',
      '/api/admin/tenants',
      { org_name: name, email: email(), plan: 'enterprise' },
      admin,
    )
    const headers = { 'x-api-key': tenant.api_key as string }
    const wallet = await make('POST', '/api/wallets', { name }, headers)
    if (usdc > 0) await pay(`/api/wallets/${wallet.wallet_id}/topup`, { amount_usdc: usdc }, headers)
    return { tenantId: tenant.tenant_id, apiKey: tenant.api_key, headers, walletId: wallet.wallet_id }
  }

  const caller = await createTenant('Caller', 500)
  const victim = await createTenant(CANARY, 5)
  const victimIds = await createVictimRows(make, victim, surroundings.url)

  return {
    url,
    surroundings,
    admin,
    payer,
    caller,
    victim,
    victimIds,
    call: client.call,
    make,
    pay,
    createTenant,
    paymentFor: (path: string, body: unknown, headers: Record<string, string>) =>
      paymentFor(client.call, payer, path, body, headers),
    /** The body of a call to our own facilitator, for a transfer between any two addresses. */
    async facilitatorBody(from: PrivateKeyAccount, to: string, amountMicro: bigint) {
      const requirements = {
        scheme: 'exact',
        network: NETWORK,
        amount: amountMicro.toString(),
        asset: USDC,
        payTo: to,
        maxTimeoutSeconds: 300,
        extra: { name: 'USD Coin', version: '2' },
      }
      const payload = await signAuthorization(from, requirements)
      const paymentPayload = { x402Version: 2, accepted: requirements, payload }
      return { x402Version: 2, paymentPayload, paymentRequirements: requirements }
    },
    /** A signed checkpoint of the log with the witness's signature under it. */
    cosign(checkpoint: string): string {
      const time = Math.floor(Date.now() / 1000)
      const { text } = parseNote(checkpoint)!
      const publicKey = rawPublicKey(surroundings.witness)
      const signature = sign(null, cosignatureMessage(text, time), surroundings.witness)
      return checkpoint + cosignatureLine({ name: WITNESS, publicKey }, time, new Uint8Array(signature))
    },
  }
}

export const email = () => `${randomBytes(6).toString('hex')}@example.com`
export const unique = (prefix: string) => `${prefix}-${randomBytes(6).toString('hex')}`

// biome-ignore lint/suspicious/noExplicitAny: the answers of many routes
export type Make = (method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<any>

async function expectSuccess(
  call: Call,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
) {
  const response = await call(method, path, body, headers)
  if (response.status >= 400)
    throw new Error(`${method} ${path} answered ${response.status}: ${response.text.slice(0, 400)}`)
  return response.body ?? { text: response.text, headers: response.headers }
}

async function paymentFor(
  call: Call,
  payer: PrivateKeyAccount,
  path: string,
  body: unknown,
  headers: Record<string, string>,
): Promise<Record<string, string>> {
  const challenge = await call('POST', path, body, headers)
  if (challenge.status !== 402)
    throw new Error(`POST ${path} answered ${challenge.status}, not 402: ${challenge.text.slice(0, 400)}`)
  return signPayment(payer, readChallenge(challenge.headers))
}

async function createVictimRows(make: Make, victim: Tenant, receiverUrl: string): Promise<string[]> {
  const { headers, walletId } = victim
  const post = (path: string, body: unknown) => make('POST', path, body, headers)
  const run = await post('/api/run', {
    task: `Say a word about ${CANARY}.`,
    agent_id: 'comedian-v1',
    session_id: `s-${CANARY}`,
    payment: { wallet_id: walletId },
    options: { write_memory: true },
  })
  const webhook = await post('/api/webhooks', { url: `${receiverUrl}/${CANARY}`, events: ['*'] })
  const alert = await post('/api/predictive/alerts', { severity: 'info', type: 'note', message: CANARY })
  await post('/api/control-tower', { action: 'freeze', agent_id: 'frozen-agent', reason: CANARY })
  const memory = await post('/api/memory', { session_id: `s-${CANARY}`, content: CANARY })
  const escrow = await post(`/api/wallets/${walletId}/escrow`, { amount: '1000', memo: CANARY })
  const budget = await post('/api/budgets', { budget_id: unique('budget'), window: 'day', limit_usdc: 50 })
  const mandate = await post('/api/mandates', {
    name: CANARY,
    agent_id: 'comedian-v1',
    constraints: [{ type: 'payment.budget', currency: 'USDC', max: '600000' }],
  })
  const preauth = await post('/api/pre-auth', {
    agent_id: 'comedian-v1',
    merchant: { id: 'shop' },
    amount_usdc: 0.01,
    purpose: CANARY,
  })
  const trade = await post('/api/rh/run', {
    tenant_id: victim.tenantId,
    symbol: 'BTC-PERP',
    instrument_type: 'perp',
    side: 'long',
    quantity: 0.01,
    leverage: 2,
    // Public receipts name the agent.
    agent_id: 'trader',
  })
  const policy = await post('/api/policies', { name: CANARY, constraints: { require_approval_above_usdc: 0.00001 } })
  const refused = await make('GET', '/api/decisions?limit=1', undefined, headers)
  return [
    victim.tenantId,
    walletId,
    run.run_id,
    run.settlement?.settlement_id,
    run.receipt?.receipt_id,
    webhook.id,
    alert.id,
    memory.id ?? memory.memory_id,
    escrow.escrow_id,
    budget.budget_id ?? budget.budget?.budget_id,
    mandate.mandate_id,
    preauth.preauth_id,
    preauth.run_id,
    trade.run_id,
    policy.id,
    refused.decisions?.[0]?.id,
  ].filter((id): id is string => typeof id === 'string')
}
