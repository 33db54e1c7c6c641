import { requireTenant } from '../../../platform/auth-context.ts'
import type { App } from '../../../platform/http-app.ts'
import { ErrorResponse } from '../../../platform/http-openapi.ts'
import { readIdempotencyKey } from '../../../platform/idempotency.ts'
import { sendStoredResponse, withNoStore } from '../../../platform/stored-response.ts'
import * as schema from './channels.schema.ts'
import type { ApprovalChannels, ChannelPatch, NewChannel } from './channels.ts'

const tags = ['Control']
const config = { auth: 'tenant', scope: 'control' } as const

export function approvalChannelsRoutes(app: App, channels: ApprovalChannels) {
  app.get(
    '/api/approval-channels',
    {
      schema: {
        operationId: 'listApprovalChannels',
        tags,
        summary: 'The channels through which approvals reach people',
        querystring: schema.ApprovalChannelsQuery,
        response: { 200: schema.ApprovalChannelsResponse },
      },
      config,
    },
    async (request) => channels.list(requireTenant(request.caller), request.query),
  )
  app.post(
    '/api/approval-channels',
    {
      schema: {
        operationId: 'createApprovalChannel',
        tags,
        summary: 'Add a channel: e-mail, a Slack-compatible incoming webhook, or a signed webhook',
        description:
          'Every approval that is requested from now on is sent to each recipient, with a link that shows the action and takes one decision until the approval expires. Delivery is at least once: about 5 s, 30 s, 2 min, 10 min and 30 min after a failed attempt the message is sent again, with another link. A webhook is signed like other webhooks (Standard Webhooks) and has the type `approval.requested`. Your key counts as the same identity as the recipients it adds: they cannot approve what it requested. 503 with `not_configured` when the operator has set no mail server.',
        body: schema.ApprovalChannelCreate,
        response: { 201: schema.ApprovalChannelCreated, 409: ErrorResponse },
      },
      config,
    },
    async (request, reply) => {
      const key = readIdempotencyKey(request.headers['idempotency-key'], request.body)
      const created = await channels.create(requireTenant(request.caller), key, request.body as NewChannel)
      return sendStoredResponse(reply, withNoStore(created))
    },
  )
  app.get(
    '/api/approval-channels/:id',
    {
      schema: {
        operationId: 'getApprovalChannel',
        tags,
        summary: 'One channel with its recipients',
        params: schema.ApprovalChannelParams,
        response: { 200: schema.ApprovalChannel },
      },
      config,
    },
    async (request) => channels.get(requireTenant(request.caller), request.params.id),
  )
  app.patch(
    '/api/approval-channels/:id',
    {
      schema: {
        operationId: 'updateApprovalChannel',
        tags,
        summary: 'Rename a channel, switch it on or off, or change its address or recipients',
        params: schema.ApprovalChannelParams,
        body: schema.ApprovalChannelUpdate,
        response: { 200: schema.ApprovalChannel },
      },
      config,
    },
    async (request) => channels.update(requireTenant(request.caller), request.params.id, request.body as ChannelPatch),
  )
  app.delete(
    '/api/approval-channels/:id',
    {
      schema: {
        operationId: 'deleteApprovalChannel',
        tags,
        summary: 'Delete a channel; links that were sent through it stop working',
        params: schema.ApprovalChannelParams,
        response: { 200: schema.ApprovalChannelDeleted },
      },
      config,
    },
    async (request) => channels.remove(requireTenant(request.caller), request.params.id),
  )
  app.post(
    '/api/approval-channels/:id/test',
    {
      schema: {
        operationId: 'testApprovalChannel',
        tags,
        summary: 'Send a test message, without a link, to every recipient of a channel',
        params: schema.ApprovalChannelParams,
        body: schema.EmptyRequest,
        response: { 202: schema.ApprovalChannelTest, 409: ErrorResponse },
      },
      config,
    },
    async (request, reply) => {
      const key = readIdempotencyKey(request.headers['idempotency-key'], request.body)
      const sent = await channels.test(requireTenant(request.caller), key, request.params.id)
      return sendStoredResponse(reply, withNoStore(sent))
    },
  )
  app.get(
    '/api/approval-channels/:id/messages',
    {
      schema: {
        operationId: 'listApprovalMessages',
        tags,
        summary: 'The messages of a channel and whether they were sent, newest first',
        params: schema.ApprovalChannelParams,
        querystring: schema.ApprovalMessagesQuery,
        response: { 200: schema.ApprovalMessagesResponse },
      },
      config,
    },
    async (request) => channels.messages(requireTenant(request.caller), request.params.id, request.query),
  )
}
