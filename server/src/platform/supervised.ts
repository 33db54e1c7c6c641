import { AggregatorRegistry, type MetricObjectWithValues, type MetricValue } from 'prom-client'
import type { Connection } from './db.ts'
import { READY_MESSAGE } from './process-pool.ts'

/**
 * One of the processes of `serve --workers`: what the supervisor gave it at its start, and the messages between them.
 * Messages are for convenience only; whatever must not be lost is in the database.
 */
export type StartParameters = {
  name: string
  /** The embedded database, which the supervisor runs; absent when DATABASE_URL is set. */
  connection?: Connection
  /** Which of FACILITATOR_PRIVATE_KEY this process sends with: two processes must not share an account's nonces. */
  senderShare: { index: number; count: number }
}

export type ProcessCounts = { workers: number; workers_ready: number; background: 'running' | 'restarting' | 'off' }
/** Requests that a process admitted since its last message, by subject with its limit and window. */
export type AdmittedRequests = [subject: string, limit: number, windowMs: number, count: number][]
export type MetricSeries = MetricObjectWithValues<MetricValue<string>>[]

export type ToSupervisor =
  | { kind: 'admitted'; requests: AdmittedRequests }
  | { kind: 'collect'; id: number }
  | { kind: 'metrics'; id: number; series: MetricSeries }
export type FromSupervisor =
  | { kind: 'counts'; counts: ProcessCounts }
  | { kind: 'admitted'; requests: AdmittedRequests }
  | { kind: 'collected'; id: number; series: MetricSeries[] }
  | { kind: 'read-metrics'; id: number }

export type Supervised = ReturnType<typeof createSupervised>

const START_PARAMETERS = 'COUNTERSIGN_SUPERVISED'
const COLLECT_TIMEOUT_MS = 3_000

export const toEnvironment = (parameters: StartParameters) => ({ [START_PARAMETERS]: JSON.stringify(parameters) })

/** Undefined in a process that no supervisor started. */
export function openSupervised(env: Record<string, string | undefined>): Supervised | undefined {
  const text = env[START_PARAMETERS]
  if (!text || !process.send) return undefined
  return createSupervised(JSON.parse(text) as StartParameters)
}

function createSupervised(parameters: StartParameters) {
  let counts: ProcessCounts | undefined
  let onAdmitted = (_requests: AdmittedRequests) => {}
  let readOwn: () => Promise<MetricSeries> = async () => []
  const collections = new Map<number, (series: MetricSeries[]) => void>()
  let lastId = 0

  // Nobody is left to read a message when the supervisor is gone; this process then ends as well.
  const send = (message: ToSupervisor | { kind: typeof READY_MESSAGE; address: string }) =>
    process.connected && process.send!(message, undefined, undefined, () => {})

  process.on('message', async (message: FromSupervisor) => {
    if (message.kind === 'counts') counts = message.counts
    if (message.kind === 'admitted') onAdmitted(message.requests)
    if (message.kind === 'collected') collections.get(message.id)?.(message.series)
    if (message.kind === 'read-metrics') send({ kind: 'metrics', id: message.id, series: await readOwn() })
  })

  return {
    ...parameters,
    counts: () => counts,
    announceReady: (address: string) => void send({ kind: READY_MESSAGE, address }),
    sendAdmitted: (requests: AdmittedRequests) => void send({ kind: 'admitted', requests }),
    onAdmitted(listener: (requests: AdmittedRequests) => void) {
      onAdmitted = listener
    },
    /** Names the function that reads the metrics of this process. */
    onReadMetrics(read: () => Promise<MetricSeries>) {
      readOwn = read
    },
    /** The metrics of every process, this one included; only this one's when the supervisor does not answer in time. */
    async collectMetrics(): Promise<MetricSeries[]> {
      lastId += 1
      const id = lastId
      const others = new Promise<MetricSeries[]>((resolve) => {
        const timer = setTimeout(resolve, COLLECT_TIMEOUT_MS, [])
        collections.set(id, (series) => {
          clearTimeout(timer)
          resolve(series)
        })
      })
      send({ kind: 'collect', id })
      const series = [await readOwn(), ...(await others)]
      collections.delete(id)
      return series
    },
  }
}

/** Prometheus text of the series of several processes; each series has the label of its process, so none are merged. */
export const formatMetrics = (processes: readonly MetricSeries[]): Promise<string> =>
  AggregatorRegistry.aggregate(
    processes.map((series) => series.map((metric) => ({ ...metric, aggregator: 'sum' }))) as never,
  ).metrics()
