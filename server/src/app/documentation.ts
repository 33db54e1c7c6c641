import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { documentationRoutes } from '../modules/documentation/documentation.routes.ts'
import type { App } from '../platform/http-app.ts'
import { describeApi } from '../platform/http-openapi.ts'

const source = join(import.meta.dirname, '..')

/** `/docs`, of the description of the running service and the guides. */
export function composeDocumentation(app: App, publicUrl: () => string) {
  documentationRoutes(app, {
    publicUrl,
    describeApi: () => describeApi(app),
    guidesRoot: findGuides(),
    assets: join(source, '../public/docs'),
  })
}

/** The npm package has the guides beside its code; in the repository they are in `docs/` and in the packages. */
function findGuides(): string {
  const packaged = join(source, 'guides')
  return existsSync(packaged) ? packaged : join(source, '../..')
}
