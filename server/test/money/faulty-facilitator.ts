import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type Authorization, type Mined, openOutsideChain } from './outside-chain.ts'

/**
 * A facilitator in a process of its own, with a chain in a file of its own, that does everything wrong which one can.
 * Which fault a payment meets follows from its nonce and the seed, so a run can be repeated.
 * Environment: FILE, SEED, FAULTS (`all`, or `honest`: those that lose answers but tell no lies).
 */
const { FILE = '', SEED = '1', FAULTS = 'all' } = process.env
const SLOWER_THAN_ANYBODY_WAITS_MS = 31_000

const chain = openOutsideChain(FILE)
const fired: Record<string, number> = {}
const attempts = new Map<string, number>()

type Asked = { authorization: Authorization; signature: string; network: string }
type Reply = { status?: number; body?: unknown; text?: string; after?: number } | 'reset'

const settled = ({ hash, from, value }: Mined, { network }: Asked, changed: Record<string, unknown> = {}): Reply => ({
  body: { success: true, transaction: hash, payer: from, network, amount: value, ...changed },
})
const refused = (errorReason: string, { authorization, network }: Asked): Reply => ({
  body: { success: false, errorReason, errorMessage: errorReason, transaction: '', network, payer: authorization.from },
})
const invented = (nonce: string) => `0x${createHash('sha256').update(`invented ${nonce}`).digest('hex')}`
const another = (own: string) => chain.hashes().find((hash) => hash !== own) ?? invented(own)

/** The payment is mined, and then this is said. */
const mined = (asked: Asked, reply: Reply): Reply => {
  chain.transfer(asked.authorization)
  return reply
}
const lateGateway: Reply = { status: 504, text: '<html>Gateway Timeout</html>' }

/** The answer is lost or unreadable; what was done, was done. */
const losses: Record<string, (asked: Asked) => Reply> = {
  'slow success': (asked) => {
    const told = settled(chain.transfer(asked.authorization), asked)
    return { ...(told as object), after: SLOWER_THAN_ANYBODY_WAITS_MS }
  },
  'success, then reset': (asked) => mined(asked, 'reset'),
  'reset before anything': () => 'reset',
  '504 after settling': (asked) => mined(asked, lateGateway),
  '504 before settling': () => lateGateway,
  'garbage after settling': (asked) => mined(asked, { text: '{"success": tru' }),
  'empty answer after settling': (asked) => mined(asked, { text: '' }),
  '500 with JSON after settling': (asked) => mined(asked, { status: 500, body: { error: 'oops' } }),
  'pending, mined later': (asked) => {
    setTimeout(() => chain.transfer(asked.authorization), 1_500)
    return refused('settlement_pending', asked)
  },
  'honest refusal': (asked) => refused('insufficient_funds', asked),
}

/** The answer says what is not so. */
const lies: Record<string, (asked: Asked) => Reply> = {
  'wrong payer': (asked) => settled(chain.transfer(asked.authorization), asked, { payer: `0x${'1'.repeat(40)}` }),
  'wrong amount': (asked) => settled(chain.transfer(asked.authorization), asked, { amount: '1' }),
  'wrong network': (asked) => settled(chain.transfer(asked.authorization), asked, { network: 'eip155:1' }),
  'reused transaction': (asked) => {
    const own = chain.transfer(asked.authorization)
    return settled(own, asked, { transaction: another(own.hash) })
  },
  'says settled, did nothing': (asked) => {
    const { from, value, nonce } = asked.authorization
    return { body: { success: true, transaction: invented(nonce), payer: from, network: asked.network, amount: value } }
  },
  'says refused, settled': (asked) => mined(asked, refused('insufficient_funds', asked)),
}

const verifications: Record<string, () => Reply> = {
  'verify: 500': () => ({ status: 500, text: 'oops' }),
  'verify: reset': () => 'reset',
  'verify: garbage': () => ({ text: '<html>' }),
}

const faults = FAULTS === 'all' ? { ...losses, ...lies } : losses
const names = Object.keys(faults)
const dice = (...what: unknown[]) =>
  createHash('sha256')
    .update([SEED, ...what].join(':'))
    .digest()
    .readUInt32BE()

/** One in 27 for each fault at the first attempt, half of that afterwards: so that everything comes to an end. */
function faultOf({ nonce }: Authorization): string | undefined {
  const attempt = attempts.get(nonce) ?? 0
  attempts.set(nonce, attempt + 1)
  return names[dice('settle', nonce, attempt) % (attempt === 0 ? 27 : 60)]
}

async function settle(asked: Asked): Promise<Reply> {
  const earlier = chain.used(asked.authorization)
  const fault = faultOf(asked.authorization)
  if (fault) {
    fired[fault] = (fired[fault] ?? 0) + 1
    return faults[fault]!(asked)
  }
  if (earlier) return settled(earlier, asked)
  const refusal = await chain.refusal(asked.authorization, asked.signature)
  return refusal ? refused(refusal, asked) : settled(chain.transfer(asked.authorization), asked)
}

async function verify({ authorization, signature }: Asked): Promise<Reply> {
  const attempt = attempts.get(`verify ${authorization.nonce}`) ?? 0
  attempts.set(`verify ${authorization.nonce}`, attempt + 1)
  const [name, fault] = Object.entries(verifications)[dice('verify', authorization.nonce, attempt) % 32] ?? []
  if (name && fault) {
    fired[name] = (fired[name] ?? 0) + 1
    return fault()
  }
  const reason = await chain.refusal(authorization, signature)
  return {
    body: reason
      ? { isValid: false, invalidReason: reason, payer: authorization.from }
      : { isValid: true, payer: authorization.from },
  }
}

const kinds = [
  { x402Version: 2, scheme: 'exact', network: 'eip155:8453' },
  { x402Version: 1, scheme: 'exact', network: 'base' },
]

async function answer(path: string, body: unknown): Promise<Reply> {
  if (path === '/rpc') return { body: chain.rpc(body as Parameters<typeof chain.rpc>[0]) }
  if (path === '/mint') {
    const { to, amount } = body as { to: string; amount: string }
    return { body: chain.mint(to, BigInt(amount)) }
  }
  if (path === '/advance') {
    chain.advance((body as { seconds: number }).seconds)
    return { body: {} }
  }
  if (path === '/fired') return { body: fired }
  // Several addresses, one facilitator: so that a breaker on one leaves another to ask.
  const call = path.replace(/^\/[a-z]\//, '/')
  if (call === '/supported') return { body: { kinds, extensions: [], signers: {} } }
  const { paymentPayload, paymentRequirements } = body as {
    paymentPayload: { payload: { authorization: Authorization; signature: string } }
    paymentRequirements: { network: string }
  }
  const asked = { ...paymentPayload.payload, network: paymentRequirements.network }
  return call === '/verify' ? verify(asked) : settle(asked)
}

async function serve(request: IncomingMessage, response: ServerResponse) {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const text = Buffer.concat(chunks).toString()
  const reply = await answer(request.url ?? '', text === '' ? undefined : JSON.parse(text))
  if (reply === 'reset') return void request.socket.destroy()
  const { status = 200, body, text: raw = JSON.stringify(body), after = 0 } = reply
  if (after > 0) await new Promise((resume) => setTimeout(resume, after))
  if (!response.destroyed) response.writeHead(status, { 'content-type': 'application/json' }).end(raw)
}

const server = createServer((request, response) => {
  serve(request, response).catch((error) => {
    console.error(error)
    request.socket.destroy()
  })
})
server.listen(0, '127.0.0.1', () =>
  console.log(`listens on http://127.0.0.1:${(server.address() as { port: number }).port}`),
)
