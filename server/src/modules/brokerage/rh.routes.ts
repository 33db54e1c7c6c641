import { Type } from 'typebox'
import { requireTenant } from '../../platform/auth-context.ts'
import type { App } from '../../platform/http-app.ts'
import { ErrorResponse } from '../../platform/http-openapi.ts'
import { readIdempotencyKey } from '../../platform/idempotency.ts'
import { sendStoredResponse, withReplayHeader } from '../../platform/stored-response.ts'
import * as schema from './brokerage.schema.ts'
import type { Brokerage } from './brokerage.ts'

const tags = ['Brokerage']
const READ = { auth: 'tenant', scope: 'read' } as const
const CONTROL = { auth: 'tenant', scope: 'control' } as const

/** `/api/rh/…`: runs, approvals, receipts, positions and the kill switch. */
export function rhRoutes(app: App, brokerage: Brokerage) {
  app.post(
    '/api/rh/run',
    {
      schema: {
        operationId: 'rhRun',
        tags,
        summary: 'A governed trade: executed, put before a person, or refused with the reasons',
        body: schema.RhRunRequest,
        response: {
          200: schema.RhRunExecuted,
          202: schema.RhRunAccepted,
          409: ErrorResponse,
          422: schema.RhRunRefused,
        },
      },
      config: { auth: 'tenant', scope: 'run', slow: true },
    },
    async (request, reply) => {
      const { idempotency_key: _, ...body } = request.body
      const idempotencyKey = readIdempotencyKey(request.headers['idempotency-key'], request.body)
      const response = await brokerage.run({
        caller: requireTenant(request.caller),
        body,
        idempotencyKey,
        requestId: request.id,
      })
      return sendStoredResponse(reply, withReplayHeader(response))
    },
  )

  app.post(
    '/api/rh/approve',
    {
      schema: {
        operationId: 'rhApprove',
        tags,
        summary: 'Approve a pending run; it is executed on its stored terms',
        body: schema.RhApproveRequest,
        response: { 200: schema.RhApproved, 404: ErrorResponse, 409: ErrorResponse, 410: ErrorResponse },
      },
      config: { ...CONTROL, slow: true },
    },
    async (request, reply) => {
      const { idempotency_key: _, ...body } = request.body
      const idempotencyKey = readIdempotencyKey(request.headers['idempotency-key'], request.body)
      const response = await brokerage.approve(requireTenant(request.caller), body, idempotencyKey)
      return sendStoredResponse(reply, withReplayHeader(response))
    },
  )

  app.get(
    '/api/rh/receipts',
    {
      schema: {
        operationId: 'listRhReceipts',
        tags,
        summary: 'The newest receipt of each run, newest first; pending runs included',
        querystring: schema.RhReceiptsQuery,
        response: { 200: Type.Array(schema.RhReceipt) },
      },
      config: READ,
    },
    async (request) => brokerage.listReceipts(requireTenant(request.caller), request.query),
  )

  app.get(
    '/api/rh/receipts/:id',
    {
      schema: {
        operationId: 'getRhReceipt',
        tags,
        summary: 'One receipt, also one that a later receipt of its run has replaced',
        params: schema.IdParams,
        response: { 200: schema.RhReceipt },
      },
      config: READ,
    },
    async (request) => brokerage.getReceipt(requireTenant(request.caller), request.params.id),
  )

  app.get(
    '/api/rh/runs',
    {
      schema: {
        operationId: 'listRhRuns',
        tags,
        summary: 'Brokerage runs, newest first; with status=pending_approval those that wait for a person',
        querystring: schema.RhRunsQuery,
        response: { 200: schema.RhRuns },
      },
      config: READ,
    },
    async (request) => brokerage.listRuns(requireTenant(request.caller), request.query),
  )

  app.get(
    '/api/rh/runs/:id',
    {
      schema: {
        operationId: 'getRhRun',
        tags,
        summary: 'A brokerage run with its state, checks, fills and receipts',
        params: schema.IdParams,
        response: { 200: schema.RhRun },
      },
      config: READ,
    },
    async (request) => brokerage.getRun(requireTenant(request.caller), request.params.id),
  )

  app.get(
    '/api/rh/runs/:id/quote',
    {
      schema: {
        operationId: 'getRhRunQuote',
        tags,
        summary: 'The price of a run now, and how far it has moved since it was asked for',
        params: schema.IdParams,
        response: { 200: schema.RhRunQuote },
      },
      config: { ...READ, slow: true },
    },
    async (request) => brokerage.getRunQuote(requireTenant(request.caller), request.params.id),
  )

  app.post(
    '/api/rh/runs/:id/cancel',
    {
      schema: {
        operationId: 'cancelRhRun',
        tags,
        summary: 'Say no to a pending run, or stop one that has not been executed',
        params: schema.IdParams,
        body: schema.RhCancelRequest,
        response: { 200: schema.RhCancelled, 409: ErrorResponse },
      },
      config: { ...CONTROL, slow: true },
    },
    async (request) => {
      const reason = request.body.reason ?? 'Cancelled by the tenant.'
      return brokerage.cancel(requireTenant(request.caller), request.params.id, reason)
    },
  )

  app.get(
    '/api/rh/positions',
    {
      schema: {
        operationId: 'getRhPositions',
        tags,
        summary: 'Cash, buying power and positions at each broker',
        response: { 200: schema.RhPositions },
      },
      config: { ...READ, slow: true },
    },
    async (request) => brokerage.positions(requireTenant(request.caller)),
  )

  app.get(
    '/api/rh/policies',
    {
      schema: {
        operationId: 'listRhPolicies',
        tags,
        summary: 'The default trade policy of each instrument type',
        response: { 200: schema.RhPolicies },
      },
      config: READ,
    },
    async (request) => brokerage.defaultPolicies.list(requireTenant(request.caller)),
  )

  app.get(
    '/api/rh/policies/:instrument_type',
    {
      schema: {
        operationId: 'getRhPolicy',
        tags,
        summary: 'The default trade policy of an instrument type',
        params: schema.RhPolicyParams,
        response: { 200: schema.RhPolicy },
      },
      config: READ,
    },
    async (request) => brokerage.defaultPolicies.get(requireTenant(request.caller), request.params.instrument_type),
  )

  app.put(
    '/api/rh/policies/:instrument_type',
    {
      schema: {
        operationId: 'putRhPolicy',
        tags,
        summary: 'Set the default trade policy of an instrument type',
        params: schema.RhPolicyParams,
        body: schema.RhPolicyUpdate,
        response: { 200: schema.RhPolicy },
      },
      config: { ...CONTROL, slow: true },
    },
    async (request) =>
      brokerage.defaultPolicies.put(
        requireTenant(request.caller),
        request.params.instrument_type,
        request.body.constraints,
      ),
  )

  app.get(
    '/api/rh/kill-switch',
    {
      schema: {
        operationId: 'getRhKillSwitch',
        tags,
        summary: 'Whether trading is switched off',
        response: { 200: schema.KillSwitch },
      },
      config: READ,
    },
    async (request) => brokerage.readKillSwitch(requireTenant(request.caller)),
  )

  app.post(
    '/api/rh/kill-switch',
    {
      schema: {
        operationId: 'setRhKillSwitch',
        tags,
        summary: 'Switch all trading of the tenant off, or on again',
        description:
          'Off: pending runs are cancelled, working orders are stopped and new runs are refused. On: new runs are accepted; cancelled ones stay cancelled.',
        body: schema.KillSwitchRequest,
        response: { 200: schema.KillSwitch },
      },
      config: { ...CONTROL, slow: true },
    },
    async (request) =>
      brokerage.setKillSwitch(requireTenant(request.caller), request.body.engaged, request.body.reason ?? null),
  )
}
