import { memoryRoutes } from '../modules/memory/memory.routes.ts'
import { createMemory } from '../modules/memory/memory.ts'
import type { App } from '../platform/http.ts'
import type { Foundation } from './foundation.ts'

const TIDY_MS = 60_000

export function composeMemory(f: Foundation) {
  const { db, clock, ids, idempotency, outbox } = f
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
    start: () => f.jobs.every('memory-tidy', TIDY_MS, () => memory.sweep(clock.now())),
  }
}
