import { setTimeout as delay } from 'node:timers/promises'
import type { App } from './http-app.ts'
import { Problem } from './problem.ts'

/**
 * The end of a service, in three steps: health says that it is draining while requests are still served, so that a load
 * balancer turns away; then new requests are refused and those under way are finished; then the connections are closed.
 */
export type Drain = ReturnType<typeof createDrain>

/** How long requests are still served after health has begun to say that the service is draining. */
const NOTICE_MS = 500
const POLL_MS = 25
/** How long answers that were written may take to reach their clients. */
const FLUSH_MS = 500

export function createDrain() {
  let state: 'serving' | 'notice' | 'refusing' = 'serving'
  let inFlight = 0

  /** Waits until no request is under way. False when the time is over first. */
  const waitForRequests = async (deadline: number): Promise<boolean> => {
    while (inFlight > 0) {
      if (performance.now() > deadline) return false
      await delay(POLL_MS)
    }
    return true
  }

  return {
    isDraining: () => state !== 'serving',
    /** Counts a request as work under way. Throws when the service takes no more. */
    begin(request: { isUnderWay: boolean }) {
      if (state === 'refusing')
        throw new Problem('error', 'The service is being stopped; nothing was done. Send the same request again.', {
          status: 503,
          code: 'unavailable',
          retryable: true,
          retryAfterSeconds: 2,
        })
      request.isUnderWay = true
      inFlight += 1
    },
    end(request: { isUnderWay: boolean }) {
      if (!request.isUnderWay) return
      request.isUnderWay = false
      inFlight -= 1
    },

    /** Resolves when everything under way is answered, or at the deadline (from `performance.now()`). */
    async run(app: App, deadline: number): Promise<void> {
      state = 'notice'
      // Covers responses that bypass the framework; the others get the header from its hook.
      app.server.prependListener('request', (_request, response) => {
        response.shouldKeepAlive = false
      })
      app.server.closeIdleConnections()
      await delay(Math.min(NOTICE_MS, Math.max(deadline - performance.now(), 0)))
      state = 'refusing'
      await waitForRequests(deadline)
    },

    /** Stops listening. Requests under way are waited for until the deadline; connections without one are closed. */
    async closeConnections(app: App, deadline: number): Promise<void> {
      const closed = app.close()
      const isAnswered = await Promise.race([waitForRequests(deadline), closed.then(() => true)])
      if (isAnswered) await Promise.race([closed, delay(FLUSH_MS, undefined, { ref: false })])
      app.server.closeAllConnections()
      await closed
    },
  }
}
