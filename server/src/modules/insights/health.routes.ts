import { Type } from 'typebox'
import type { RotationProgress } from '../../platform/encryption-rotation.ts'
import type { App } from '../../platform/http-app.ts'
import type { EnvCheck } from './env-check.ts'
import { HEALTH_PARTS, type Health } from './health.ts'

const DependencyState = Type.Union(
  (['ok', 'embedded', 'not_configured', 'unreachable'] as const).map((state) => Type.Literal(state)),
)

const healthFields = { redis: DependencyState, supabase: DependencyState }
const HealthResponse = Type.Object(
  {
    status: Type.Union([Type.Literal('ok'), Type.Literal('degraded')]),
    ...healthFields,
    workers: Type.Optional(Type.Integer({ description: 'Processes that share the port, when there are several.' })),
    workers_ready: Type.Optional(Type.Integer({ description: 'How many of them answer requests at the moment.' })),
    background: Type.Optional(
      Type.Union(
        (['running', 'restarting', 'off'] as const).map((state) => Type.Literal(state)),
        { description: 'The process that does the background work.' },
      ),
    ),
    draining: Type.Optional(
      Type.Literal(true, { description: 'The service is being stopped: it finishes its work and takes no more.' }),
    ),
    database_replication: Type.Optional(
      Type.Union(
        (['synchronous', 'asynchronous'] as const).map((state) => Type.Literal(state)),
        {
          description:
            'With DATABASE_URL: whether commits wait for another server, so that a failover loses nothing that was answered. It does not degrade the service.',
        },
      ),
    ),
    problems: Type.Optional(
      Type.Array(
        Type.Object({
          part: Type.Union(HEALTH_PARTS.map((part) => Type.Literal(part))),
          message: Type.String(),
          since: Type.String({ format: 'date-time', description: 'When this process noticed it.' }),
        }),
        {
          description:
            'Which parts do not work, absent when all do. Database, disk and Redis make the answer a 503. The others do not, because what does not need them is served, and because a load balancer would take every process away.',
        },
      ),
    ),
    log_quorum: Type.Optional(
      Type.Object(
        {
          state: Type.Union((['ok', 'waiting', 'missing'] as const).map((state) => Type.Literal(state))),
          entries: Type.Integer({ description: 'Entries of the newest tree' }),
          cosigned_entries: Type.Integer({ description: 'Entries of the largest tree with its quorum' }),
          seconds: Type.Integer({ description: 'For how long the newest tree has been without its quorum' }),
        },
        {
          description:
            'With LOG_POLICY: whether its witnesses have cosigned the newest checkpoint of the log. `missing` after a minute; it does not degrade the service.',
        },
      ),
    ),
  },
  { title: 'HealthResponse', description: 'Whether the service and its dependencies can be reached.' },
)

const EnvCheckResponse = Type.Object(
  {
    status: Type.Union([Type.Literal('ok'), Type.Literal('incomplete')]),
    missing_required: Type.Array(Type.String()),
    services: Type.Record(
      Type.String(),
      Type.Object({
        required: Type.Record(Type.String(), Type.String()),
        optional: Type.Record(Type.String(), Type.String()),
      }),
    ),
    encryption_rotation: Type.Object(
      {
        state: Type.Union((['none', 'running', 'done'] as const).map((state) => Type.Literal(state))),
        remaining: Type.Record(Type.String(), Type.Integer(), {
          description: 'Values under an earlier key, by table and column.',
        }),
      },
      {
        description:
          '`none` without ENCRYPTION_KEY_PREVIOUS; `done` when nothing needs it any more and it can be left out.',
      },
    ),
  },
  { title: 'EnvCheckResponse' },
)

export function healthRoutes(
  app: App,
  deps: { health: Health; envCheck: () => Promise<EnvCheck & { encryption_rotation: RotationProgress }> },
) {
  app.get(
    '/api/health',
    {
      schema: {
        operationId: 'getHealth',
        tags: ['Discovery'],
        summary: 'Health of the service and its dependencies',
        response: {
          200: { ...HealthResponse, description: 'The service and its dependencies can be reached.' },
          503: { ...HealthResponse, description: 'A dependency cannot be reached, or the service is being stopped.' },
        },
      },
      // Probes come often and from one address, and must not be rate-limited.
      config: { unmetered: true, uncounted: true },
    },
    async (_request, reply) => {
      const report = await deps.health.report()
      return reply
        .code(report.status === 'ok' ? 200 : 503)
        .header('cache-control', 'no-store')
        .send(report)
    },
  )
  app.get(
    '/api/env-check',
    {
      schema: {
        operationId: 'getEnvCheck',
        tags: ['Discovery'],
        summary: 'Which settings are set, never what they are',
        response: { 200: EnvCheckResponse },
      },
    },
    async () => deps.envCheck(),
  )
}
