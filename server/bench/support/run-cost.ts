import type { BenchService } from './bench-service.ts'
import { readPostgresCpu, readProcessCpu } from './cpu.ts'
import { type Load, type LoadGenerator, runLoad } from './load.ts'
import { waitForDrain } from './writes.ts'

/** What one response of a load cost, in milliseconds of CPU. */
export type RunCost = {
  perSecond: number
  p50Ms: number
  p99Ms: number
  nodeMs: number
  postgresMs: number
  clientMs: number
  /** PostgreSQL's part by role of its processes. */
  roles: Record<string, number>
}

/**
 * Runs a load and returns its cost, the work of the sequencer and the jobs after it included. A paid exchange of two
 * requests counts once: `responsesPerRun`.
 */
export async function measureRunCost(
  service: BenchService,
  generator: LoadGenerator,
  load: Omit<Load, 'port'>,
  responsesPerRun = 1,
): Promise<RunCost> {
  await waitForDrain(service.query)
  const nodeBefore = readProcessCpu(service.pid, service.postmasterPid)
  const postgresBefore = readPostgresCpu(service.postmasterPid)
  const result = await runLoad(generator, { ...load, port: service.port })
  await waitForDrain(service.query)
  const postgres = readPostgresCpu(service.postmasterPid)
  const count = result.responses / responsesPerRun
  return {
    perSecond: count / result.seconds,
    p50Ms: result.p50Ms,
    p99Ms: result.p99Ms,
    nodeMs: (readProcessCpu(service.pid, service.postmasterPid) - nodeBefore) / count,
    postgresMs: (postgres.total - postgresBefore.total) / count,
    clientMs: result.cpuMs / count,
    roles: Object.fromEntries(
      Object.entries(postgres.roles).map(([role, ms]) => [role, (ms - (postgresBefore.roles[role] ?? 0)) / count]),
    ),
  }
}

/** The cost of a server without a database. */
export async function measureBareCost(
  server: { pid: number; port: number },
  generator: LoadGenerator,
  load: Omit<Load, 'port'>,
  responsesPerRun = 1,
): Promise<RunCost> {
  const before = readProcessCpu(server.pid)
  const result = await runLoad(generator, { ...load, port: server.port })
  const count = result.responses / responsesPerRun
  return {
    perSecond: count / result.seconds,
    p50Ms: result.p50Ms,
    p99Ms: result.p99Ms,
    nodeMs: (readProcessCpu(server.pid) - before) / count,
    postgresMs: 0,
    clientMs: result.cpuMs / count,
    roles: {},
  }
}
