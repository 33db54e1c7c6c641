import { readdirSync, readFileSync } from 'node:fs'

/** Linux reports process times in ticks of 10 ms on every platform that Node runs on. */
const MS_PER_TICK = 10

type ProcessStat = { pid: number; parent: number; ms: number; endedChildrenMs: number }

function readStat(pid: number): ProcessStat | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name in parentheses may contain spaces, so fields are counted from its end.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    const ticks = (index: number) => Number(fields[index]) * MS_PER_TICK
    return { pid, parent: Number(fields[1]), ms: ticks(11) + ticks(12), endedChildrenMs: ticks(13) + ticks(14) }
  } catch {
    return undefined
  }
}

const readAllStats = (): ProcessStat[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => readStat(Number(name)) ?? [])

function listTree(stats: ProcessStat[], root: number): ProcessStat[] {
  const tree = stats.filter(({ pid }) => pid === root)
  for (let index = 0; index < tree.length; index++) {
    tree.push(...stats.filter(({ parent }) => parent === tree[index]!.pid))
  }
  return tree
}

export type PostgresCpu = {
  total: number
  /** By role: client backends are `backends`; background processes have their own names. */
  roles: Record<string, number>
}

/** CPU time of a server, its children and the children that have ended, by role. */
export function readPostgresCpu(postmasterPid: number): PostgresCpu {
  const roles: Record<string, number> = {}
  const add = (role: string, ms: number) => {
    roles[role] = (roles[role] ?? 0) + ms
  }
  for (const { pid, ms, endedChildrenMs } of listTree(readAllStats(), postmasterPid)) {
    if (pid !== postmasterPid) add(readRole(pid), ms)
    else {
      add('postmaster', ms)
      // Autovacuum workers and closed connections: the kernel adds them to their parent when they end.
      add('ended processes', endedChildrenMs)
    }
  }
  return { total: Object.values(roles).reduce((sum, ms) => sum + ms, 0), roles }
}

/** PostgreSQL writes what a process does into its title: `postgres: <cluster>: checkpointer`. */
function readRole(pid: number): string {
  let title: string
  try {
    title = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    return 'ended processes'
  }
  const role = /checkpointer|background writer|walwriter|autovacuum launcher|autovacuum worker|io worker/.exec(
    title,
  )?.[0]
  return role ?? 'backends'
}

/** The processes of a service, without the PostgreSQL server that it started. */
function listNodeProcesses(pid: number, postmasterPid?: number): ProcessStat[] {
  const stats = readAllStats()
  const postgresPids = new Set(
    postmasterPid === undefined ? [] : listTree(stats, postmasterPid).map((stat) => stat.pid),
  )
  return listTree(stats, pid).filter((stat) => !postgresPids.has(stat.pid))
}

export const countProcesses = (pid: number, postmasterPid: number): number =>
  listNodeProcesses(pid, postmasterPid).length

/** CPU time of a process and its children, ended ones included, without a PostgreSQL server that it started. */
export const readProcessCpu = (pid: number, postmasterPid?: number): number =>
  listNodeProcesses(pid, postmasterPid).reduce((sum, { ms, endedChildrenMs }) => sum + ms + endedChildrenMs, 0)

/** Resident memory of each process of a service, in bytes. */
export const listResidentBytes = (pid: number, postmasterPid: number): number[] =>
  listNodeProcesses(pid, postmasterPid).map((stat) => {
    const kilobytes = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${stat.pid}/status`, 'utf8'))?.[1]
    return Number(kilobytes) * 1024
  })
