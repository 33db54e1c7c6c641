/**
 * For the crash tests: with NODE_ENV=test and COUNTERSIGN_CRASH_AT set to a step, the process kills itself at that step
 * with SIGKILL; with COUNTERSIGN_STOP_AT it stops itself there with SIGSTOP, once. Otherwise it does nothing.
 */
export function createCrashProbe(env: Record<string, string | undefined>): (step: string) => void {
  const isTest = env.NODE_ENV === 'test'
  const crashStep = isTest ? env.COUNTERSIGN_CRASH_AT : undefined
  let stopStep = isTest ? env.COUNTERSIGN_STOP_AT : undefined
  return (step) => {
    if (step === crashStep) process.kill(process.pid, 'SIGKILL')
    if (step !== stopStep) return
    stopStep = undefined
    process.kill(process.pid, 'SIGSTOP')
  }
}
