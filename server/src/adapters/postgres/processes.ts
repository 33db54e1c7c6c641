import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
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
