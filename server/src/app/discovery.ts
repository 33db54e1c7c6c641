import type { Catalog } from '../modules/catalog/catalog.ts'
import { discoveryRoutes } from '../modules/discovery/discovery.routes.ts'
import type { DiscoveryDeps } from '../modules/discovery/discovery.ts'
import type { Tool } from '../modules/mcp/tools.ts'
import { readPaymentRequired } from '../modules/payments/x402.ts'
import { paidInputs } from '../modules/runs/input-extension.ts'
import { probeResponse } from '../modules/runs/payment-required.ts'
import type { RunDeps } from '../modules/runs/run-deps.ts'
import type { App } from '../platform/http-app.ts'
import { describeApi } from '../platform/http-openapi.ts'
import type { AppContext } from './context.ts'

/** The discovery documents are made from what the running service answers: its 402s, its price list and its description. */
export function composeDiscovery(
  { config, clock, publicUrl }: AppContext,
  parts: {
    app: App
    catalog: Catalog
    settlement: DiscoveryDeps['settlement']
    runDeps: RunDeps
    /** Known once every route is registered. */
    tools: () => ReadonlyMap<string, Tool>
  },
) {
  const { app, catalog, settlement, runDeps, tools } = parts
  const deps: DiscoveryDeps = {
    publicUrl,
    clock,
    lanes: catalog.all,
    updatedAt: catalog.updatedAt,
    priceRange: catalog.priceRange,
    paymentRequired: (kind) => readPaymentRequired(probeResponse(runDeps, kind, '')),
    settlement,
    describeApi: () => describeApi(app),
    securityContact: config.SECURITY_CONTACT,
    paidTools: () => {
      const { description, inputSchema } = tools().get('run')!
      return [{ name: 'run', kind: 'run', description, inputSchema, example: paidInputs.run.example }]
    },
  }
  discoveryRoutes(app, deps)
}
