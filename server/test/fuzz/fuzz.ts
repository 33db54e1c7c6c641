import { createResponseChecker, type OpenApiDocument } from '../openapi-responses.ts'
import { draftRequest, mutate, toWire } from './mutate.ts'
import { type Description, listOperations, type Operation, successStatuses } from './operations.ts'
import { createRandom, type Random } from './random.ts'
import { type Draft, recipes } from './recipes.ts'
import { createSender, type Sender, type WireRequest, type WireResponse } from './send.ts'
import { ADMIN_KEY, CANARY, createWorld, type Surroundings, type World } from './world.ts'

export type FuzzOptions = {
  url: string
  surroundings: Surroundings
  seed: number
  requests: number
  /** Sends only the request with this index, after the world is made. */
  only?: number | undefined
  concurrency?: number
  print?: (line: string) => void
}

export type Finding = { index: number; operation: string; fault: string; request: string; response: string }

export type FuzzResult = {
  findings: Finding[]
  sent: number
  reached: string[]
  statuses: Record<string, number>
}

/** A new world so often: mutated requests freeze agents, spend wallets and revoke keys. */
const WORLD_REQUESTS = 4_000
/** A draft is used so often before it is made again, because the rows it names end. */
const DRAFT_USES = 12
/** Longer than any answer takes on a busy machine; a hang has no end. */
const DEADLINE_MS = 60_000
const MAX_FINDINGS = 40
const PROGRESS_REQUESTS = 5_000

const LEAK = "shows another tenant's text"

/** Refusals that a request gets before it belongs to an operation: method, path, headers and framing. */
const protocolStatuses = [400, 401, 403, 404, 405, 406, 411, 413, 414, 415, 417, 429, 431]

/**
 * Reaches a success of every operation in openapi.json, and then sends mutated requests. Each is made from the seed
 * and its index alone, so that one can be sent again.
 */
export async function fuzz(options: FuzzOptions): Promise<FuzzResult> {
  const { url, surroundings, seed, requests, only, concurrency = 8, print = () => {} } = options
  const { send, close } = createSender(url, DEADLINE_MS)
  const description = (await send({ method: 'GET', path: '/openapi.json', headers: [], body: undefined })).body
  const operations = listOperations(description as Description)
  // Bodies have the most to mutate.
  const choices = operations.flatMap((operation) => (operation.body ? [operation, operation, operation] : [operation]))
  const missing = operations.filter(({ id }) => !recipes[id]).map(({ id }) => id)
  if (missing.length > 0) throw new Error(`No recipe for ${missing.join(', ')}.`)
  const checkResponse = createFaultFinder(description as OpenApiDocument)
  const findings: Finding[] = []
  const statuses: Record<string, number> = {}
  const report = (finding: Finding) => {
    const isNew = !findings.some(({ operation, fault }) => operation === finding.operation && fault === finding.fault)
    if (!isNew) return
    findings.push(finding)
    print(`FINDING seed ${seed} index ${finding.index} ${finding.operation}: ${finding.fault}`)
    print(`  ${finding.request}\n  ${finding.response}`)
  }

  let world = await createWorld(url, surroundings)
  const reached = await reachOperations(operations, world, send, checkResponse, report)
  print(`seed ${seed}: ${reached.length} of ${operations.length} operations reached`)

  let drafts = createDraftCache(() => world)
  let sent = 0
  const sendMutated = async (index: number) => {
    const random = createRandom(seed, index)
    const operation = random.pick(choices)
    const draft = await drafts(operation, random)
    const credential = credentialFor(operation, world, random)
    const { wire, mutations, isForeign } = mutate(draftRequest(operation, draft, credential), random, {
      operation,
      victimIds: world.victimIds,
      ownIds: [world.caller.tenantId, world.caller.walletId, ...Object.values(draft.params ?? {})],
    })
    const request = `${wire.method} ${wire.path.slice(0, 300)} [${mutations.join('; ')}] ${wire.body?.toString('utf8').slice(0, 700) ?? ''}`
    const note = (fault: string, response = '') =>
      report({ index, operation: operation.id, fault, request, response: response.slice(0, 700) })
    try {
      const response = await send(wire, operation)
      sent += 1
      statuses[response.status] = (statuses[response.status] ?? 0) + 1
      for (const fault of checkResponse(operation, wire, response, isForeign))
        note(fault, fault === LEAK ? excerptAround(response.text, CANARY) : response.text)
      if (only !== undefined) print(`${request}\n${response.status} ${response.text.slice(0, 4_000)}`)
    } catch (error) {
      const { code, message } = error as { code?: string; message: string }
      // Node's client refuses some requests itself; they were not sent.
      if (
        code === 'ERR_UNESCAPED_CHARACTERS' ||
        code === 'ERR_INVALID_CHAR' ||
        code === 'ERR_HTTP_INVALID_HEADER_VALUE'
      )
        return
      note(code ?? message, message)
    }
  }

  const first = only ?? 0
  const end = only === undefined ? requests : only + 1
  for (let from = first; from < end && findings.length < MAX_FINDINGS; from += WORLD_REQUESTS) {
    if (from > first) {
      world = await createWorld(url, surroundings)
      drafts = createDraftCache(() => world)
    }
    let next = from
    const until = Math.min(from + WORLD_REQUESTS, end)
    const work = async () => {
      while (next < until && findings.length < MAX_FINDINGS) {
        const index = next++
        await sendMutated(index).catch((error) =>
          report({ index, operation: 'the world', fault: String(error).slice(0, 300), request: '', response: '' }),
        )
        if (index > 0 && index % PROGRESS_REQUESTS === 0) print(`${index} requests, ${findings.length} findings`)
      }
    }
    await Promise.all(Array.from({ length: concurrency }, work))
  }
  close()
  return { findings, sent, reached, statuses }
}

