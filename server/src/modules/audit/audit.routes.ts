import { Readable } from 'node:stream'
import { requireTenant } from '../../platform/auth-context.ts'
import type { App } from '../../platform/http-app.ts'
import { invalid } from '../../platform/problem.ts'
import { AuditListResponse, AuditQuery } from './audit.schema.ts'
import type { Audit } from './audit.ts'

const DEFAULT_LIMIT = 20

export function auditRoutes(app: App, audit: Audit) {
  app.get(
    '/api/audit',
    {
      schema: {
        operationId: 'listAuditEvents',
        tags: ['Observability'],
        summary: 'The hash-chained audit trail of the tenant',
        description:
          'Newest first. `format=ndjson` exports the chain itself, which `countersign verify` checks without the server.',
        querystring: AuditQuery,
        response: { 200: AuditListResponse },
      },
      config: { auth: 'tenant', scope: 'read' },
    },
    async (request, reply) => {
      const { tenantId } = requireTenant(request.caller)
      const { format, after_seq, limit, cursor, ...filter } = request.query
      if (format === 'json') {
        if (after_seq !== undefined) throw invalid('after_seq is for format=ndjson; use cursor to page through a list.')
        return audit.list(tenantId, filter, { limit: limit ?? DEFAULT_LIMIT, cursor })
      }
      if (limit !== undefined || cursor !== undefined || Object.values(filter).some((value) => value !== undefined))
        throw invalid('An export contains the whole chain: with format=ndjson only after_seq is allowed.')
      reply.type('application/x-ndjson').header('content-disposition', 'attachment; filename="audit.ndjson"')
      return reply.send(Readable.from(audit.exportLines(tenantId, after_seq ?? 0)))
    },
  )
}
