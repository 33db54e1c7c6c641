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
    /** A paid route is rate-limited by payer after the payment's signature was checked, so not by address before that. */
    paid?: boolean
    /** No rate limit. */
    unmetered?: boolean
    /** Public evidence that pages of any origin may fetch (CORS); it never depends on a credential. */
    evidence?: boolean
  }
  interface FastifyRequest {
    caller: Caller
    /** The reply to this request, for code that adds a header and only has the request. */
    reply: FastifyReply
    /** From `performance.now()`. */
    startedAt: number
    /** Counts this request against a subject (a key, a payer, an address); throws the 429. */
    limitAs(subject: string, perMinute: number): Promise<void>
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
