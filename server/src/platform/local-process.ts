import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'

/** A process as others on the same machine find it. `machine` is null where the operating system does not say. */
export type LocalProcess = { host: string; pid: number; machine: string | null; pid_started: string | null }

export function describeThisProcess(): LocalProcess {
  const host = hostname().slice(0, 255)
  try {
    // Process ids are comparable only within one boot of one kernel and one namespace (container).
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    const machine = `${host}/${boot}/${readlinkSync('/proc/self/ns/pid')}`
    return { host, pid: process.pid, machine, pid_started: readStat(process.pid).startedAt }
  } catch {
    return { host, pid: process.pid, machine: null, pid_started: null }
  }
}

/** True only when it is certain: the process ran on this machine and the operating system says that it has ended. */
export function hasEnded(other: LocalProcess, self: LocalProcess): boolean {
  if (!self.machine || other.machine !== self.machine) return false
  try {
    process.kill(other.pid, 0)
  } catch (error) {
    // ESRCH: there is no such process. EPERM: there is one, of another user.
    return (error as { code?: string }).code === 'ESRCH'
  }
  try {
    const { state, startedAt } = readStat(other.pid)
    // A killed process stays as a zombie until its parent asks for its status.
    return startedAt !== other.pid_started || state === 'Z' || state === 'X'
  } catch {
    return false
  }
}

function readStat(pid: number): { state: string; startedAt: string } {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The second field is the command's name in parentheses, which may contain anything.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return { state: fields[0]!, startedAt: fields[19]! }
}
