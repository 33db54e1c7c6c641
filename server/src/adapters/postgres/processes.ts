import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { basename, isAbsolute } from 'node:path'

/** Whether any process has this id, also one that is dead and not yet collected by its parent. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/**
 * What stands behind a process id that a lock file names. Ids are used again, after a reboot and in containers above
 * all, so the command line decides: `server` is a postmaster of this cluster, `unclear` a postmaster that does not say
 * which cluster it serves, `stranger` any other process or a dead one not yet collected.
 */
export type Identity = 'server' | 'unclear' | 'stranger' | 'gone'

export function identify(pid: number, cluster: string): Identity {
  if (!isAlive(pid)) return 'gone'
  const { text, gap } = readCommand(pid)
  const [program = '', ...rest] = text.split(`${gap}-D${gap}`)
  if (!['postgres', 'postmaster'].includes(basename(program.split(gap)[0]!))) return 'stranger'
  const folder = rest.join(`${gap}-D${gap}`)
  if (!isAbsolute(folder)) return 'unclear'
  return `${folder}${gap}`.startsWith(`${cluster}${gap}`) ? 'server' : 'stranger'
}

/** Processes titled as children of the cluster's server whose parent is no server of it any more. */
export function findOrphans(clusterName: string, cluster: string): number[] {
  return listProcesses()
    .filter(({ title }) => title.startsWith(`postgres: ${clusterName}: `))
    .filter(({ parent }) => identify(parent, cluster) !== 'server')
    .map(({ pid }) => pid)
}

function listProcesses(): { pid: number; parent: number; title: string }[] {
  if (process.platform !== 'linux') {
    const lines = execFileSync('ps', ['-axww', '-o', 'pid=,ppid=,args='], { encoding: 'utf8' }).split('\n')
    const matches = lines.map((line) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line)).filter((match) => match !== null)
    return matches.map(([, pid, parent, title]) => ({ pid: Number(pid), parent: Number(parent), title: title! }))
  }
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.map((pid) => ({ pid: Number(pid), parent: readParent(pid), title: readCommand(Number(pid)).text }))
}

/** The second word after the program's name, which stands in brackets and may itself hold any character. */
function readParent(pid: string): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
  } catch {
    return 0
  }
}

/** The command line and what separates its words; empty for a dead process that was not collected. */
function readCommand(pid: number): { text: string; gap: string } {
  try {
    if (process.platform === 'linux') return { text: readFileSync(`/proc/${pid}/cmdline`, 'utf8'), gap: '\0' }
    return {
      text: execFileSync('ps', ['-ww', '-o', 'args=', '-p', String(pid)], { encoding: 'utf8' }).trim(),
      gap: ' ',
    }
  } catch {
    return { text: '', gap: ' ' }
  }
}
