/** Ctrl-C reaches npm, launcher and server, and the first two pass it on: signals this close together are one. */
const ONE_SIGNAL_MS = 1_000

/** SIGHUP is what a terminal sends when it is closed. */
const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

export type StopSignals = {
  /** Finishes the work under way; the process then exits with 0. */
  stop(): Promise<unknown>
  /** Ends what would outlive this process; it then exits with 1. */
  stopAtOnce(): Promise<unknown>
  /** A supervisor has its processes stop by one SIGTERM, and ends them itself at a second signal. */
  isSupervised?: boolean
}

/** The first signal stops gracefully, a later one at once. Returns whether a signal was received. */
export function onStopSignal({ stop, stopAtOnce, isSupervised = false }: StopSignals): () => boolean {
  let firstAt: number | undefined
  const receive = (signal: (typeof STOP_SIGNALS)[number]) => {
    // Ctrl-C and the end of a terminal reach the supervisor too, which then sends SIGTERM.
    if (isSupervised && signal !== 'SIGTERM') return
    if (firstAt === undefined) {
      firstAt = performance.now()
      void exitAfter(stop(), 0)
    } else if (!isSupervised && performance.now() - firstAt >= ONE_SIGNAL_MS) {
      void exitAfter(stopAtOnce(), 1)
    }
  }
  for (const signal of STOP_SIGNALS) process.on(signal, receive)
  return () => firstAt !== undefined
}

async function exitAfter(end: Promise<unknown>, code: number) {
  try {
    await end
  } catch (error) {
    console.error(error)
    process.exit(1)
  }
  process.exit(code)
}
