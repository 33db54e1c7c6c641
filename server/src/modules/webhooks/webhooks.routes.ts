import type { FastifyRequest } from 'fastify'
import { requireTenant } from '../../platform/auth-context.ts'
import type { App } from '../../platform/http-app.ts'
import { ErrorResponse } from '../../platform/http-openapi.ts'
import { readIdempotencyKey } from '../../platform/idempotency.ts'
import { sendStoredResponse, withNoStore } from '../../platform/stored-response.ts'
import * as schema from './webhooks.schema.ts'
import type { Webhooks } from './webhooks.ts'

export function webhooksRoutes(app: App, webhooks: Webhooks) {
  const tags = ['Webhooks']
  const reads = { auth: 'tenant', scope: 'read' } as const
  const writes = { auth: 'tenant', scope: 'control' } as const

  app.get(
    '/api/webhooks',
    {
      schema: {
        operationId: 'listWebhooks',
        tags,
        summary: 'Webhook subscriptions',
        querystring: schema.WebhooksQuery,
        response: { 200: schema.WebhooksResponse },
      },
      config: reads,
    },
    async (request) => webhooks.list(requireTenant(request.caller), request.query),
  )
  app.get(
    '/api/webhook-deliveries',
    {
      schema: {
        operationId: 'listWaitingDeliveries',
        tags,
        summary: 'Deliveries that will still be tried, of all active subscriptions, newest first',
        querystring: schema.WaitingDeliveriesQuery,
        response: { 200: schema.WaitingDeliveriesResponse },
      },
      config: reads,
    },
    async (request) => webhooks.waitingDeliveries(requireTenant(request.caller), request.query),
  )
  app.post(
    '/api/webhooks',
    {
      schema: {
        operationId: 'createWebhook',
        tags,
        summary: 'Subscribe to events',
        description:
          'Deliveries follow Standard Webhooks: headers webhook-id, webhook-timestamp, webhook-signature; body {type, timestamp, data, seq}. At least once, numbered by seq per subscription, retried after about 5 s, 30 s, 2 min, 10 min, 1 h, 4 h, 8 h and 12 h; then, or on 410, the subscription is switched off.',
        body: schema.WebhookCreate,
        response: { 201: schema.WebhookCreated, 409: ErrorResponse },
      },
      config: writes,
    },
    async (request, reply) =>
      sendStoredResponse(
        reply,
        withNoStore(await webhooks.create(requireTenant(request.caller), idempotencyKeyOf(request), request.body)),
      ),
  )
  app.get(
    '/api/webhooks/event-types',
    {
      schema: {
        operationId: 'listWebhookEventTypes',
        tags,
        summary: 'The events that a subscription can name, and when each is sent',
        response: { 200: schema.EventTypesResponse },
      },
      config: reads,
    },
    async () => webhooks.eventTypes(),
  )
  app.get(
    '/api/webhooks/:id',
    {
      schema: {
        operationId: 'getWebhook',
        tags,
        summary: 'One subscription',
        params: schema.WebhookParams,
        response: { 200: schema.WebhookSubscription },
      },
      config: reads,
    },
    async (request) => webhooks.get(requireTenant(request.caller), request.params.id),
  )
  app.patch(
    '/api/webhooks/:id',
    {
      schema: {
        operationId: 'updateWebhook',
        tags,
        summary: 'Switch a subscription on or off, or change its address or events',
        params: schema.WebhookParams,
        body: schema.WebhookUpdate,
        response: { 200: schema.WebhookSubscription },
      },
      config: writes,
    },
    async (request) => webhooks.update(requireTenant(request.caller), request.params.id, request.body),
  )
  app.delete(
    '/api/webhooks/:id',
    {
      schema: {
        operationId: 'deleteWebhook',
        tags,
        summary: 'Delete a subscription',
        params: schema.WebhookParams,
        response: { 200: schema.WebhookDeleted },
      },
      config: writes,
    },
    async (request) => webhooks.remove(requireTenant(request.caller), request.params.id),
  )
  app.post(
    '/api/webhooks/:id/rotate-secret',
    {
      schema: {
        operationId: 'rotateWebhookSecret',
        tags,
        summary: 'Replace the signing secret; both sign during an overlap',
        params: schema.WebhookParams,
        body: schema.SecretRotate,
        response: { 200: schema.SecretRotated, 409: ErrorResponse },
      },
      config: writes,
    },
    async (request, reply) => {
      const { caller, params, body } = request
      return sendStoredResponse(
        reply,
        withNoStore(await webhooks.rotateSecret(requireTenant(caller), idempotencyKeyOf(request), params.id, body)),
      )
    },
  )
  app.post(
    '/api/webhooks/:id/test',
    {
      schema: {
        operationId: 'testWebhook',
        tags,
        summary: 'Send a test event to one subscription',
        params: schema.WebhookParams,
        body: schema.EmptyRequest,
        response: { 202: schema.TestSent, 409: ErrorResponse },
      },
      config: { ...writes, slow: true },
    },
    async (request, reply) =>
      sendStoredResponse(
        reply,
        withNoStore(await webhooks.test(requireTenant(request.caller), idempotencyKeyOf(request), request.params.id)),
      ),
  )
  app.get(
    '/api/webhooks/:id/deliveries',
    {
      schema: {
        operationId: 'listWebhookDeliveries',
        tags,
        summary: 'The deliveries of a subscription and their outcomes, newest first',
        params: schema.WebhookParams,
        querystring: schema.DeliveriesQuery,
        response: { 200: schema.DeliveriesResponse },
      },
      config: reads,
    },
    async (request) => webhooks.deliveries(requireTenant(request.caller), request.params.id, request.query),
  )
  app.get(
    '/api/webhooks/:id/deliveries/:delivery_id',
    {
      schema: {
        operationId: 'getWebhookDelivery',
        tags,
        summary: 'One delivery with its request, headers and signature as sent, and the answer to each attempt',
        params: schema.DeliveryParams,
        response: { 200: schema.DeliveryDetail },
      },
      config: reads,
    },
    async (request) => webhooks.delivery(requireTenant(request.caller), request.params.id, request.params.delivery_id),
  )
  app.post(
    '/api/webhooks/:id/deliveries/:delivery_id/replay',
    {
      schema: {
        operationId: 'replayWebhookDelivery',
        tags,
        summary: 'Send a delivery again, with the same webhook-id',
        params: schema.DeliveryParams,
        body: schema.EmptyRequest,
        response: { 202: schema.Delivery, 409: ErrorResponse },
      },
      config: writes,
    },
    async (request, reply) => {
      const { id, delivery_id } = request.params
      return sendStoredResponse(
        reply,
        withNoStore(await webhooks.replay(requireTenant(request.caller), idempotencyKeyOf(request), id, delivery_id)),
      )
    },
  )
}

const idempotencyKeyOf = (request: FastifyRequest | { headers: FastifyRequest['headers']; body: unknown }) =>
  readIdempotencyKey(request.headers['idempotency-key'], request.body)
