import type { ClientOptions } from './client-types.ts'
import { createTransport } from './http.ts'
import { createLists } from './lists.ts'

export type { CallStore } from './call-store.ts'
export { memoryStore } from './call-store.ts'
export type * from './client-types.ts'
export * from './errors.ts'
/** The resources, requests and responses of the API by name: `Receipt`, `Run`, `Policy`, … */
export type * from './generated/api.ts'
export type { ApiRequest, ApiResponse } from './http.ts'
export type { Lists } from './lists.ts'

/**
 * A client of the Countersign API. Paths, parameters, bodies and responses come from `openapi.json`, so a call that does
 * not match it does not compile. Runs in browsers, edge runtimes and Node. For verification see `@countersign/proof`.
 */
export type Client = ReturnType<typeof createClient>

export function createClient(options: ClientOptions) {
  const transport = createTransport(options)
  return { ...transport.methods, ...createLists(transport) }
}
