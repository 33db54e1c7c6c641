import { createHash } from 'node:crypto'
import {
  type Covered,
  type FetchRecord,
  type Kept,
  type PriceSource,
  type RefusedPart,
  type SourceAnswer,
  type SourceReading,
  SourceRefused,
  type SourceRequest,
  subjectOf,
} from './price-source.ts'

export type Fetch = (request: SourceRequest) => Promise<SourceAnswer>

export type CollectDeps = {
  fetch: Fetch
  /** Keeps a raw body by its hash before anything is made of it. */
  keepBody(sha256: string, body: Uint8Array, at: Date): Promise<void>
}

/** What came of one question and the questions that followed from it. */
export type Collected = {
  source: string
  key: string
  root: SourceRequest
  kept: Kept[]
  records: FetchRecord[]
  /** Why nothing of it can be used, and which parts of what can be used cannot. */
  refused?: string
  refusedParts: RefusedPart[]
}

const MOST_QUESTIONS = 500
const MOST_FOLLOWING = 64
const AT_ONCE = 4

/** Asks a source all it should be asked. A question that fails says why; the others go on. */
export async function collect(
  source: PriceSource,
  covered: readonly Covered[],
  now: Date,
  deps: CollectDeps,
): Promise<Collected[]> {
  const waiting = source.ask(covered, now).slice(0, MOST_QUESTIONS)
  const collected: Collected[] = []
  const work = async () => {
    for (let root = waiting.shift(); root; root = waiting.shift()) collected.push(await pursue(source, root, deps))
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  return collected
}

/** Questions are told apart by what they ask and about what, so that a newer answer takes the place of the older. */
const questionKey = (source: string, { method, shownUrl, memo }: SourceRequest) =>
  `${source} ${method} ${shownUrl} ${JSON.stringify(memo)}`

async function pursue(source: PriceSource, root: SourceRequest, deps: CollectDeps): Promise<Collected> {
  const key = questionKey(source.id, root)
  const collected: Collected = { source: source.id, key, root, kept: [], records: [], refusedParts: [] }
  const queue = [root]
  try {
    for (let request = queue.shift(); request; request = queue.shift()) {
      const { reading, answer } = await once(source, request, collected.records, deps)
      for (const observation of reading.observations)
        collected.kept.push({
          source: source.id,
          observation,
          fetchedAt: answer.fetchedAt,
          changedAt: observation.publishedAt,
          records: collected.records,
        })
      collected.refusedParts.push(...(reading.refused ?? []))
      queue.push(...(reading.follow ?? []))
      if (collected.records.length + queue.length > MOST_FOLLOWING)
        throw new SourceRefused(`one question led to more than ${MOST_FOLLOWING} others`)
    }
    return collected
  } catch (error) {
    const refused = error instanceof SourceRefused ? error.message : 'its answer could not be read'
    return { ...collected, kept: [], refused, refusedParts: [] }
  }
}

async function once(source: PriceSource, request: SourceRequest, records: FetchRecord[], deps: CollectDeps) {
  const answer = await deps.fetch(request)
  const sha256 = createHash('sha256').update(answer.body).digest('hex')
  await deps.keepBody(sha256, answer.body, answer.fetchedAt)
  const record: FetchRecord = {
    source: source.id,
    url: request.shownUrl,
    status: answer.status,
    body_sha256: sha256,
    fetched_at: answer.fetchedAt.toISOString(),
    published_at: null,
    block: null,
  }
  records.push(record)
  const reading: SourceReading = source.read(request, answer)
  record.published_at = reading.publishedAt?.toISOString() ?? null
  record.block = reading.block ?? null
  return { reading, answer }
}

/** A newer answer to the same question replaces the older; a price that did not change keeps the time it last did. */
export function mergeKept(known: readonly Kept[], fresh: readonly Kept[]): Kept[] {
  const earlier = new Map(known.map((kept) => [subjectOf(kept.observation), kept]))
  return fresh.map((kept) => {
    const before = earlier.get(subjectOf(kept.observation))
    return before && samePrice(before, kept) ? { ...kept, changedAt: before.changedAt } : kept
  })
}

const samePrice = (a: Kept, b: Kept) =>
  'price' in a.observation && 'price' in b.observation && a.observation.price === b.observation.price
