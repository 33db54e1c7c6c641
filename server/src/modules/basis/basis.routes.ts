import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Authenticate } from '../../platform/auth-context.ts'
import { limitedAddress } from '../../platform/client-network.ts'
import type { App } from '../../platform/http-app.ts'
import { describeNonJsonResponse, ErrorResponse } from '../../platform/http-openapi.ts'
import { JSON_TYPE, sendPrepared } from '../../platform/prepared-responses.ts'
import { unauthorized } from '../../platform/problem.ts'
import { describeApiContract } from './api-contract.ts'
import {
  AttestationProofResponse,
  AttestationQuery,
  AttestationResponse,
  AttestationsQuery,
  AttestationsResponse,
  BoardResponse,
  ChainQuery,
  ContractResponse,
  EvidenceParams,
  HistoryQuerystring,
  HistoryResponse,
  IssuedAttestationParams,
  IssuedAttestationResponse,
  ProofQuery,
  QuoteResponse,
  StreamQuery,
  SymbolParams,
  SymbolsResponse,
} from './basis.schema.ts'
import type { Basis } from './basis.ts'
import { createQuoteStreams } from './stream.ts'
import { listSymbols } from './symbols.ts'

export type BasisRoutesDeps = {
  basis: Basis
  authenticate: Pick<Authenticate, 'key'>
  /** False during the preview. When true, every route counts requests and sends RateLimit headers. */
  metered: boolean
  limits: { anonymousPerMinute: number; keyPerMinute: number }
}

