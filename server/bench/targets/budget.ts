/**
 * One hot budget, 64 in flight: admissions by the service's own step, which holds the budget and writes the run for all
 * that wait in one commit, against a plain row lock with a transaction for each run. No service runs meanwhile.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEmbeddedPostgres } from '../../src/adapters/postgres/embedded.ts'
import { openDatabase } from '../../src/platform/db.ts'
import { createLog } from '../../src/platform/log.ts'
import { migrate } from '../../src/platform/migrate.ts'
import { startChild } from '../support/child.ts'
import { formatFigure, median } from '../support/report.ts'
import type { RowLockResult } from '../support/row-lock.ts'
import { type Measurement, medianRatio } from './figure.ts'

const IN_FLIGHT = 64

export async function measureBudget({ rounds, seconds }: { rounds: number; seconds: number }): Promise<Measurement> {
  const dataDir = mkdtempSync(join(tmpdir(), 'countersign-bench-'))
  const log = createLog('silent')
  const postgres = await startEmbeddedPostgres({ dataDir, log })
  const children: { stop(): void }[] = []
  try {
    const database = openDatabase(postgres.connection, { max: 1, log })
    await migrate(database)
    await database.close()
    const start = async (file: string) => {
      const child = await startChild(file, { socketFolder: postgres.connection.host, inFlight: IN_FLIGHT })
      children.push(child)
      return child
    }
    const sides = { admissions: await start('admissions.ts'), rowLock: await start('row-lock.ts') }
    const results = { admissions: [] as RowLockResult[], rowLock: [] as RowLockResult[] }
    // The first round is a warm-up.
    for (let round = 0; round <= rounds; round++) {
      for (const side of ['admissions', 'rowLock'] as const) {
        const result = await sides[side].call<RowLockResult>({ seconds })
        if (round > 0) results[side].push(result)
      }
    }
    const perSecond = (rows: RowLockResult[]) => formatFigure(median(rows.map((row) => row.perSecond)))
    return {
      figures: [
        {
          id: 'budget',
          name: `one hot budget against a plain row lock, ${IN_FLIGHT} in flight: admissions a second`,
          value: medianRatio(results.admissions, results.rowLock, (row) => row.perSecond),
          bar: { atLeast: 6 },
          detail: `${perSecond(results.admissions)} admissions against ${perSecond(results.rowLock)} transactions a second`,
        },
      ],
      skipped: [],
    }
  } finally {
    for (const child of children) child.stop()
    await postgres.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
}
