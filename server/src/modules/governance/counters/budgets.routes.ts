import { Type } from 'typebox'
import { requireTenant } from '../../../platform/auth-context.ts'
import type { App } from '../../../platform/http-app.ts'
import { ErrorResponse } from '../../../platform/http-openapi.ts'
import { readIdempotencyKey } from '../../../platform/idempotency.ts'
import { sendStoredResponse, withReplayHeader } from '../../../platform/stored-response.ts'
import { BudgetConfigResponse, BudgetId, BudgetUpdateRequest } from './budgets.schema.ts'
import type { BudgetInput, Budgets } from './budgets.ts'

const tags = ['Control']

export function budgetsRoutes(app: App, budgets: Budgets) {
  app.get(
    '/api/budgets',
    {
      schema: {
        operationId: 'getBudgets',
        tags,
        summary: 'The tenant’s budgets, with what is spent and reserved now',
        response: { 200: BudgetConfigResponse },
      },
      config: { auth: 'tenant', scope: 'read' },
    },
    async (request) => budgets.config(requireTenant(request.caller)),
  )
  app.post(
    '/api/budgets',
    {
      schema: {
        operationId: 'putBudget',
        tags,
        summary: 'Make a budget or change its limits',
        body: BudgetUpdateRequest,
        response: { 200: BudgetConfigResponse, 409: ErrorResponse },
      },
      config: { auth: 'tenant', scope: 'control' },
    },
    async (request, reply) => {
      const key = readIdempotencyKey(request.headers['idempotency-key'], request.body)
      return sendStoredResponse(
        reply,
        withReplayHeader(await budgets.put(requireTenant(request.caller), request.body as BudgetInput, key)),
      )
    },
  )
  app.delete(
    '/api/budgets/:budget_id',
    {
      schema: {
        operationId: 'deleteBudget',
        tags,
        summary: 'Delete a budget',
        params: Type.Object({ budget_id: BudgetId }),
        response: { 200: BudgetConfigResponse },
      },
      config: { auth: 'tenant', scope: 'control' },
    },
    async (request) => budgets.remove(requireTenant(request.caller), request.params.budget_id),
  )
}
