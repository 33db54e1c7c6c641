import { extname } from 'node:path'
import { parentPort, Worker } from 'node:worker_threads'

export type ThreadPoolOptions = {
  /** The module that each thread runs; it calls `serveThread`. */
  module: URL
  maxThreads: number
  /** Jobs that may wait; one more is refused. */
  maxWaiting: number
  /** How long a job may run. A thread that takes longer is terminated, and another one takes its place. */
  deadlineMs: number
  /** A thread without work for this long ends. */
  idleMs?: number
  maxMemoryMb?: number
}

export type ThreadResult<Output> =
  | { state: 'done'; output: Output }
  /** The job ran past its deadline, or its caller has given up. */
  | { state: 'timeout' }
  | { state: 'full' }
  /** The thread ended or threw. */
  | { state: 'failed'; message: string }

export type ThreadPool<Input, Output> = {
  run(input: Input, signal?: AbortSignal): Promise<ThreadResult<Output>>
  /** How many threads there are now. */
  size(): number
  close(): Promise<void>
}

type Job<Input, Output> = { input: Input; end(result: ThreadResult<Output>): void }
type Thread<Input, Output> = {
  worker: Worker
  isReady: boolean
  job?: Job<Input, Output> | undefined
  timer?: NodeJS.Timeout
}

/** A thread that has not loaded its module by then counts as failed. */
const START_TIMEOUT_MS = 30_000
const THREAD_START = new URL(`./thread-start${extname(import.meta.filename)}`, import.meta.url)

/**
 * Runs jobs in threads, so that no job can hold the event loop. Threads start when there is work and end without it; a
 * job that outlasts its deadline loses its thread and disturbs nobody else.
 */
export function createThreadPool<Input, Output>(options: ThreadPoolOptions): ThreadPool<Input, Output> {
  const { module, maxThreads, maxWaiting, deadlineMs, idleMs = 30_000, maxMemoryMb = 128 } = options
  const threads = new Set<Thread<Input, Output>>()
  const waiting: Job<Input, Output>[] = []

  const dispatch = () => {
    for (const thread of threads) {
      if (!thread.isReady || thread.job) continue
      const job = waiting.shift()
      if (!job) return
      startJob(thread, job)
    }
    // One after the other: to load a thread is a tenth of a second of work, which others would wait for.
    const isStarting = [...threads].some((thread) => !thread.isReady)
    if (waiting.length > 0 && threads.size < maxThreads && !isStarting) startThread()
  }

  const startJob = (thread: Thread<Input, Output>, job: Job<Input, Output>) => {
    thread.job = job
    thread.worker.ref()
    setTimer(thread, deadlineMs, () => endThread(thread, { state: 'timeout' }))
    thread.worker.postMessage(job.input)
  }

  const startThread = () => {
    // No environment: a thread needs no secret, and code that reads hostile text should have none.
    const worker = new Worker(THREAD_START, {
      workerData: { module: module.href },
      env: {},
      execArgv: ['--disable-warning=ExperimentalWarning'],
      resourceLimits: { maxOldGenerationSizeMb: maxMemoryMb },
    })
    const thread: Thread<Input, Output> = { worker, isReady: false }
    threads.add(thread)
    setTimer(thread, START_TIMEOUT_MS, () => failThread(thread, 'The thread did not start in time.'))
    worker.on('message', (message: ThreadMessage<Output>) => {
      if (message.kind === 'ready') thread.isReady = true
      const job = thread.job
      thread.job = undefined
      if (message.kind === 'output') job?.end({ state: 'done', output: message.output })
      if (message.kind === 'error') job?.end({ state: 'failed', message: message.message })
      setTimer(thread, idleMs, () => endThread(thread))
      thread.timer?.unref()
      worker.unref()
      dispatch()
    })
    worker.on('error', (error) => failThread(thread, error instanceof Error ? error.message : String(error)))
    worker.on('exit', () => failThread(thread, 'The thread ended.'))
  }

  const setTimer = (thread: Thread<Input, Output>, milliseconds: number, action: () => void) => {
    clearTimeout(thread.timer)
    thread.timer = setTimeout(action, milliseconds)
  }

  const endThread = (thread: Thread<Input, Output>, result?: ThreadResult<Output>) => {
    if (!threads.delete(thread)) return undefined
    clearTimeout(thread.timer)
    if (result) thread.job?.end(result)
    const ended = thread.worker.terminate()
    dispatch()
    return ended
  }

  /** A thread that could not start takes one waiting job with it, so that a broken module cannot start threads for ever. */
  const failThread = (thread: Thread<Input, Output>, message: string) => {
    if (!threads.has(thread)) return
    if (!thread.isReady) waiting.shift()?.end({ state: 'failed', message })
    void endThread(thread, { state: 'failed', message })
  }

  const giveUp = (job: Job<Input, Output>) => {
    const place = waiting.indexOf(job)
    if (place >= 0) {
      waiting.splice(place, 1)
      return job.end({ state: 'timeout' })
    }
    const thread = [...threads].find((candidate) => candidate.job === job)
    if (thread) void endThread(thread, { state: 'timeout' })
  }

  return {
    run: (input, signal) =>
      new Promise((resolve) => {
        if (waiting.length >= maxWaiting) return resolve({ state: 'full' })
        const abort = () => giveUp(job)
        const job: Job<Input, Output> = {
          input,
          end(result) {
            signal?.removeEventListener('abort', abort)
            resolve(result)
          },
        }
        signal?.addEventListener('abort', abort, { once: true })
        waiting.push(job)
        dispatch()
      }),
    size: () => threads.size,
    async close() {
      for (const job of waiting.splice(0)) job.end({ state: 'failed', message: 'The service is stopping.' })
      await Promise.all(
        [...threads].map((thread) => endThread(thread, { state: 'failed', message: 'The service is stopping.' })),
      )
    },
  }
}

type ThreadMessage<Output> = { kind: 'ready' } | { kind: 'output'; output: Output } | { kind: 'error'; message: string }

/** Called in the module of a thread: does one job after the other. */
export function serveThread<Input, Output>(work: (input: Input) => Promise<Output>) {
  const port = parentPort!
  const send = (message: ThreadMessage<Output>) => port.postMessage(message)
  port.on('message', (input: Input) => {
    work(input).then(
      (output) => send({ kind: 'output', output }),
      (error) => send({ kind: 'error', message: error instanceof Error ? error.message : String(error) }),
    )
  })
  send({ kind: 'ready' })
}
