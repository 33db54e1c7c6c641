/**
 * An error that is sent to the caller: the message is for the caller, the cause only for our log.
 * `error` is one of the five stable codes of the API; `code` is more specific.
 */
export type StableError = 'budget_exceeded' | 'policy_blocked' | 'invalid_request' | 'payment_required' | 'error'

export type ProblemCode =
  | 'unauthorized'
  | 'forbidden'
  | 'not_found'
  | 'method_not_allowed'
  | 'conflict'
  | 'payment_used'
  | 'field_required'
  | 'lane_cannot'
  | 'expired'
  | 'too_large'
  | 'unsupported_media_type'
  | 'not_configured'
  | 'rate_limited'
  | 'internal'
  | 'planned'
  | 'unavailable'

export type ProblemOptions = {
  status: number
  code?: ProblemCode
  retryable?: boolean
  retryAfterSeconds?: number
  details?: unknown
  nextAction?: string
  /** The caller's doing, so it is no error in our log whatever its status. */
  expected?: boolean
  /** Additive top-level fields of the error body, for example `approval_id`. */
  extra?: Record<string, unknown>
  cause?: unknown
}

export class Problem extends Error {
  readonly error: StableError
  readonly options: ProblemOptions

  constructor(error: StableError, message: string, options: ProblemOptions) {
    super(message, { cause: options.cause })
    this.name = 'Problem'
    this.error = error
    this.options = options
  }
}

export const invalid = (message: string, details?: unknown) =>
  new Problem('invalid_request', message, { status: 400, details })

export const unauthorized = (
  message = 'A valid X-API-Key is required. POST /api/onboard makes a tenant and its key.',
) => new Problem('error', message, { status: 401, code: 'unauthorized' })

export const forbidden = (message: string) => new Problem('error', message, { status: 403, code: 'forbidden' })

/** The message is the same for an unknown id and for another tenant's id, so that ids cannot be probed. */
export const notFound = (noun: string) => new Problem('error', `No such ${noun}.`, { status: 404, code: 'not_found' })

export const conflict = (message: string, options: Partial<ProblemOptions> = {}) =>
  new Problem('error', message, { status: 409, code: 'conflict', ...options })

export const expired = (message: string) => new Problem('error', message, { status: 410, code: 'expired' })

export const notConfigured = (message: string) => new Problem('error', message, { status: 503, code: 'not_configured' })

export const unavailable = (message: string, retryAfterSeconds = 2, cause?: unknown) =>
  new Problem('error', message, { status: 503, code: 'unavailable', retryable: true, retryAfterSeconds, cause })
