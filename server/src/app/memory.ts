import { memoryRoutes } from '../modules/memory/memory.routes.ts'
import { createMemory } from '../modules/memory/memory.ts'
import type { App } from '../platform/http-app.ts'
import type { AppContext } from './context.ts'
import type { Pruning } from './retention.ts'

export function composeMemory(context: AppContext) {
  const { db, clock, ids, idempotency, outbox } = context
  const memory = createMemory({
    db,
    clock,
    ids,
    idempotency,
    audit: outbox.audit,
    ownsRun: async (tenantId, runId) => {
      const run = db.selectFrom('runs').select('id').where('id', '=', runId).where('tenant_id', '=', tenantId)
      return (await run.executeTakeFirst()) !== undefined
    },
  })

  return {
    memory,
    routes: (app: App) => memoryRoutes(app, memory),
    start: (pruning: Pruning) => pruning.every('memory-tidy', () => memory.sweep(clock.now())),
  }
}
