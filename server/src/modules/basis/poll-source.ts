import { createHash } from 'node:crypto'
import {
  type CoveredWrapper,
  type FetchRecord,
  observationKey,
  type ParsedResponse,
  type PriceSource,
  PriceSourceError,
  type RejectedEntry,
  type SourcedObservation,
  type SourceRequest,
  type SourceResponse,
} from './price-source.ts'

export type Fetch = (request: SourceRequest) => Promise<SourceResponse>

export type PollDeps = {
  fetch: Fetch
  /** Stores a raw body by its hash before it is parsed. */
  storeBody(sha256: string, body: Uint8Array, at: Date): Promise<void>
}

/** The result of one request and its follow-ups. */
export type PollResult = {
  source: string
  key: string
  request: SourceRequest
  observations: SourcedObservation[]
  records: FetchRecord[]
  /** Why none of the result can be used. */
  rejection?: string
  /** The entries that cannot be used when the others can. */
  rejectedEntries: RejectedEntry[]
}

const MAX_REQUESTS = 500
const MAX_FOLLOW_UPS = 64
const CONCURRENCY = 4

/** Sends all requests of a source. A request that fails carries its reason; the others continue. */
export async function pollSource(
  source: PriceSource,
  wrappers: readonly CoveredWrapper[],
  now: Date,
  deps: PollDeps,
): Promise<PollResult[]> {
  const queue = source.buildRequests(wrappers, now).slice(0, MAX_REQUESTS)
  const results: PollResult[] = []
  const worker = async () => {
    for (let request = queue.shift(); request; request = queue.shift())
      results.push(await pollRequest(source, request, deps))
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, worker))
  return results
}

/** Identifies a request by target and context, so that a newer result replaces the older one. */
const requestKey = (source: string, { method, publicUrl, context }: SourceRequest) =>
  `${source} ${method} ${publicUrl} ${JSON.stringify(context)}`

async function pollRequest(source: PriceSource, rootRequest: SourceRequest, deps: PollDeps): Promise<PollResult> {
  const key = requestKey(source.id, rootRequest)
  const result: PollResult = {
    source: source.id,
    key,
    request: rootRequest,
    observations: [],
    records: [],
    rejectedEntries: [],
  }
  const queue = [rootRequest]
  try {
    for (let request = queue.shift(); request; request = queue.shift()) {
      const { parsed: parsedResponse, response } = await fetchAndParse(source, request, result.records, deps)
      for (const observation of parsedResponse.observations)
        result.observations.push({
          source: source.id,
          observation,
          fetchedAt: response.fetchedAt,
          changedAt: observation.publishedAt,
          records: result.records,
        })
      result.rejectedEntries.push(...(parsedResponse.rejected ?? []))
      queue.push(...(parsedResponse.followUps ?? []))
      if (result.records.length + queue.length > MAX_FOLLOW_UPS)
        throw new PriceSourceError(`one request led to more than ${MAX_FOLLOW_UPS} others`)
    }
    return result
  } catch (error) {
    const rejection = error instanceof PriceSourceError ? error.message : 'its answer could not be read'
    return { ...result, observations: [], rejection, rejectedEntries: [] }
  }
}

async function fetchAndParse(source: PriceSource, request: SourceRequest, records: FetchRecord[], deps: PollDeps) {
  const response = await deps.fetch(request)
  const sha256 = createHash('sha256').update(response.body).digest('hex')
  await deps.storeBody(sha256, response.body, response.fetchedAt)
  const record: FetchRecord = {
    source: source.id,
    url: request.publicUrl,
    status: response.status,
    body_sha256: sha256,
    fetched_at: response.fetchedAt.toISOString(),
    published_at: null,
    block: null,
  }
  records.push(record)
  const parsed: ParsedResponse = source.parseResponse(request, response)
  record.published_at = parsed.publishedAt?.toISOString() ?? null
  record.block = parsed.block ?? null
  return { parsed, response }
}

/** Newer observations replace the older ones. A price that has not changed keeps the time of its last change. */
export function mergeObservations(
  previous: readonly SourcedObservation[],
  latest: readonly SourcedObservation[],
): SourcedObservation[] {
  const previousByKey = new Map(previous.map((entry) => [observationKey(entry.observation), entry]))
  return latest.map((entry) => {
    const older = previousByKey.get(observationKey(entry.observation))
    return older && hasSamePrice(older, entry) ? { ...entry, changedAt: older.changedAt } : entry
  })
}

const hasSamePrice = (a: SourcedObservation, b: SourcedObservation) =>
  'price' in a.observation && 'price' in b.observation && a.observation.price === b.observation.price
