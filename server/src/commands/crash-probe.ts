/**
 * For the crash tests: with NODE_ENV=test and COUNTERSIGN_CRASH_AT set to a step, the process kills itself at that step
 * with SIGKILL. Otherwise it does nothing.
 */
export function createCrashProbe(env: Record<string, string | undefined>): (step: string) => void {
  const crashStep = env.NODE_ENV === 'test' ? env.COUNTERSIGN_CRASH_AT : undefined
  return (step) => {
    if (step === crashStep) process.kill(process.pid, 'SIGKILL')
  }
}