export function basisRoutes(app: App, { basis, authenticate, metered, limits }: BasisRoutesDeps) {
  const config = { unmetered: true, evidence: true }
  const tags = ['Basis']
  const security: Record<string, string[]>[] = [{}, { bearer: [] }]
  const errorResponses = { 401: ErrorResponse, 403: ErrorResponse, ...(metered && { 429: ErrorResponse }) }

  const authenticateKey = async (request: FastifyRequest): Promise<string | undefined> => {
    const bearer = /^Bearer +(\S{1,256})$/i.exec(request.headers.authorization ?? '')?.[1]
    const caller = bearer === undefined ? undefined : await authenticate.key(bearer)
    if (!caller) throw unauthorized('The key in Authorization: Bearer is not valid.')
    request.caller = caller
    return caller.keyId
  }
  const authorize = async (request: FastifyRequest) => {
    const keyId = request.headers.authorization === undefined ? undefined : await authenticateKey(request)
    if (!metered) return
    if (keyId) await request.limitAs(`key:${keyId}`, limits.keyPerMinute)
    else await request.limitAs(`address:${limitedAddress(request.ip)}`, limits.anonymousPerMinute)
  }
  /** Most requests have no key and are not metered; they skip the asynchronous path. */
  const preHandler = (request: FastifyRequest, _reply: FastifyReply, next: (error?: Error) => void) => {
    if (!metered && request.headers.authorization === undefined) return next()
    authorize(request).then(() => next(), next)
  }

  const streams = createQuoteStreams(basis)
  app.addHook('preClose', async () => streams.endAll())

  let contract: Promise<Buffer> | undefined
  const buildContract = async () =>
    Buffer.from(JSON.stringify(describeApiContract(basis.coverage, { metered, ...limits }, await basis.evmSigners())))
  const symbols = listSymbols(basis.coverage)

  app.get(
    '/api/basis/v1',
    {
      preHandler,
      config,
      schema: {
        operationId: 'getBasisContract',
        tags,
        security,
        summary: 'The contract of the basis API',
        response: { 200: ContractResponse, ...errorResponses },
      },
    },
    async (_request, reply) => {
      contract ??= buildContract()
      return reply.header('content-type', JSON_TYPE).send(await contract)
    },
  )
  app.get(
    '/api/basis/v1/symbols',
    {
      preHandler,
      config,
      schema: {
        operationId: 'listBasisSymbols',
        tags,
        security,
        summary: 'The covered wrappers',
        response: { 200: SymbolsResponse, ...errorResponses },
      },
    },
    async () => symbols,
  )
  app.get(
    '/api/basis/v1/quote/:symbol',
    {
      preHandler,
      config,
      schema: {
        operationId: 'getBasisQuote',
        tags,
        security,
        summary: 'Basis quote of one wrapper',
        params: SymbolParams,
        querystring: ChainQuery,
        response: { 200: QuoteResponse, ...errorResponses },
      },
    },
    (request, reply) => {
      sendPrepared(request, reply, basis.prepareQuote(request.params.symbol, request.query.chain))
    },
  )
  // A metered route counts against a key or an address, which the route itself decides.
  if (!metered)
    for (const { symbol } of basis.coverage.symbols)
      app.prepareResponse(`/api/basis/v1/quote/${symbol}`, {
        route: '/api/basis/v1/quote/:symbol',
        ...config,
        find: () => basis.prepareQuote(symbol),
      })
  app.get(
    '/api/basis/v1/board',
    {
      preHandler,
      config,
      schema: {
        operationId: 'getBasisBoard',
        tags,
        security,
        summary: 'Wrappers ranked by window_score',
        querystring: ChainQuery,
        response: { 200: BoardResponse, 404: ErrorResponse, ...errorResponses },
      },
    },
    async (request) => basis.getBoard(request.query.chain),
  )
  app.get(
    '/api/basis/v1/attestation/:symbol',
    {
      preHandler,
      config,
      schema: {
        operationId: 'getBasisAttestation',
        tags,
        security,
        summary: 'Signed attestation of one wrapper',
        description:
          'It is an entry of the public log before it is handed out: whoever asks for the same reading gets the same attestation, and the log keeps it.',
        params: SymbolParams,
        querystring: AttestationQuery,
        response: { 200: AttestationResponse, ...errorResponses },
      },
    },
    async (request, reply) => {
      const attestation = await basis.getAttestation(request.params.symbol, request.query)
      // Sent as it was signed: a serialiser that dropped a field would break the signature.
      return reply.header('content-type', JSON_TYPE).send(Buffer.from(JSON.stringify(attestation)))
    },
  )
  app.get(
    '/api/basis/v1/attestations',
    {
      preHandler,
      config,
      schema: {
        operationId: 'listBasisAttestations',
        tags,
        security,
        summary: 'Attestations that were handed out, newest first',
        description: 'They are kept as long as receipts. One that nobody asked for is not listed.',
        querystring: AttestationsQuery,
        response: { 200: AttestationsResponse, 404: ErrorResponse, ...errorResponses },
      },
    },
    async (request, reply) => {
      const { limit, cursor, ...filter } = request.query
      const page = await basis.listAttestations(filter, { limit, cursor })
      return reply.header('content-type', JSON_TYPE).send(Buffer.from(JSON.stringify(page)))
    },
  )
  app.get(
    '/api/basis/v1/attestations/:id',
    {
      preHandler,
      config,
      schema: {
        operationId: 'getIssuedBasisAttestation',
        tags,
        security,
        summary: 'One attestation with its place in the public log',
        params: IssuedAttestationParams,
        response: { 200: IssuedAttestationResponse, 404: ErrorResponse, ...errorResponses },
      },
    },
    async (request, reply) => {
      const attestation = await basis.getIssuedAttestation(request.params.id)
      return reply.header('content-type', JSON_TYPE).send(Buffer.from(JSON.stringify(attestation)))
    },
  )
  app.get(
    '/api/basis/v1/attestations/:id/proof',
    {
      preHandler,
      config,
      schema: {
        operationId: 'getBasisAttestationProof',
        tags,
        security,
        summary: 'Proof that an attestation is in the public log',
        params: IssuedAttestationParams,
        querystring: ProofQuery,
        response: { 200: AttestationProofResponse, 404: ErrorResponse, ...errorResponses },
      },
    },
    async (request) => basis.getAttestationProof(request.params.id, request.query),
  )
  app.get(
    '/api/basis/v1/history/:symbol',
    {
      preHandler,
      config,
      schema: {
        operationId: 'getBasisHistory',
        tags,
        security,
        summary: 'Past readings of one wrapper',
        params: SymbolParams,
        querystring: HistoryQuerystring,
        response: { 200: HistoryResponse, ...errorResponses },
      },
    },
    async (request) => basis.getHistory(request.params.symbol, request.query),
  )
  app.get(
    '/api/basis/v1/evidence/:sha256',
    {
      preHandler,
      config,
      schema: {
        operationId: 'getBasisEvidence',
        tags,
        security,
        summary: 'The raw body of a source, by its hash',
        params: EvidenceParams,
        response: {
          200: describeNonJsonResponse('application/octet-stream', 'The body as the source sent it.'),
          ...errorResponses,
        },
      },
    },
    async (request, reply) =>
      reply
        .header('content-type', 'application/octet-stream')
        .header('cache-control', 'public, max-age=31536000, immutable')
        .send(await basis.getEvidence(request.params.sha256)),
  )
  app.get(
    '/api/basis/v1/stream',
    {
      // A HEAD response has no body, so its stream would stay open without sending anything.
      exposeHeadRoute: false,
      preHandler,
      config: { ...config, uncounted: true },
      schema: {
        operationId: 'streamBasis',
        tags,
        security,
        summary: 'New readings as server-sent events',
        querystring: StreamQuery,
        response: {
          200: describeNonJsonResponse(
            'text/event-stream',
            'Server-sent events: the present reading of each wrapper, then each new one.',
          ),
          404: ErrorResponse,
          429: ErrorResponse,
          ...errorResponses,
        },
      },
    },
    (request, reply) => streams.open(request, reply),
  )
}