const excerptAround = (text: string, word: string) => {
  const at = text.indexOf(word)
  return text.slice(Math.max(0, at - 500), at + 200)
}

async function reachOperations(
  operations: Operation[],
  world: World,
  send: Sender,
  checkResponse: FaultFinder,
  report: (finding: Finding) => void,
): Promise<string[]> {
  const reached: string[] = []
  for (const [position, operation] of operations.entries()) {
    const index = position - operations.length
    const fail = (fault: string, request = '', response = '') =>
      report({ index, operation: operation.id, fault, request, response: response.slice(0, 700) })
    try {
      const draft = await recipes[operation.id]!(world, createRandom(0, position))
      const wire = toWire(draftRequest(operation, draft, credentialFor(operation, world)))
      const response = await send(wire, operation)
      const request = `${wire.method} ${wire.path} ${wire.body?.toString() ?? ''}`.slice(0, 700)
      for (const fault of checkResponse(operation, wire, response, false)) fail(fault, request, response.text)
      if (successStatuses(operation).includes(response.status)) reached.push(operation.id)
      else fail(`not reached: ${response.status}`, request, response.text)
    } catch (error) {
      fail(`not reached: ${(error as Error).message}`)
    }
  }
  return reached
}

function createDraftCache(world: () => World) {
  const cache = new Map<string, { draft: Promise<Draft>; uses: number }>()
  return (operation: Operation, random: Random): Promise<Draft> => {
    const entry = cache.get(operation.id)
    if (entry && entry.uses < DRAFT_USES) {
      entry.uses += 1
      return entry.draft
    }
    // A mutated request may have frozen, spent or revoked what a recipe needs; the previous draft still serves.
    const draft = Promise.resolve(recipes[operation.id]!(world(), random)).catch((error) => {
      if (entry) return entry.draft
      if (/answered 5\d\d/.test((error as Error).message)) throw error
      return {}
    })
    cache.set(operation.id, { draft, uses: 1 })
    return draft
  }
}

function credentialFor(operation: Operation, world: World, random?: Random): Record<string, string> {
  if (operation.credential === 'admin') return world.admin
  if (operation.credential === 'tenant') return world.caller.headers
  if (operation.credential === 'optional' && !operation.path.startsWith('/api/basis'))
    return random?.chance(0.2) ? {} : world.caller.headers
  return {}
}

export type FaultFinder = (
  operation: Operation,
  request: WireRequest,
  response: WireResponse,
  isForeign: boolean,
) => string[]

/** What is wrong with an answer; empty when nothing is. */
export function createFaultFinder(description: OpenApiDocument): FaultFinder {
  const { findDeviations } = createResponseChecker(description)
  return (operation, request, response, isForeign) => {
    const { status, text } = response
    const faults: string[] = []
    const isAdmin = request.headers.some(([name, value]) => name === 'x-admin-key' && value === ADMIN_KEY)
    if (!isAdmin && text.includes(CANARY)) faults.push(LEAK)
    if (status >= 500 && !isDescribedUnavailable(operation, response)) return [...faults, `answers ${status}`]
    if (request.method === 'HEAD') return faults
    if (isForeign && (protocolStatuses.includes(status) || status < 400 || status === 501)) {
      if (status >= 400 && !hasErrorBody(response)) faults.push(`${status} without error and message`)
      return faults
    }
    if (status >= 400 && status !== 402 && !hasErrorBody(response)) faults.push(`${status} without error and message`)
    return [...faults, ...findDeviations(operation.method, operation.path, response).map(withoutValues)]
  }
}

/** 501 is a planned operation; 503 must be described, and must say that it is not configured or when to try again. */
function isDescribedUnavailable(operation: Operation, { status, headers, body }: WireResponse): boolean {
  if (status !== 501 && status !== 503) return false
  const isExplained = headers.has('retry-after') || (body as { code?: string })?.code === 'not_configured'
  return operation.statuses.includes(status) && (status === 501 || isExplained)
}

const hasErrorBody = ({ body }: WireResponse): boolean => {
  const { error, message } = (body ?? {}) as { error?: unknown; message?: unknown }
  return typeof error === 'string' && typeof message === 'string'
}

/** The same fault of two requests has the same text, so that it is reported once. */
const withoutValues = (fault: string) => fault.replace(/: \{.*/s, '').slice(0, 300)
