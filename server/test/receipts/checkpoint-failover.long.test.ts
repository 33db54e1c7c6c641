import { parseCheckpoint, verifyConsistency } from '@countersign/proof'
import { afterEach, expect, test } from 'vitest'
import { type Database, isOutcomeUnknown, openDatabase } from '../../src/platform/db.ts'
import type { Keys } from '../../src/platform/keys.ts'
import { migrate } from '../../src/platform/migrate.ts'
import { silentLog } from '../database.ts'
import { poll, type ReplicatedPostgres, startReplicatedPostgres } from '../replicated-postgres.ts'
import { createReceiptsFixture, testKeys } from './helpers.ts'

let cluster: ReplicatedPostgres | undefined
const databases: Database[] = []
afterEach(async () => {
  for (const database of databases.splice(0)) await database.close()
  await cluster?.close()
})

/** Keys that remember which checkpoints they have signed. */
function recordingKeys(): { keys: Keys; signedSizes: () => number[] } {
  const keys = testKeys()
  const texts: string[] = []
  return {
    keys: {
      ...keys,
      signer: (name) => {
        const signer = keys.signer(name)
        if (name !== 'log') return signer
        return {
          ...signer,
          sign: (text) => {
            texts.push(String(text))
            return signer.sign(text)
          },
        }
      },
    },
    signedSizes: () => texts.map((text) => Number(text.split('\n')[1])),
  }
}

test('a tree is signed only when its commit is confirmed, and after a failover the log is consistent with every signature', async () => {
  cluster = await startReplicatedPostgres()
  const [primary, standby] = cluster.nodes as [ReplicatedPostgres['nodes'][number], ReplicatedPostgres['nodes'][number]]
  const open = () => {
    const database = openDatabase(cluster!.url(), { max: 4, log: silentLog })
    databases.push(database)
    return database
  }
  const database = open()
  await migrate(database)
  const { keys, signedSizes } = recordingKeys()
  const fixture = createReceiptsFixture(database, { keys })
  await fixture.receipts.open()
  await fixture.issueMany(3)
  await fixture.sequencer.runOnce()
  const remembered = parseCheckpoint(await fixture.log.checkpoint())!
  expect(remembered.size).toBe(3)

  // The receipts of the second batch are confirmed, their places in the log are not.
  await fixture.issueMany(2)
  await standby.kill()
  const numbering = fixture.sequencer.runOnce().then(
    () => 'confirmed',
    (error) => (isOutcomeUnknown(error) ? 'unknown' : error),
  )
  let pid = 0
  await poll('the commit of the sequencer to wait', async () => {
    const [row] = await primary.query(
      `select pid from pg_stat_activity where wait_event = 'SyncRep' and query = 'commit' and datname = 'countersign'`,
    )
    pid = row?.pid ?? 0
    return pid !== 0
  })
  expect(signedSizes().filter((size) => size > 3)).toEqual([])
  await primary.query(`select pg_cancel_backend(${pid})`)
  expect(await numbering).toBe('unknown')
  expect(signedSizes().filter((size) => size > 3)).toEqual([])
  // Whoever reads the server itself sees the larger tree, without a signature.
  const [head] = await readHead(primary.port)
  expect(head).toEqual({ size: '3', appended_size: '5' })

  await primary.kill()
  await standby.start()
  await standby.promote()
  await standby.configure('synchronous_standby_names', '')
  await poll('the new primary to serve', async () => (await database.pool.query('select 1')).rows.length === 1)
  // The same receipts are numbered again, among others and in another batch.
  const successor = createReceiptsFixture(open())
  await database.pool.query(`update sequencer_lease set expires_at = '-infinity'`)
  await successor.issueMany(4)
  await successor.sequencer.runOnce()
  const newest = parseCheckpoint(await successor.log.checkpoint())!
  expect(newest.size).toBe(9)
  for (const size of new Set(signedSizes())) {
    if (size === 0) continue
    const old = parseCheckpoint(await successor.log.checkpointAt(size))!
    if (size === 3) expect(old.root).toEqual(remembered.root)
    const { proof } = await successor.log.consistency(size)
    const claim = {
      oldSize: size,
      oldRoot: size === 3 ? remembered.root : old.root,
      newSize: 9,
      newRoot: newest.root,
      proof,
    }
    expect(verifyConsistency(claim)).toBe(true)
  }
}, 120_000)

async function readHead(port: number) {
  const { default: pg } = await import('pg')
  const client = new pg.Client({ host: '127.0.0.1', port, user: 'countersign', database: 'countersign' })
  await client.connect()
  try {
    return (await client.query('select size::text, appended_size::text from log_head')).rows
  } finally {
    await client.end()
  }
}
