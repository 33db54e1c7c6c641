import { requireTenant } from '../../platform/auth-context.ts'
import type { App } from '../../platform/http-app.ts'
import { ErrorResponse } from '../../platform/http-openapi.ts'
import { readIdempotencyKey } from '../../platform/idempotency.ts'
import { sendStoredResponse, withNoStore } from '../../platform/stored-response.ts'
import * as schema from './memory.schema.ts'
import type { Memory } from './memory.ts'
import { limits } from './run-memory.ts'

const tags = ['Memory']
const readAccess = { auth: 'tenant', scope: 'read' } as const
// A key that may run can write a memory through a run, so it may also write one directly.
const writeAccess = { auth: 'tenant', scope: ['run', 'control'] } as const

export function memoryRoutes(app: App, memory: Memory) {
  app.get(
    '/api/memory',
    {
      schema: {
        operationId: 'listMemories',
        tags,
        summary: "The tenant's memories, newest first",
        description: 'Narrowed to a session, an agent or a run where one is given. Expired memories are not shown.',
        querystring: schema.MemoryQuery,
        response: { 200: schema.MemoriesResponse },
      },
      config: readAccess,
    },
    async (request) => memory.list(requireTenant(request.caller), request.query),
  )
  app.post(
    '/api/memory',
    {
      schema: {
        operationId: 'createMemory',
        tags,
        summary: 'Remember something in a session',
        description: `A session keeps its newest ${limits.perSession} memories and a tenant its newest ${limits.perTenant}; older ones are forgotten. A run with a key and a \`session_id\` reads those of its session unless \`options.include_memory\` is false; they are material for the lane and decide nothing about price, lane, payee or policy.`,
        body: schema.MemoryCreate,
        response: { 201: schema.Memory, 409: ErrorResponse },
      },
      config: writeAccess,
    },
    async (request, reply) => {
      const key = readIdempotencyKey(request.headers['idempotency-key'], request.body)
      return sendStoredResponse(
        reply,
        withNoStore(await memory.create(requireTenant(request.caller), key, request.body)),
      )
    },
  )
  app.post(
    '/api/memory/search',
    {
      schema: {
        operationId: 'searchMemories',
        tags,
        summary: 'The memories that fit a query best',
        description:
          'Full-text search: any word of the query may match, in any of its forms, or a synonym of a committed list. Better and fresher matches come first; a fresh memory counts up to twice an old one.',
        body: schema.MemorySearch,
        response: { 200: schema.MemorySearchResponse },
      },
      config: readAccess,
    },
    async (request) => memory.search(requireTenant(request.caller), request.body),
  )
  app.delete(
    '/api/memory',
    {
      schema: {
        operationId: 'deleteSessionMemory',
        tags,
        summary: 'Forget a whole session',
        querystring: schema.SessionQuery,
        response: { 200: schema.SessionDeleted },
      },
      config: writeAccess,
    },
    async (request) => memory.removeSession(requireTenant(request.caller), request.query.session_id),
  )
  app.get(
    '/api/memory/:id',
    {
      schema: {
        operationId: 'getMemory',
        tags,
        summary: 'One memory',
        params: schema.MemoryParams,
        response: { 200: schema.Memory },
      },
      config: readAccess,
    },
    async (request) => memory.get(requireTenant(request.caller), request.params.id),
  )
  app.delete(
    '/api/memory/:id',
    {
      schema: {
        operationId: 'deleteMemory',
        tags,
        summary: 'Forget one memory',
        params: schema.MemoryParams,
        response: { 200: schema.MemoryDeleted },
      },
      config: writeAccess,
    },
    async (request) => memory.remove(requireTenant(request.caller), request.params.id),
  )
}
