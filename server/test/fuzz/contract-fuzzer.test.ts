import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { OpenApiDocument } from '../openapi-responses.ts'
import { createFaultFinder } from './fuzz.ts'
import { draftRequest, mutate } from './mutate.ts'
import { type Description, listOperations } from './operations.ts'
import { createRandom } from './random.ts'
import { recipes } from './recipes.ts'
import type { WireRequest } from './send.ts'
import { CANARY } from './world.ts'

const description = JSON.parse(readFileSync(new URL('../../../openapi.json', import.meta.url), 'utf8'))
const operations = listOperations(description as Description)
const operation = (id: string) => operations.find((candidate) => candidate.id === id)!
const findFaults = createFaultFinder(description as OpenApiDocument)

const respond = (status: number, body: unknown, headers: Record<string, string> = {}) => ({
  status,
  headers: new Headers({ 'content-type': 'application/json', ...headers }),
  text: JSON.stringify(body),
  body,
})
const request: WireRequest = { method: 'GET', path: '/api/runs', headers: [], body: undefined }
const faultsOf = (id: string, status: number, body: unknown, headers = {}, isForeign = false) =>
  findFaults(operation(id), request, respond(status, body, headers), isForeign)
const error = { error: 'error', message: 'No.', request_id: 'req_1' }

test('every operation of openapi.json has a recipe', () => {
  expect(operations.filter(({ id }) => !recipes[id]).map(({ id }) => id)).toEqual([])
  const ids = new Set(operations.map(({ id }) => id))
  expect(Object.keys(recipes).filter((id) => !ids.has(id))).toEqual([])
})

test('a 500, an unexplained 503, an undescribed status, a wrong shape and a missing message are found', () => {
  expect(faultsOf('listRuns', 200, { runs: [], has_more: false, next_after: null })).toEqual([])
  expect(faultsOf('listRuns', 404, error)).toEqual([expect.stringContaining('404 is not described')])
  expect(faultsOf('listRuns', 500, error)).toEqual(['answers 500'])
  expect(faultsOf('listRuns', 502, error, {}, true)).toEqual(['answers 502'])
  expect(faultsOf('listRuns', 503, error)).toEqual(['answers 503'])
  expect(faultsOf('listRuns', 503, error, { 'retry-after': '2' })).toEqual([])
  expect(faultsOf('listRuns', 200, { runs: 'none' })).not.toEqual([])
  expect(faultsOf('listRuns', 400, { message: 'No.' })).toContain('400 without error and message')
  expect(faultsOf('listRuns', 405, {}, {}, true)).toEqual(['405 without error and message'])
  expect(faultsOf('listRuns', 405, error, {}, true)).toEqual([])
})

test("another tenant's text in an answer is found, and the operator may see it", () => {
  const leak = { ...error, message: `Not ${CANARY}.` }
  expect(faultsOf('listRuns', 400, leak)).toEqual(["shows another tenant's text"])
  const headers: WireRequest['headers'] = [['x-admin-key', 'the-admin-key-of-the-fuzzer']]
  expect(findFaults(operation('listRuns'), { ...request, headers }, respond(400, leak), false)).toEqual([])
})

test('a request is made from its seed and index alone', () => {
  const run = operation('run')
  const make = (seed: number, index: number) =>
    mutate(
      draftRequest(run, { body: { task: 'A task', payment: { wallet_id: 'wal_1' } } }, { 'x-api-key': 'key' }),
      createRandom(seed, index),
      { operation: run, victimIds: ['run_1', 'wal_2'], ownIds: ['ten_1'] },
    )
  const makeAll = (seed: number) => Array.from({ length: 300 }, (_, index) => make(seed, index))
  const digest = (requests: ReturnType<typeof makeAll>) =>
    createHash('sha256')
      .update(requests.map(({ wire }) => `${wire.method} ${wire.path} ${wire.headers} ${wire.body}`).join('\n'))
      .digest('hex')
  const requests = makeAll(7)
  expect(digest(makeAll(7))).toBe(digest(requests))
  expect(digest(makeAll(8))).not.toBe(digest(requests))
  const kinds = new Set(requests.flatMap(({ mutations }) => mutations))
  expect(kinds.size).toBeGreaterThan(60)
})
