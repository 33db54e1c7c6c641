import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { Agent, fetch } from 'undici'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { type Payer, readChallenge, signPayment } from '../../test/harness.ts'

/** What one attacker can do from one address with one onboarded tenant. */
export type Attacker = {
  url: string
  address: string
  tenantHeaders: Record<string, string>
  walletId: string
  lanes: string[]
  send(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<{ status: number; bytes: number }>
  isOver(): boolean
}

export type Attack = { name: string; item: number; run(attacker: Attacker): Promise<void> }

const TEXT_LENGTH = 31_990

const fill = (part: string) => part.repeat(Math.floor(TEXT_LENGTH / part.length))
const hostileTexts = [
  fill('.'),
  fill('['),
  fill('a'),
  fill('e\u0301'),
  fill('\u001b[31m'),
  fill('| a '),
  fill('!?'),
  fill('(a+)+$ '),
  fill('> '),
  fill('1,'),
  fill("'"),
  fill('select ('),
]
const textsWithoutLetters = ['.....', '12345 67890', '??? !!! ???', '+ - * /', '…', '۱۲۳']

/** Keeps `inFlight` requests under way until the attack is over. */
async function flood(attacker: Attacker, inFlight: number, next: (index: number) => Promise<unknown>) {
  let index = 0
  await Promise.all(
    Array.from({ length: inFlight }, async () => {
      while (!attacker.isOver()) await next(index++)
    }),
  )
}

const sendRun = (attacker: Attacker, task: string, lane: string) =>
  attacker.send(
    'POST',
    '/api/run',
    { task, agent_id: lane, payment: { wallet_id: attacker.walletId } },
    attacker.tenantHeaders,
  )

export const attacks: Attack[] = [
  {
    name: 'hostile text in every lane',
    item: 1,
    run: (attacker) =>
      flood(attacker, 16, (index) => {
        const task = hostileTexts[index % hostileTexts.length]!
        const lane = attacker.lanes[Math.floor(index / hostileTexts.length) % attacker.lanes.length]!
        return index % 4 === 3 ? attacker.send('POST', '/api/route', { task }) : sendRun(attacker, task, lane)
      }),
  },
  {
    name: 'policies with large lists',
    item: 2,
    async run(attacker) {
      const names = Array.from({ length: 500 }, (_, index) => `${index}`.padEnd(165, 'x'))
      for (let policy = 0, refusals = 0; policy < 199 && refusals < 3 && !attacker.isOver(); policy++) {
        const { status } = await attacker.send(
          'POST',
          '/api/policies',
          {
            name: `List ${policy}`,
            mode: 'enforce',
            constraints: {
              allowed_merchants: names,
              denied_merchants: names,
              denied_agents: names,
              max_per_run_usdc: 0.001,
            },
          },
          attacker.tenantHeaders,
        )
        if (status >= 400) refusals++
      }
      await flood(attacker, 8, (index) =>
        index % 4 === 3
          ? attacker.send('GET', '/api/decisions?limit=100', undefined, attacker.tenantHeaders)
          : sendRun(attacker, `Joke ${index}.`, 'comedian-v1'),
      )
    },
  },
  {
    name: 'outputs without letters',
    item: 3,
    run: (attacker) =>
      flood(attacker, 8, (index) =>
        sendRun(
          attacker,
          textsWithoutLetters[Math.floor(index / attacker.lanes.length) % textsWithoutLetters.length]!,
          attacker.lanes[index % attacker.lanes.length]!,
        ),
      ),
  },
  {
    name: 'a tenant with 800 counters',
    item: 4,
    async run(attacker) {
      for (let budget = 0, refusals = 0; budget < 800 && refusals < 20 && !attacker.isOver(); budget++) {
        const { status } = await attacker.send(
          'POST',
          '/api/budgets',
          { scope: { type: 'tenant' }, window: 'day', limit_usdc: 1_000, on_breach: 'block' },
          attacker.tenantHeaders,
        )
        if (status >= 400) refusals++
        if (status === 429) await delay(1_000)
      }
      await flood(attacker, 64, (index) => sendRun(attacker, `Joke ${index}.`, 'comedian-v1'))
    },
  },
  {
    name: '200 pre-authorisations at once',
    item: 4,
    run: (attacker) =>
      flood(attacker, 200, (index) =>
        attacker.send(
          'POST',
          '/api/pre-auth',
          { agent_id: `agent-${index % 50}`, merchant: { id: `merchant-${index}` }, amount_usdc: 0.01 },
          attacker.tenantHeaders,
        ),
      ),
  },
  {
    name: '512 runs at once',
    item: 4,
    run: (attacker) => flood(attacker, 512, (index) => sendRun(attacker, `Joke ${index}.`, 'comedian-v1')),
  },
  {
    name: 'endless eth_call',
    item: 5,
    run: (attacker) =>
      flood(attacker, 32, () =>
        attacker.send('POST', '/api/dev/rpc', {
          jsonrpc: '2.0',
          id: 1,
          method: 'eth_call',
          // JUMPDEST, PUSH1 0, JUMP: a loop that only its gas ends.
          params: [{ data: '0x5b600056', gas: '0xffffffffff' }, 'latest'],
        }),
      ),
  },
  {
    name: 'junk payment headers',
    item: 5,
    run: (attacker) =>
      flood(attacker, 64, (index) =>
        attacker.send(
          'POST',
          '/api/run',
          { task: `Joke ${index}.`, agent_id: 'comedian-v1' },
          index % 2 === 0
            ? { 'payment-signature': Buffer.from(`{"x402Version":2,"junk":${index}}`).toString('base64') }
            : { 'x-payment': Buffer.from(`junk ${index}`).toString('base64') },
        ),
      ),
  },
  {
    name: 'keys that do not exist',
    item: 5,
    run: (attacker) =>
      flood(attacker, 64, (index) =>
        attacker.send('GET', '/api/runs', undefined, { 'x-api-key': `csk_live_${index}` }),
      ),
  },
  {
    name: 'onboarding without end',
    item: 5,
    run: (attacker) =>
      flood(attacker, 16, (index) =>
        attacker.send('POST', '/api/onboard', { org_name: `Org ${index}`, email: `${index}@example.com` }),
      ),
  },
  {
    name: 'pipelined /openapi.json, 10 × 500',
    item: 5,
    run: (attacker) => flood(attacker, 10, () => pipeline(attacker, '/openapi.json', 500)),
  },
  {
    name: '/metrics without end',
    item: 5,
    run: (attacker) => flood(attacker, 32, () => attacker.send('GET', '/metrics')),
  },
]

/** Sends `count` requests over one connection before it reads an answer. */
function pipeline({ url, address }: Attacker, path: string, count: number): Promise<void> {
  const { hostname, port } = new URL(url)
  return new Promise((done) => {
    const socket = connect({ host: hostname, port: Number(port), localAddress: address })
    const request = `GET ${path} HTTP/1.1\r\nhost: ${hostname}\r\n\r\n`
    const lastRequest = `GET ${path} HTTP/1.1\r\nhost: ${hostname}\r\nconnection: close\r\n\r\n`
    socket.write(request.repeat(count - 1) + lastRequest)
    socket.resume()
    socket.once('close', () => done())
    socket.once('error', () => done())
    socket.setTimeout(20_000, () => socket.destroy())
  })
}

const WALLET_USDC = 100

/** Onboards a tenant with money in a wallet, from the attacker's own address. */
export async function createAttacker(url: string, address: string, isOver: () => boolean): Promise<Attacker> {
  const dispatcher = new Agent({ localAddress: address, connections: 512, pipelining: 1 })
  const call = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const response = await fetch(`${url}${path}`, {
      method,
      dispatcher,
      headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return { status: response.status, text: await response.text(), headers: response.headers }
  }
  const create = async (path: string, body: unknown, headers?: Record<string, string>) => {
    const { status, text } = await call('POST', path, body, headers)
    if (status >= 300) throw new Error(`${path} returned ${status}: ${text}`)
    return JSON.parse(text)
  }
  const { api_key } = await create('/api/onboard', { org_name: 'Attacker', email: 'attacker@example.com' })
  const tenantHeaders = { 'x-api-key': api_key as string }
  const { wallet_id } = await create('/api/wallets', {}, tenantHeaders)
  const payer = privateKeyToAccount(generatePrivateKey())
  await create('/api/dev/faucet', { address: payer.address, amount_usdc: WALLET_USDC })
  const topUp = { amount_usdc: WALLET_USDC }
  const path = `/api/wallets/${wallet_id}/topup`
  const challenge = await call('POST', path, topUp, tenantHeaders)
  const payment = await signPayment(payer as Payer, readChallenge(challenge.headers as unknown as Headers))
  await create(path, topUp, { ...tenantHeaders, ...payment })
  const listed = await call('GET', '/api/agents')
  if (listed.status !== 200) throw new Error(`/api/agents returned ${listed.status}: ${listed.text}`)
  const { agents } = JSON.parse(listed.text) as { agents: { agent_id: string }[] }
  return {
    url,
    address,
    tenantHeaders,
    walletId: wallet_id,
    lanes: agents.map(({ agent_id }) => agent_id),
    isOver,
    async send(method, path, body, headers) {
      try {
        const { status, text } = await call(method, path, body, headers)
        // A caller that is refused tries again at once, but not in a loop that only costs its own processor.
        if (status === 429 || status === 503) await delay(5)
        return { status, bytes: text.length }
      } catch {
        await delay(5)
        return { status: 0, bytes: 0 }
      }
    },
  }
}
