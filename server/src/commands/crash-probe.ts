/**
 * For the crash tests: with NODE_ENV=test and COUNTERSIGN_CRASH_AT set to a step, the process kills itself there as
 * `kill -9` would. Without both, nothing.
 */
export function crashProbe(env: Record<string, string | undefined>): (step: string) => void {
  const at = env.NODE_ENV === 'test' ? env.COUNTERSIGN_CRASH_AT : undefined
  return (step) => {
    if (step === at) process.kill(process.pid, 'SIGKILL')
  }
}
