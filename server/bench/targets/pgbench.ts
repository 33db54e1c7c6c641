/** pgbench on the service's own PostgreSQL: what the server itself gives on this machine, as context. */
import { execFileSync } from 'node:child_process'
import { existsSync, globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startBenchService } from '../support/bench-service.ts'
import { formatFigure, median } from '../support/report.ts'
import type { Measurement } from './figure.ts'

const CLIENTS = 64
const SCALE = 10

/** The same transaction as row-lock.ts, without the cost of a Node client. */
const ROW_LOCK_SCRIPT = `begin;
update bench.row_lock_limits set spent_micro = spent_micro + 5000 where id = 1 and spent_micro + 5000 <= limit_micro;
insert into bench.row_lock_runs (limit_id, price_micro, request) values (1, 5000, '{"task":"Say 1.","agent_id":"comedian-v1"}');
commit;
`

const findPgbench = (): string | undefined =>
  [
    ...globSync('/usr/lib/postgresql/*/bin/pgbench').toSorted().toReversed(),
    '/usr/bin/pgbench',
    '/usr/local/bin/pgbench',
  ].find((path) => existsSync(path))

export async function measurePgbench({ rounds, seconds }: { rounds: number; seconds: number }): Promise<Measurement> {
  const pgbench = findPgbench()
  if (!pgbench) return { figures: [], skipped: ['pgbench: not found (Debian has it in the package postgresql-15)'] }
  const service = await startBenchService()
  const folder = mkdtempSync(join(tmpdir(), 'countersign-pgbench-'))
  try {
    const script = join(folder, 'row-lock.sql')
    writeFileSync(script, ROW_LOCK_SCRIPT)
    const run = (...flags: string[]) =>
      execFileSync(pgbench, ['-h', service.socketFolder, '-U', 'postgres', '--no-vacuum', ...flags, 'countersign'], {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      })
    await service.query(
      'create table bench.row_lock_limits (id int primary key, spent_micro bigint, limit_micro bigint)',
    )
    await service.query('insert into bench.row_lock_limits values (1, 0, 1000000000000)')
    await service.query(
      'create table bench.row_lock_runs (id uuid primary key default gen_random_uuid(), limit_id int, price_micro bigint, request jsonb, created_at timestamptz default now())',
    )
    run('--initialize', '--quiet', '--scale', `${SCALE}`)
    const kinds = {
      'TPC-B-like': ['--builtin', 'tpcb-like'],
      'simple update': ['--builtin', 'simple-update'],
      'select only': ['--builtin', 'select-only'],
      'row lock': ['--file', script],
    }
    const results: Record<string, number[]> = Object.fromEntries(Object.keys(kinds).map((name) => [name, []]))
    for (let round = 0; round < rounds; round++) {
      for (const [name, flags] of Object.entries(kinds)) {
        const output = run(
          '--client',
          `${CLIENTS}`,
          '--jobs',
          '2',
          '--time',
          `${seconds}`,
          '--protocol',
          'prepared',
          ...flags,
        )
        results[name]!.push(Number(/^tps = ([\d.]+)/m.exec(output)![1]))
      }
    }
    const version = execFileSync(pgbench, ['--version'], { encoding: 'utf8' }).trim()
    return {
      figures: Object.entries(results).map(([name, values]) => ({
        id: `pgbench-${name.toLowerCase().replaceAll(' ', '-')}`,
        name: `pgbench, ${name}, ${CLIENTS} clients: transactions a second`,
        value: median(values),
        detail: `${version}, scale ${SCALE}; rounds: ${values.map(formatFigure).join(', ')}`,
      })),
      skipped: [],
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
    await service.stop()
  }
}
