import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { basename, isAbsolute } from 'node:path'

/** Whether a process with this id exists, including a zombie. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/**
 * What a process id in a lock file refers to. Ids are reused, especially after a reboot and in containers, so the command
 * line decides: `server` is a postmaster of this cluster, `unclear` a postmaster whose command line names no cluster,
 * `unrelated` any other process or a zombie.
 */
export type ProcessIdentity = 'server' | 'unclear' | 'unrelated' | 'gone'

export function identifyProcess(pid: number, cluster: string): ProcessIdentity {
  if (!isAlive(pid)) return 'gone'
  const { text, separator } = readCommand(pid)
  const [program = '', ...flags] = text.split(`${separator}-D${separator}`)
  if (!['postgres', 'postmaster'].includes(basename(program.split(separator)[0]!))) return 'unrelated'
  const folder = flags.join(`${separator}-D${separator}`)
  if (!isAbsolute(folder)) return 'unclear'
  return `${folder}${separator}`.startsWith(`${cluster}${separator}`) ? 'server' : 'unrelated'
}

/** Processes titled as children of the cluster's server whose parent is not a server of that cluster. */
export function findOrphans(clusterName: string, cluster: string): number[] {
  return listProcesses()
    .filter(({ title }) => title.startsWith(`postgres: ${clusterName}: `))
    .filter(({ parentPid }) => identifyProcess(parentPid, cluster) !== 'server')
    .map(({ pid }) => pid)
}

function listProcesses(): { pid: number; parentPid: number; title: string }[] {
  if (process.platform !== 'linux') {
    const lines = execFileSync('ps', ['-axww', '-o', 'pid=,ppid=,args='], { encoding: 'utf8' }).split('\n')
    const matches = lines.map((line) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line)).filter((match) => match !== null)
    return matches.map(([, pid, parentPid, title]) => ({
      pid: Number(pid),
      parentPid: Number(parentPid),
      title: title!,
    }))
  }
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.map((pid) => ({ pid: Number(pid), parentPid: readParentPid(pid), title: readCommand(Number(pid)).text }))
}

/** The second field after the program name, which is in parentheses and may contain any character. */
function readParentPid(pid: string): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
  } catch {
    return 0
  }
}

/** The command line and the separator of its arguments; empty for a zombie. */
function readCommand(pid: number): { text: string; separator: string } {
  try {
    if (process.platform === 'linux') return { text: readFileSync(`/proc/${pid}/cmdline`, 'utf8'), separator: '\0' }
    return {
      text: execFileSync('ps', ['-ww', '-o', 'args=', '-p', String(pid)], { encoding: 'utf8' }).trim(),
      separator: ' ',
    }
  } catch {
    return { text: '', separator: ' ' }
  }
}
