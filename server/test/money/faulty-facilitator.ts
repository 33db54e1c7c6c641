import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type Authorization, type MinedTransfer, openExternalChain } from './external-chain.ts'

/**
 * A facilitator in a separate process, with its own chain in a file, that has every kind of fault. The fault of a payment
 * derives from its nonce and the seed, so a run can be repeated.
 * Environment: FILE, SEED, FAULTS (`all`; `honest`: lost responses only, no false ones; `none`).
 */
const { FILE = '', SEED = '1', FAULTS = 'all' } = process.env
const LONGER_THAN_TIMEOUT_MS = 31_000

const chain = openExternalChain(FILE)
const faultCounts: Record<string, number> = {}
const attempts = new Map<string, number>()

type FacilitatorRequest = { authorization: Authorization; signature: string; network: string }
type Reply = { status?: number; body?: unknown; text?: string; after?: number } | 'reset'

const toSettledReply = (
  { hash, from, value }: MinedTransfer,
  { network }: FacilitatorRequest,
  overrides: Record<string, unknown> = {},
): Reply => ({
  body: { success: true, transaction: hash, payer: from, network, amount: value, ...overrides },
})
const toRefusedReply = (errorReason: string, { authorization, network }: FacilitatorRequest): Reply => ({
  body: { success: false, errorReason, errorMessage: errorReason, transaction: '', network, payer: authorization.from },
})
const inventHash = (nonce: string) => `0x${createHash('sha256').update(`invented ${nonce}`).digest('hex')}`
const findOtherHash = (transfer: string) => chain.hashes().find((hash) => hash !== transfer) ?? inventHash(transfer)

/** Mines the payment and then sends this reply. */
const settleAndReply = (request: FacilitatorRequest, reply: Reply): Reply => {
  chain.transfer(request.authorization)
  return reply
}
const gatewayTimeout: Reply = { status: 504, text: '<html>Gateway Timeout</html>' }

/** The response is lost or unreadable, after the payment was settled or before. */
const lostResponses: Record<string, (request: FacilitatorRequest) => Reply> = {
  'slow success': (request) => {
    const reply = toSettledReply(chain.transfer(request.authorization), request)
    return { ...(reply as object), after: LONGER_THAN_TIMEOUT_MS }
  },
  'success, then reset': (request) => settleAndReply(request, 'reset'),
  'reset before anything': () => 'reset',
  '504 after settling': (request) => settleAndReply(request, gatewayTimeout),
  '504 before settling': () => gatewayTimeout,
  'garbage after settling': (request) => settleAndReply(request, { text: '{"success": tru' }),
  'empty answer after settling': (request) => settleAndReply(request, { text: '' }),
  '500 with JSON after settling': (request) => settleAndReply(request, { status: 500, body: { error: 'oops' } }),
  'pending, mined later': (request) => {
    setTimeout(() => chain.transfer(request.authorization), 1_500)
    return toRefusedReply('settlement_pending', request)
  },
  'honest refusal': (request) => toRefusedReply('insufficient_funds', request),
}

/** The response is false. */
const falseResponses: Record<string, (request: FacilitatorRequest) => Reply> = {
  'wrong payer': (request) =>
    toSettledReply(chain.transfer(request.authorization), request, { payer: `0x${'1'.repeat(40)}` }),
  'wrong amount': (request) => toSettledReply(chain.transfer(request.authorization), request, { amount: '1' }),
  'wrong network': (request) => toSettledReply(chain.transfer(request.authorization), request, { network: 'eip155:1' }),
  'reused transaction': (request) => {
    const transfer = chain.transfer(request.authorization)
    return toSettledReply(transfer, request, { transaction: findOtherHash(transfer.hash) })
  },
  'says settled, did nothing': (request) => {
    const { from, value, nonce } = request.authorization
    return {
      body: { success: true, transaction: inventHash(nonce), payer: from, network: request.network, amount: value },
    }
  },
  'says refused, settled': (request) => settleAndReply(request, toRefusedReply('insufficient_funds', request)),
}

const verifyFaults: Record<string, () => Reply> = {
  'verify: 500': () => ({ status: 500, text: 'oops' }),
  'verify: reset': () => 'reset',
  'verify: garbage': () => ({ text: '<html>' }),
}

const faults = FAULTS === 'none' ? {} : FAULTS === 'all' ? { ...lostResponses, ...falseResponses } : lostResponses
const names = Object.keys(faults)
const hashToNumber = (...parts: unknown[]) =>
  createHash('sha256')
    .update([SEED, ...parts].join(':'))
    .digest()
    .readUInt32BE()

/** Each fault hits one in 27 first attempts and one in 60 later ones, so that every payment is settled eventually. */
function chooseFault({ nonce }: Authorization): string | undefined {
  const attempt = attempts.get(nonce) ?? 0
  attempts.set(nonce, attempt + 1)
  return names[hashToNumber('settle', nonce, attempt) % (attempt === 0 ? 27 : 60)]
}

async function settle(request: FacilitatorRequest): Promise<Reply> {
  const existing = chain.findUse(request.authorization)
  const fault = chooseFault(request.authorization)
  if (fault) {
    faultCounts[fault] = (faultCounts[fault] ?? 0) + 1
    return (faults as typeof lostResponses)[fault]!(request)
  }
  if (existing) return toSettledReply(existing, request)
  const refusal = await chain.findRefusal(request.authorization, request.signature)
  return refusal ? toRefusedReply(refusal, request) : toSettledReply(chain.transfer(request.authorization), request)
}

async function verify({ authorization, signature }: FacilitatorRequest): Promise<Reply> {
  const attempt = attempts.get(`verify ${authorization.nonce}`) ?? 0
  attempts.set(`verify ${authorization.nonce}`, attempt + 1)
  const [name, fault] =
    Object.entries(FAULTS === 'none' ? {} : verifyFaults)[hashToNumber('verify', authorization.nonce, attempt) % 32] ??
    []
  if (name && fault) {
    faultCounts[name] = (faultCounts[name] ?? 0) + 1
    return fault()
  }
  const reason = await chain.findRefusal(authorization, signature)
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

async function handleRequest(path: string, body: unknown): Promise<Reply> {
  if (path === '/rpc') return { body: chain.rpc(body as Parameters<typeof chain.rpc>[0]) }
  if (path === '/mint') {
    const { to, amount } = body as { to: string; amount: string }
    return { body: chain.mint(to, BigInt(amount)) }
  }
  if (path === '/advance') {
    chain.advance((body as { seconds: number }).seconds)
    return { body: {} }
  }
  if (path === '/fired') return { body: faultCounts }
  // One facilitator under several paths, so that another path can be used while the circuit breaker of one is open.
  const call = path.replace(/^\/[a-z]\//, '/')
  if (call === '/supported') return { body: { kinds, extensions: [], signers: {} } }
  const { paymentPayload, paymentRequirements } = body as {
    paymentPayload: { payload: { authorization: Authorization; signature: string } }
    paymentRequirements: { network: string }
  }
  const request = { ...paymentPayload.payload, network: paymentRequirements.network }
  return call === '/verify' ? verify(request) : settle(request)
}

async function serve(request: IncomingMessage, response: ServerResponse) {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const text = Buffer.concat(chunks).toString()
  const reply = await handleRequest(request.url ?? '', text === '' ? undefined : JSON.parse(text))
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
