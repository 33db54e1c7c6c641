import type { Worker } from 'node:cluster'
import type { Log } from './log.ts'

/** A process of the pool by its lasting name; a restart keeps the name. */
export type ProcessSpec = { name: string; fork(): Worker }

export type ProcessPool = ReturnType<typeof createProcessPool>

type Slot = ProcessSpec & {
  worker?: Worker | undefined
  ready: boolean
  readyAt: number
  /** How often in a row the process ended before it was steady. */
  failures: number
  timer?: NodeJS.Timeout
}

export type ProcessPoolDeps = {
  processes: readonly ProcessSpec[]
  log: Pick<Log, 'info' | 'warn' | 'error'>
  /** Called for each message other than `ready`. */
  onMessage(name: string, message: unknown): void
  /** Called when a process has become ready or has ended. */
  onChange(): void
  /** Called once when a process cannot be kept running. */
  onCrashLoop(message: string): void
  /** A process that has been ready for this long counts as steady, and its next end starts a new back-off. */
  steadyMs?: number
  firstBackOffMs?: number
  stopTimeoutMs?: number
}

export const READY_MESSAGE = 'ready'

const MAX_FAILURES = 6
const MAX_BACK_OFF_MS = 5_000

/** Keeps one process of each name running: an ended one is started again, with growing back-off. */
export function createProcessPool(deps: ProcessPoolDeps) {
  const { log, steadyMs = 10_000, firstBackOffMs = 100, stopTimeoutMs = 12_000 } = deps
  const slots: Slot[] = deps.processes.map((spec) => ({ ...spec, ready: false, readyAt: 0, failures: 0 }))
  let stopping = false
  let crashLoop = false

  const launch = (slot: Slot) => {
    const worker = slot.fork()
    slot.worker = worker
    worker.on('error', (error) => log.warn({ err: error, process: slot.name }, 'a message to a process was lost'))
    worker.on('message', (message: { kind?: unknown }) => {
      if (message?.kind !== READY_MESSAGE) return deps.onMessage(slot.name, message)
      slot.ready = true
      slot.readyAt = performance.now()
      deps.onChange()
    })
    worker.once('exit', (code, signal) => {
      if (slot.worker !== worker) return
      const steady = slot.ready && performance.now() - slot.readyAt > steadyMs
      slot.worker = undefined
      slot.ready = false
      slot.failures = steady ? 1 : slot.failures + 1
      deps.onChange()
      if (!stopping) restart(slot, signal ?? `code ${code}`)
    })
  }

  const restart = (slot: Slot, reason: string) => {
    if (slot.failures >= MAX_FAILURES) {
      if (crashLoop) return
      crashLoop = true
      deps.onCrashLoop(
        `The process ${slot.name} ended ${slot.failures} times in a row and was never ready for ${Math.round(steadyMs / 1000)} s, the last time with ${reason}.`,
      )
      return
    }
    const delayMs = Math.min(firstBackOffMs * 2 ** (slot.failures - 1), MAX_BACK_OFF_MS)
    log.warn({ process: slot.name, reason, restart_ms: delayMs }, 'a process ended and is started again')
    slot.timer = setTimeout(() => !stopping && launch(slot), delayMs)
  }

  /** Rejects when the process ends before it is ready. */
  const launchUntilReady = (slot: Slot) => {
    launch(slot)
    const worker = slot.worker!
    return new Promise<unknown>((resolve, reject) => {
      worker.on('message', (message: { kind?: unknown }) => message?.kind === READY_MESSAGE && resolve(message))
      worker.once('exit', (code, signal) =>
        reject(new Error(`The process ${slot.name} ended with ${signal ?? `code ${code}`} before it was ready.`)),
      )
    })
  }

  return {
    /** Starts all processes and resolves with their `ready` messages. */
    start: (): Promise<unknown[]> => Promise.all(slots.map(launchUntilReady)),

    send(name: string, message: object) {
      const slot = slots.find((candidate) => candidate.name === name)
      if (slot?.ready && slot.worker?.isConnected()) slot.worker.send(message as never)
    },

    ready: (): string[] => slots.filter(({ ready }) => ready).map(({ name }) => name),

    /** Ends all processes with SIGTERM; false when one did not end in time and was killed. */
    async stop(): Promise<boolean> {
      stopping = true
      for (const { timer } of slots) clearTimeout(timer)
      const ends = slots.flatMap(({ worker }) => (worker && !worker.isDead() ? [endWorker(worker, stopTimeoutMs)] : []))
      return (await Promise.all(ends)).every((graceful) => graceful)
    },

    kill() {
      stopping = true
      for (const { worker } of slots) worker?.process.kill('SIGKILL')
    },
  }
}

function endWorker(worker: Worker, timeoutMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    let graceful = true
    const timer = setTimeout(() => {
      graceful = false
      worker.process.kill('SIGKILL')
    }, timeoutMs)
    worker.once('exit', () => {
      clearTimeout(timer)
      resolve(graceful)
    })
    worker.process.kill('SIGTERM')
  })
}
