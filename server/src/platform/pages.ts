import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import type { App } from './http.ts'

/** Pages from the project's own files, read once at the start: no other path can be asked for, and no script but ours runs. */
const types: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
}

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

/** `base` is where the folder is served; `index` answers the base itself, and for an app every page below it. */
export function pageRoutes(app: App, options: { base: string; folder: string; index: string; everyPath?: boolean }) {
  const { base, folder, index, everyPath } = options
  if (!existsSync(join(folder, index))) return
  const serve = (url: string, file: string) => {
    const body = readFileSync(join(folder, file))
    const type = types[extname(file)] ?? 'application/octet-stream'
    // A built asset carries its hash in its name and may be kept; a page may not.
    const cache = file.startsWith('assets/') ? 'public, max-age=31536000, immutable' : 'no-cache'
    app.get(url, { config: { unmetered: true } }, async (_request, reply) =>
      reply
        .headers({
          'content-type': type,
          'content-security-policy': POLICY,
          'referrer-policy': 'no-referrer',
          'cache-control': cache,
        })
        .send(body),
    )
  }
  serve(base, index)
  if (everyPath) serve(`${base}/*`, index)
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' }))
    if (types[extname(file)] && file !== index) serve(`${base}/${file.replaceAll('\\', '/')}`, file)
}
