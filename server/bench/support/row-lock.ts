/**
 * A budget in the plain way: every run is one transaction that updates the row of its budget and inserts itself, so
 * that the row's lock is held until the commit. One connection for each run in flight, prepared statements.
 */
import pg from 'pg'
import { answerParent } from './child.ts'

type Start = { socketFolder: string; inFlight: number }
type Round = { seconds: number }
export type RowLockResult = { perSecond: number }

const clients: pg.Client[] = []
const PRICE_MICRO = 5_000

answerParent(async (message: Start | Round) => ('inFlight' in message ? start(message) : runRound(message)))

async function start({ socketFolder, inFlight }: Start) {
  for (let index = 0; index < inFlight; index++) {
    const client = new pg.Client({ host: socketFolder, port: 5432, user: 'postgres', database: 'countersign' })
    await client.connect()
    clients.push(client)
  }
  await clients[0]!.query(`
    create schema if not exists bench;
    create table if not exists bench.row_lock_limits (id int primary key, spent_micro bigint not null, limit_micro bigint not null,
      check (spent_micro <= limit_micro));
    create table if not exists bench.row_lock_runs (id uuid primary key default gen_random_uuid(), tenant_id text not null,
      limit_id int not null references bench.row_lock_limits, price_micro bigint not null, request jsonb not null,
      created_at timestamptz not null default now());
    insert into bench.row_lock_limits values (1, 0, 1000000000000) on conflict do nothing`)
}

async function runRound({ seconds }: Round): Promise<RowLockResult> {
  const request = JSON.stringify({ task: 'Say 1.', agent_id: 'comedian-v1', payment: { wallet_id: 'wal_x' } })
  const startedAt = performance.now()
  const deadline = startedAt + seconds * 1000
  let count = 0
  await Promise.all(
    clients.map(async (client) => {
      while (performance.now() < deadline) {
        await client.query('begin')
        const { rowCount } = await client.query({
          name: 'hold',
          text: 'update bench.row_lock_limits set spent_micro = spent_micro + $1 where id = 1 and spent_micro + $1 <= limit_micro',
          values: [PRICE_MICRO],
        })
        if (rowCount !== 1) throw new Error('The budget is exhausted.')
        await client.query({
          name: 'insert',
          text: 'insert into bench.row_lock_runs (tenant_id, limit_id, price_micro, request) values ($1, 1, $2, $3)',
          values: ['ten_x', PRICE_MICRO, request],
        })
        await client.query('commit')
        count += 1
      }
    }),
  )
  return { perSecond: count / ((performance.now() - startedAt) / 1000) }
}
