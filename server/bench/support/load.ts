import { type ChildProcess, fork } from 'node:child_process'
import { join } from 'node:path'

export type LoadRequest = {
  method: string
  path: string
  headers?: Record<string, string>
  /** `{n}` becomes the number of the request, so that no two are the same. */
  body?: string
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
}

export type LoadResult = {
  seconds: number
  responses: number
  statuses: Record<number, number>
  /** The first response with a status of 300 or more. */
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

export function startLoadGenerator(): LoadGenerator {
  const child: ChildProcess = fork(join(import.meta.dirname, 'load-generator.ts'), {
    serialization: 'advanced',
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  return {
    run: (load) =>
      new Promise((resolve, reject) => {
        const end = (code: number | null) => reject(new Error(`The load generator ended (${code}).`))
        child.once('exit', end)
        child.once('message', (message: { result?: LoadResult; error?: string }) => {
          child.off('exit', end)
          if (message.result) resolve(message.result)
          else reject(new Error(`The load generator failed: ${message.error}`))
        })
        child.send(load)
      }),
    stop: () => child.disconnect(),
  }
}

/** A load of which every response must be a 200. */
export async function runLoad(generator: LoadGenerator, load: Load): Promise<LoadResult> {
  const result = await generator.run(load)
  if ((result.statuses[200] ?? 0) === result.responses && result.responses > 0) return result
  throw new Error(`Not every response was a 200: ${JSON.stringify(result.statuses)}\n${result.failure}`)
}
