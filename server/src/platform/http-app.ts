import type {
  FastifyBaseLogger,
  FastifyInstance,
  FastifyReply,
  FastifyTypeProvider,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify'
import type { Static, TSchema } from 'typebox'
import type { Caller, KeyScope } from './auth-context.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** `none` reads no credential; `optional` accepts a key; `tenant` and `admin` require one. */
    auth?: 'none' | 'optional' | 'tenant' | 'admin'
    scope?: KeyScope | readonly KeyScope[]
    /** Takes x402 payments, from pages of any origin. A guest's request with a payment that its payer signed is limited by payer; any other one by address. */
    paid?: boolean
    /** No rate limit. */
    unmetered?: boolean
    /** Not work that a stopping service waits for: health, and streams that end with the service. */
    uncounted?: boolean
    /** Waits for somebody else's service (a chain, a broker), so it takes its turn with runs and not with requests to the database. */
    slow?: boolean
    /** Pages of any origin may call it (CORS), without cookies: what it shows takes a key, a token or a payment. */
    fromAnyOrigin?: boolean
    /** Public evidence that pages of any origin may fetch (CORS); it never depends on a credential. */
    evidence?: boolean
    /** A GET that writes, so that it is not repeated when its connection to the database is lost. */
    writes?: boolean
  }
  interface FastifyRequest {
    caller: Caller
    /** The reply to this request, for code that adds a header and only has the request. */
    reply: FastifyReply
    /** From `performance.now()`. */
    startedAt: number
    /** Whether it counts as work under way. */
    isUnderWay: boolean
    /** Counts this request against a subject (a key, a payer); throws the 429. The window is a minute unless it is given. */
    limitAs(subject: string, limit: number, windowMs?: number): Promise<void>
    /** Counts this request against the caller's address, once unless `again` is set; throws the 429. */
    countAddress(options?: { again: boolean }): Promise<void>
    /** Lets the next request of this caller begin; a run is still counted as under way until it `isAnswered`. */
    endTurn(isAnswered?: boolean): void
  }
}

interface TypeBoxProvider extends FastifyTypeProvider {
  validator: this['schema'] extends TSchema ? Static<this['schema']> : unknown
  serializer: unknown
}

/** The Fastify instance that every `xRoutes(app, …)` receives. */
export type App = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression<RawServerDefault>,
  RawReplyDefaultExpression<RawServerDefault>,
  FastifyBaseLogger,
  TypeBoxProvider
>
