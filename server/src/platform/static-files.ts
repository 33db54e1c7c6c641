import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import type { App } from './http-app.ts'
import { compressResponse, type PreparedResponse, prepareResponse, sendPrepared } from './prepared-responses.ts'

const contentTypes: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
}

const isCompressible = (file: string) => extname(file) !== '.woff2'

const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

/** Of a page that a browser asks for again each time, and that runs nothing of another origin. */
export const pageHeaders = {
  'content-security-policy': CONTENT_SECURITY_POLICY,
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-cache',
}

/**
 * Serves the files of a folder, read once at the start, so that no other path can be requested. `index` is served at
 * `base` itself, and with `everyPath` at every path below it, for an app with client-side routing.
 */
export function staticFileRoutes(
  app: App,
  options: { base: string; folder: string; index?: string; everyPath?: boolean },
) {
  const { base, folder, index, everyPath } = options
  if (!existsSync(join(folder, index ?? ''))) return
  const serve = (url: string, file: string) => {
    const original = prepareResponse(readFileSync(join(folder, file)))
    // Compressed with the first request, so that the start does not wait for files that nobody asks for.
    let response: Promise<PreparedResponse> | undefined
    const prepare = () => {
      response ??= isCompressible(file) ? compressResponse(original) : Promise.resolve(original)
      return response
    }
    const type = contentTypes[extname(file)] ?? 'application/octet-stream'
    // The name of a built asset contains its hash, so it may be cached; a page may not.
    const cache = file.startsWith('assets/') && { 'cache-control': 'public, max-age=31536000, immutable' }
    app.get(url, { config: { unmetered: true } }, async (request, reply) => {
      reply.headers({ ...pageHeaders, ...cache })
      return sendPrepared(request, reply, await prepare(), type)
    })
  }
  if (index) serve(base, index)
  if (index && everyPath) serve(`${base}/*`, index)
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' }))
    if (contentTypes[extname(file)] && file !== index) serve(`${base}/${file.replaceAll('\\', '/')}`, file)
}
