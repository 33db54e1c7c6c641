import { startChild } from './child.ts'

export type LoadRequest = {
  method: string
  path: string
  headers?: Record<string, string>
  /** `{n}` becomes the number of the request, so that no two are the same. */
  body?: string
  /** By default 200. */
  expectedStatus?: number
}

export type Load = {
  port: number
  inFlight: number
  /** Sent in turn, from the first to the last and then again. */
  requests: LoadRequest[]
  /** How many requests, or for how long. */
  count?: number
  seconds?: number
  firstNumber?: number
  /** A connection sends this many requests in a row as they are listed, for exchanges of several; by default 1. */
  exchangeLength?: number
}

export type LoadResult = {
  seconds: number
  responses: number
  statuses: Record<number, number>
  /** The first response whose status was not expected. */
  failure: string | undefined
  bytes: number
  /** CPU time of the load generator. */
  cpuMs: number
  p50Ms: number
  p99Ms: number
}

export type LoadGenerator = {
  run(load: Load): Promise<LoadResult>
  stop(): void
}

export async function startLoadGenerator(): Promise<LoadGenerator> {
  const child = await startChild('load-generator.ts', { port: 0, inFlight: 0, requests: [] } satisfies Load)
  return { run: (load) => child.call(load), stop: child.stop }
}

/** A load of which every response must have an expected status. */
export async function runLoad(generator: LoadGenerator, load: Load): Promise<LoadResult> {
  const result = await generator.run(load)
  if (result.failure === undefined && result.responses > 0) return result
  throw new Error(`Unexpected responses: ${JSON.stringify(result.statuses)}\n${result.failure}`)
}
