import { parseTilePath } from '@countersign/proof'
import type { App } from '../../platform/http-app.ts'
import { describeNonJsonResponse, ErrorResponse } from '../../platform/http-openapi.ts'
import { notFound } from '../../platform/problem.ts'
import {
  CheckpointQuery,
  ConsistencyQuery,
  ConsistencyResponse,
  TileParams,
  WitnessRequest,
  WitnessResponse,
} from './log.schema.ts'
import type { TransparencyLog } from './transparency-log.ts'

const tags = ['Transparency log']
// A tile never changes, so caches may keep it for good.
const FOREVER = 'public, max-age=31536000, immutable'

export function logRoutes(app: App, log: TransparencyLog) {
  app.get(
    '/api/log/checkpoint',
    {
      schema: {
        operationId: 'getLogCheckpoint',
        tags,
        summary: 'The signed head of the log',
        querystring: CheckpointQuery,
        response: {
          200: describeNonJsonResponse('text/plain', 'A C2SP checkpoint: origin, size and root, signed as a note.'),
          404: ErrorResponse,
        },
      },
      config: { evidence: true },
    },
    async (request, reply) => {
      const checkpoint = await log.checkpoint(request.query)
      reply.type('text/plain; charset=utf-8').header('cache-control', 'no-cache')
      return checkpoint
    },
  )
  app.get(
    '/api/log/tile/*',
    {
      schema: {
        operationId: 'getLogTile',
        tags,
        summary: 'A tile of the Merkle tree, or a bundle of entries',
        description: 'C2SP tlog-tiles: `/api/log/tile/<L>/<N>[.p/<W>]` and `/api/log/tile/entries/<N>[.p/<W>]`.',
        params: TileParams,
        response: {
          200: describeNonJsonResponse(
            'application/octet-stream',
            'Hashes of 32 bytes, or entries after their 16-bit length.',
          ),
        },
      },
      // A mirror fetches every tile; with a key it may do so at the rate of the key.
      config: { auth: 'optional', evidence: true },
    },
    async (request, reply) => {
      const tile = parseTilePath(`tile/${request.params['*']}`)
      if (!tile) throw notFound('tile')
      const bytes = await log.tile(tile)
      reply.type('application/octet-stream').header('cache-control', FOREVER)
      return Buffer.from(bytes)
    },
  )
  app.get(
    '/api/log/consistency',
    {
      schema: {
        operationId: 'getLogConsistency',
        tags,
        summary: 'Proof that a newer log only added to an older one',
        querystring: ConsistencyQuery,
        response: { 200: ConsistencyResponse },
      },
      config: { evidence: true },
    },
    async (request) => log.consistency(request.query.from, request.query.to),
  )
  app.post(
    '/api/log/witness',
    {
      schema: {
        operationId: 'cosignLog',
        tags,
        summary: 'Hand in a checkpoint that a known witness cosigned',
        body: WitnessRequest,
        response: { 200: WitnessResponse, 409: ErrorResponse },
      },
    },
    async (request) => log.addCosignatures(request.body.checkpoint),
  )
}
