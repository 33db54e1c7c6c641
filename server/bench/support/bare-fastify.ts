/** A bare Fastify POST route: the same body schema and Ajv options as `POST /api/run`, and it sends the same bytes. */
import { Ajv } from 'ajv'
import formats from 'ajv-formats'
import fastify from 'fastify'
import { RunRequest } from '../../src/modules/runs/runs.schema.ts'
import { answerParent } from './child.ts'

answerParent(async ({ body }: { body: string }) => {
  const app = fastify()
  const ajv = new Ajv({ removeAdditional: false, useDefaults: true, strict: false, discriminator: true })
  formats.default(ajv)
  app.setValidatorCompiler(({ schema }) => ajv.compile(schema as object))
  app.post('/api/run', { schema: { body: RunRequest } }, (_request, reply) => {
    reply.header('content-type', 'application/json; charset=utf-8').send(body)
  })
  return { port: Number(new URL(await app.listen({ host: '127.0.0.1', port: 0 })).port) }
})
