import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { App } from '../../platform/http-app.ts'
import {
  compressResponse,
  JSON_TYPE,
  type PreparedResponse,
  prepareResponse,
  sendPrepared,
} from '../../platform/prepared-responses.ts'
import { pageHeaders, staticFileRoutes } from '../../platform/static-files.ts'
import { type OpenApi, readApiDescription } from './api-description.ts'
import { guidePath, listImages, readGuides } from './guides.ts'
import { guideDocument, indexPage, notFoundPage, operationDocument } from './pages.ts'
import { searchRows } from './search-index.ts'

export type DocumentationDeps = {
  publicUrl: () => string
  /** The OpenAPI description of the running service. */
  describeApi: () => object
  /** The folder that has `docs/` and the packages. */
  guidesRoot: string
  /** The folder of the pages' scripts and styles. */
  assets: string
}

const HTML_TYPE = 'text/html; charset=utf-8'
const MARKDOWN_TYPE = 'text/markdown; charset=utf-8'

/** `/docs`: a page for each call and guide, made from the OpenAPI description and the guides when it is first read. */
export function documentationRoutes(app: App, { publicUrl, describeApi, guidesRoot, assets }: DocumentationDeps) {
  const config = { unmetered: true }
  const contents = once(() => {
    const api = readApiDescription(describeApi() as OpenApi)
    return { api, guides: readGuides(guidesRoot) }
  })
  const sampleOptions = () => ({
    baseUrl: publicUrl(),
    hasDevelopmentChain: contents().api.operations.some(({ operationId }) => operationId === 'devFaucet'),
  })
  const findGuide = (name: string) => contents().guides.find((guide) => guide.name === name)

  // As many as there are calls and guides: an address that names none of them is never kept.
  const responses = new Map<string, Promise<PreparedResponse>>()
  const prepare = (key: string, text: string) => {
    const response = responses.get(key) ?? compressResponse(prepareResponse(text))
    responses.set(key, response)
    return response
  }
  const send = async (
    request: FastifyRequest,
    reply: FastifyReply,
    key: string,
    type: string,
    make: () => string | undefined,
  ) => {
    reply.headers(pageHeaders)
    const known = responses.get(key)
    const text = known ? undefined : make()
    if (!known && text === undefined) return sendNotFound(reply)
    return sendPrepared(request, reply, await (known ?? prepare(key, text!)), type)
  }
  const sendNotFound = (reply: FastifyReply) =>
    reply.headers(pageHeaders).code(404).header('content-type', HTML_TYPE).send(notFoundPage(contents()))

  app.get('/docs', { config }, async (request, reply) =>
    send(request, reply, 'index', HTML_TYPE, () => indexPage(contents())),
  )
  app.get('/docs/search.json', { config }, async (request, reply) =>
    send(request, reply, 'search', JSON_TYPE, () => {
      const { api, guides } = contents()
      return JSON.stringify(searchRows(api, guides))
    }),
  )
  app.get<{ Params: { operationId: string } }>('/docs/operations/:operationId', { config }, async (request, reply) => {
    const { operationId } = request.params
    return send(request, reply, `operation ${operationId}`, HTML_TYPE, () =>
      operationDocument(operationId, contents(), sampleOptions()),
    )
  })
  app.get<{ Params: { name: string } }>('/docs/guides/:name', { config }, async (request, reply) => {
    const { name } = request.params
    if (name.endsWith('.md'))
      return send(request, reply, `markdown ${name}`, MARKDOWN_TYPE, () => findGuide(name.slice(0, -3))?.markdown)
    return send(request, reply, `guide ${name}`, HTML_TYPE, () => {
      const guide = findGuide(name)
      return guide && guideDocument(guide, contents())
    })
  })
  for (const image of listImages(guidesRoot))
    app.get(guidePath(image), { config }, async (request, reply) =>
      send(request, reply, image, 'image/svg+xml', () => readFileSync(join(guidesRoot, 'docs', image), 'utf8')),
    )
  app.get('/docs/*', { config }, async (_request, reply) => sendNotFound(reply))
  staticFileRoutes(app, { base: '/docs/assets', folder: assets })
}

function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}
