import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

export type Metrics = ReturnType<typeof createMetrics>

/** `worker` names the process in a label when several processes answer one scrape. */
export function createMetrics(worker?: string) {
  const registry = new Registry()
  // Gauges about the database are the same in every process, so one of them reads them, without its label.
  const databaseRegistry = new Registry()
  if (worker !== undefined) registry.setDefaultLabels({ worker })
  // A timer every 10 ms, the default, is most of what an idle process does.
  collectDefaultMetrics({ register: registry, prefix: 'countersign_', eventLoopMonitoringPrecision: 100 })
  return {
    registry,
    databaseRegistry,
    httpSeconds: new Histogram({
      name: 'countersign_http_request_seconds',
      help: 'Time to answer a request, by route and status.',
      labelNames: ['method', 'route', 'status'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60, 120],
      registers: [registry],
    }),
    runs: new Counter({
      name: 'countersign_runs_total',
      help: 'Runs and loops by lane and how they ended.',
      labelNames: ['kind', 'agent_id', 'outcome'],
      registers: [registry],
    }),
    settledMicro: new Counter({
      name: 'countersign_settled_micro_usdc_total',
      help: 'Money settled, in micro-USDC.',
      labelNames: ['kind'],
      registers: [registry],
    }),
    batchSize: new Histogram({
      name: 'countersign_batch_items',
      help: 'How many steps shared one commit.',
      labelNames: ['step'],
      buckets: [1, 2, 4, 8, 16, 32, 64],
      registers: [registry],
    }),
    jobSeconds: new Histogram({
      name: 'countersign_job_seconds',
      help: 'How long a sweep took.',
      labelNames: ['job'],
      buckets: [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60],
      registers: [registry],
    }),
    jobFailures: new Counter({
      name: 'countersign_job_failures_total',
      help: 'Sweeps that failed and will be tried again.',
      labelNames: ['job'],
      registers: [registry],
    }),
    unknownCommits: new Counter({
      name: 'countersign_unknown_commits_total',
      help: 'Commits that no standby has confirmed, because their wait for it was cancelled.',
      registers: [registry],
    }),
    /** One gauge with a value for each name, such as each table. */
    gauges: <Label extends string>(
      name: string,
      help: string,
      label: Label,
      read: () => Promise<Record<string, number>>,
    ) =>
      new Gauge<Label>({
        name: `countersign_${name}`,
        help,
        labelNames: [label],
        registers: [databaseRegistry],
        async collect() {
          this.reset()
          for (const [value, number] of Object.entries(await read())) this.set({ [label]: value } as never, number)
        },
      }),
    gauge: (name: string, help: string, read: () => Promise<number> | number) =>
      new Gauge({
        name: `countersign_${name}`,
        help,
        registers: [databaseRegistry],
        async collect() {
          this.set(await read())
        },
      }),
  }
}
