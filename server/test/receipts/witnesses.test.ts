import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  formatVerifierKey,
  type LogPolicy,
  NOTE_ED25519,
  parseCheckpoint,
  parseLogPolicy,
  verifyLogPolicy,
  verifyReceiptProof,
} from '@countersign/proof'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { serveWitness } from '../../../cli/src/commands/witness.ts'
import { createWitness, openWitnessKey, type WitnessKey } from '../../../cli/src/witness.ts'
import { createHttpWitness } from '../../src/adapters/witnesses/http-witness.ts'
import { saveCosignature } from '../../src/modules/receipts/log.store.ts'
import { readQuorum, takeTurn } from '../../src/modules/receipts/log-quorum.store.ts'
import { createCheckpointSubmission } from '../../src/modules/receipts/submit-checkpoints.ts'
import { createReceiptsFixture, createTestDatabase, ORIGIN, silent, testKeys } from './helpers.ts'

const folder = mkdtempSync(join(tmpdir(), 'countersign-witnesses-'))
const TIMEOUT_MS = 2_000
let testDatabase: Awaited<ReturnType<typeof createTestDatabase>>
let servers: Server[] = []
let folders = 0

beforeAll(async () => {
  testDatabase = await createTestDatabase()
})
afterAll(async () => {
  await testDatabase.drop()
  rmSync(folder, { recursive: true, force: true })
})
beforeEach(async () => {
  await testDatabase.clear()
  await testDatabase.database.pool.query(`truncate log_witnesses`)
  await testDatabase.database.pool.query(
    `update log_quorum set holder = '', expires_at = '-infinity', sent_size = 0, published_size = 0, behind_since = null`,
  )
})
afterEach(() => {
  for (const server of servers) {
    server.closeAllConnections()
    server.close()
  }
  servers = []
})

const listen = async (listener: Server | RequestListener): Promise<string> => {
  const server = typeof listener === 'function' ? createServer(listener) : listener
  servers.push(server)
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const logVerifierKey = formatVerifierKey({
  name: ORIGIN,
  type: NOTE_ED25519,
  publicKey: testKeys().signer('log').publicKey,
})
const keys = ['w1', 'w2', 'w3'].map((name) => openWitnessKey(join(folder, `${name}.key`), `witness.example/${name}`))

function makePolicy(urls: (string | undefined)[], quorum: string, witnessKeys: WitnessKey[] = keys): LogPolicy {
  const lines = urls.map((url, i) => `witness w${i + 1} ${witnessKeys[i]!.verifierKey} ${url ?? ''}`)
  const names = urls.map((_, i) => `w${i + 1}`).join(' ')
  const parsed = parseLogPolicy(`log ${logVerifierKey}\n${lines.join('\n')}\ngroup g ${quorum} ${names}\nquorum g\n`)
  if (!parsed.ok) throw new Error(parsed.reason)
  return parsed.policy
}

/** A witness of the command line over HTTP, on the clock of the test. */
function honestWitness(key: WitnessKey, now: () => Date, state = join(folder, `state-${folders++}`)) {
  const witness = createWitness({ key, logs: [logVerifierKey], folder: state, lock: { assertHeld() {} }, now })
  return { witness, server: serveWitness(witness) }
}

function createLog(policy: LogPolicy, instance = 'process-a') {
  const fixture = createReceiptsFixture(testDatabase.database, { policy })
  const { log } = fixture.receipts
  const submission = createCheckpointSubmission({
    db: fixture.db,
    clock: fixture.clock,
    log: silent,
    instance,
    policy,
    transparencyLog: log,
    send: createHttpWitness(TIMEOUT_MS),
  })
  const grow = async (count = 1) => {
    const rows = await fixture.issue(Array.from({ length: count }, () => fixture.draft()))
    await fixture.sequencer.runOnce()
    return rows.at(-1)!.row.id
  }
  const problems = async () => {
    const { rows } = await testDatabase.database.pool.query(
      `select witness, failures, problem, size::int from log_witnesses where failures > 0 order by witness`,
    )
    return rows as { witness: string; failures: number; problem: string; size: number }[]
  }
  return { ...fixture, log, submission, grow, problems }
}

/** The clock of a log that is made after its witnesses. */
function clockOf() {
  let clock: { now(): Date } | undefined
  return {
    now: () => clock!.now(),
    set(value: { now(): Date }) {
      clock = value
    },
  }
}

/** A log with three honest witnesses, of which `quorum` must have cosigned. */
async function createWitnessedLog(quorum = '2') {
  const clock = clockOf()
  const states = keys.map(() => join(folder, `state-${folders++}`))
  const urls = await Promise.all(keys.map((key, i) => listen(honestWitness(key, clock.now, states[i]).server)))
  const policy = makePolicy(urls, quorum)
  const log = createLog(policy)
  clock.set(log.clock)
  return { ...log, policy, states }
}

describe('the log and its witnesses', () => {
  test('each new checkpoint is cosigned by all witnesses and becomes the witnessed one', async () => {
    const { grow, submission, log, policy, clock } = await createWitnessedLog('all')
    await expect(log.checkpoint({ witnessed: true })).rejects.toMatchObject({ options: { status: 404 } })
    for (const count of [1, 1, 3, 260, 2]) {
      await grow(count)
      await submission.sweep()
      const checkpoint = await log.checkpoint({ witnessed: true })
      expect(verifyLogPolicy(checkpoint, { policy, now: clock.now() })).toMatchObject({ ok: true, missing: [] })
      expect(parseCheckpoint(checkpoint)?.size).toBe(await log.size())
      expect((await log.quorum())?.state).toBe('ok')
    }
  })

  test('a proof file verifies against the policy alone once the receipt is under a cosigned checkpoint', async () => {
    const { grow, submission, receipts, policy } = await createWitnessedLog()
    await grow(4)
    await submission.sweep()
    const id = await grow(1)
    await expect(receipts.proofFile(id, { witnessed: true })).rejects.toMatchObject({ options: { status: 404 } })
    const unwitnessed = verifyReceiptProof(await receipts.proofFile(id, { witnessed: false }), { policy })
    expect(unwitnessed.checks.filter(({ ok }) => ok === false).map(({ name }) => name)).toEqual(['quorum'])
    await submission.sweep()
    const { ok, receipt } = verifyReceiptProof(await receipts.proofFile(id, { witnessed: true }), { policy })
    expect([ok, receipt?.receipt_id]).toEqual([true, id])
  })

  test('a witness that was away gets the proof from the size that it names', async () => {
    const { grow, submission, log, problems, states, clock, policy } = await createWitnessedLog()
    await grow(3)
    await submission.sweep()
    await testDatabase.database.pool.query(`update log_witnesses set size = 1 where witness = 'witness.example/w2'`)
    await testDatabase.database.pool.query(`update log_witnesses set size = 0 where witness = 'witness.example/w3'`)
    await grow(2)
    await submission.sweep()
    expect(await problems()).toEqual([])
    expect(verifyLogPolicy(await log.checkpoint({ witnessed: true }), { policy, now: clock.now() }).missing).toEqual([])
    expect(states).toHaveLength(3)
  })

  test('a cosignature that the log asked for and did not live to store is asked for again', async () => {
    const { grow, submission, log, problems } = await createWitnessedLog('all')
    await grow(3)
    await submission.sweep()
    // The state of a process that died between the answers and its writes.
    await testDatabase.database.pool.query(`truncate log_cosignatures, log_witnesses`)
    await testDatabase.database.pool.query(`update log_quorum set published_size = 0`)
    await submission.sweep()
    expect([await problems(), (await log.quorum())?.state]).toEqual([[], 'ok'])
  })
})

describe('one process at a time', () => {
  test('of two processes that want to send at once, one does', async () => {
    let requests = 0
    const clock = clockOf()
    const urls = await Promise.all(
      keys.map((key) => {
        const { witness } = honestWitness(key, clock.now)
        const server = serveWitness({
          addCheckpoint(body) {
            requests += 1
            return witness.addCheckpoint(body)
          },
        })
        return listen(server)
      }),
    )
    const policy = makePolicy(urls, 'all')
    const [first, second] = [createLog(policy, 'process-a'), createLog(policy, 'process-b')]
    clock.set(first.clock)
    await first.grow(3)
    await Promise.all([first.submission.sweep(), second.submission.sweep(), first.submission.sweep()])
    expect([(await first.log.quorum())?.state, requests]).toEqual(['ok', 3])
  })

  test('the turn of a process that died ends by itself, and until then nobody else sends', async () => {
    const { grow, submission, log, db, clock } = await createWitnessedLog()
    await grow(2)
    const witnesses = keys.map(({ name }) => name)
    const turn = await takeTurn(db, { holder: 'dead', witnesses, now: clock.now(), leaseMs: 60_000 })
    expect(turn?.ask.length).toBe(3)
    await submission.sweep()
    expect((await log.quorum())?.cosignedSize).toBe(0)
    await testDatabase.database.pool.query(`update log_quorum set expires_at = clock_timestamp() - interval '1 second'`)
    await submission.sweep()
    expect((await log.quorum())?.cosignedSize).toBe(2)
  })
})

/** What a witness may answer, and the reason for which it must not count. */
const lies: [string, () => Promise<Reply> | Reply, string][] = [
  ['a cosignature under another key', async () => ({ status: 200, body: await cosignAs(keys[2]!) }), 'does not count'],
  ['no cosignature', () => ({ status: 200, body: '' }), 'does not count'],
  ['text that is no signature line', () => ({ status: 200, body: 'cosigned\n' }), 'does not count'],
  ['404', () => ({ status: 404, body: 'no such log' }), 'It answered 404'],
  ['403', () => ({ status: 403, body: '' }), 'It answered 403'],
  ['422', () => ({ status: 422, body: '' }), 'It answered 422'],
  ['500', () => ({ status: 500, body: '' }), 'It answered 500'],
  ['a size above ours', () => conflict('1000\n'), 'says that it cosigned 1000 entries'],
  ['409 again and again', () => conflict('1\n'), 'It answered 409'],
  ['409 without a size', () => ({ status: 409, body: '1\n', type: 'text/plain' }), 'without the size'],
  ['409 with a size that is none', () => conflict('01\n'), 'without the size'],
  ['409 with a negative size', () => conflict('-1\n'), 'without the size'],
  ['too much', () => ({ status: 200, body: 'x'.repeat(70_000) }), 'too large'],
  ['a redirect', () => ({ status: 307, body: '', location: 'http://127.0.0.1:1/' }), 'It answered 307'],
]
type Reply = { status: number; body: string; type?: string; location?: string }
const conflict = (body: string): Reply => ({ status: 409, body, type: 'text/x.tlog.size' })

let cosignAs: (key: WitnessKey) => Promise<string>

describe('a witness that answers wrongly', () => {
  /** One log, one witness with this answer that must cosign, and two honest ones beside it. */
  async function withLiar(answer: (request: string) => Promise<Reply> | Reply, quorum = 'all') {
    const clock = clockOf()
    const honest = await Promise.all(keys.slice(1).map((key) => listen(honestWitness(key, clock.now).server)))
    const liar = await listen((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk) => chunks.push(chunk))
      request.on('end', async () => {
        const { status, body, type = 'text/plain', location } = await answer(Buffer.concat(chunks).toString())
        response.writeHead(status, { 'content-type': type, ...(location && { location }) }).end(body)
      })
    })
    const log = createLog(makePolicy([liar, ...honest], quorum))
    clock.set(log.clock)
    return log
  }

  test.each(lies)('with %s is not counted, and the reason is kept', async (_, answer, reason) => {
    let request = ''
    cosignAs = async (key) => {
      const clock = { now: () => log.clock.now() }
      const { witness } = honestWitness(key, clock.now)
      return (await witness.addCheckpoint(request.replace(/^old \d+\n(?:[^\n]+\n)*/, 'old 0\n'))).body
    }
    const log = await withLiar((body) => {
      request = body
      return answer()
    })
    await log.grow(3)
    await log.submission.sweep()
    expect(await log.problems()).toEqual([
      expect.objectContaining({ witness: 'witness.example/w1', failures: 1, problem: expect.stringContaining(reason) }),
    ])
    expect((await log.log.quorum())?.cosignedSize).toBe(0)
  })

  test('the cosignature of an older checkpoint, a stale date and a date of the future are not counted', async () => {
    let offsetSeconds = 0
    let replayed: string | undefined
    const clock = clockOf()
    const { witness } = honestWitness(keys[0]!, () => new Date(clock.now().getTime() + offsetSeconds * 1000))
    const log = await withLiar(async (body) => {
      if (replayed !== undefined) return { status: 200, body: replayed }
      const { status, type, body: text } = await witness.addCheckpoint(body)
      return { status, type, body: text }
    })
    clock.set(log.clock)
    await log.grow(2)
    await log.submission.sweep()
    expect((await log.log.quorum())?.cosignedSize).toBe(2)

    replayed = await witness.addCheckpoint(`old 2\n\n${await log.log.checkpointAt(2)}`).then(({ body }) => body)
    await log.grow(1)
    await log.submission.sweep()
    expect((await log.problems())[0]?.problem).toContain('does not verify')
    replayed = undefined

    for (const [offset, reason] of [
      [400, 'dated in the future'],
      [-400, 'dated 400 seconds ago'],
    ] as const) {
      offsetSeconds = offset
      log.clock.advance(3_600_000)
      // The witness never dates a cosignature before its last one, so each date has a witness of its own.
      const fresh = honestWitness(keys[0]!, () => new Date(log.clock.now().getTime() + offset * 1000))
      const request = `old 0\n\n${await log.log.checkpointAt(3)}`
      replayed = (await fresh.witness.addCheckpoint(request)).body
      await log.submission.sweep()
      expect((await log.problems())[0]?.problem).toContain(reason)
    }
    expect((await log.log.quorum())?.cosignedSize).toBe(2)
  })

  test('a slow one costs its time-out and leaves the quorum of the others alone', async () => {
    const log = await withLiar(() => new Promise<Reply>(() => {}), '2')
    await log.grow(3)
    await log.submission.sweep()
    expect((await log.problems())[0]?.problem).toBe('It did not answer in time.')
    expect((await log.log.quorum())?.state).toBe('ok')
  })

  test('it is asked again only after a while that doubles, and the log serves what it has', async () => {
    let asked = 0
    const log = await withLiar(() => {
      asked += 1
      return { status: 500, body: '' }
    })
    const id = await log.grow(3)
    for (const [seconds, total] of [
      [0, 1],
      [4, 1],
      [1, 2],
      [9, 2],
      [1, 3],
      [19, 3],
      [1, 4],
    ] as const) {
      log.clock.advance(seconds * 1000)
      await log.submission.sweep()
      expect(asked).toBe(total)
    }
    // Receipts go on: each is in the newest checkpoint with its proof, cosigned or not.
    expect((await log.receipts.get(id)).log).toMatchObject({ index: 2 })
    expect((await log.log.quorum())?.state).toBe('waiting')
    log.clock.advance(60_000)
    expect(await log.log.quorum()).toMatchObject({ state: 'missing', size: 3, cosignedSize: 0 })
    expect((await log.log.quorum())!.behindSeconds).toBeGreaterThan(60)
  })
})

describe('the published checkpoint', () => {
  test('stays although a thousand newer ones have the cosignature of one witness alone', async () => {
    const { grow, submission, log, db } = await createWitnessedLog()
    await grow(2)
    await submission.sweep()
    const published = await log.checkpoint({ witnessed: true })
    for (let size = 3; size < 1_010; size += 1)
      await saveCosignature(db, size, 'witness.example/w1', '— w x\n', new Date())
    expect(await log.checkpoint({ witnessed: true })).toBe(published)
  })

  test('is chosen again under another policy when the service starts', async () => {
    const { grow, submission, log, policy, db } = await createWitnessedLog('2')
    await grow(2)
    await submission.sweep()
    await testDatabase.database.pool.query(`delete from log_cosignatures where witness = 'witness.example/w3'`)
    const strict = createLog({ ...policy, groups: [{ ...policy.groups[0]!, threshold: 3 }] })
    await strict.log.open()
    expect((await readQuorum(db)).published_size).toBe(0)
    await log.open()
    expect((await readQuorum(db)).published_size).toBe(2)
  })

  test('counts a witness that comes by itself, when it is one of the policy', async () => {
    const clock = clockOf()
    const policy = makePolicy([undefined], 'all')
    const fixture = createReceiptsFixture(testDatabase.database, { policy, witnesses: [keys[0]!.verifierKey] })
    clock.set(fixture.clock)
    const { witness } = honestWitness(keys[0]!, clock.now)
    await fixture.issue([fixture.draft()])
    await fixture.sequencer.runOnce()
    const { log } = fixture.receipts
    expect((await log.quorum())?.state).toBe('waiting')
    const note = await log.checkpoint()
    await log.addCosignatures(note + (await witness.addCheckpoint(`old 0\n\n${note}`)).body)
    expect((await log.quorum())?.state).toBe('ok')
  })
})

test.each([
  ['a policy of other logs', (text: string) => text.replace(logVerifierKey, otherLogKey), 'none of them is this one'],
  [
    'two witnesses of one key name',
    (text: string) => text.replace('quorum none', `witness b ${sameNameKey}\nquorum none`),
    "key name 'witness.example/w1'",
  ],
  ['an address that is none', (text: string) => text.replace('http://', 'ftp://'), 'an http or https address'],
])('a service with %s does not start', async (_, change, reason) => {
  const text = `log ${logVerifierKey}\nwitness a ${keys[0]!.verifierKey} http://127.0.0.1:1\nquorum none\n`
  const parsed = parseLogPolicy(change(text))
  if (!parsed.ok) throw new Error(parsed.reason)
  const { receipts } = createReceiptsFixture(testDatabase.database, { policy: parsed.policy })
  await expect(receipts.log.open()).rejects.toThrow(reason)
})

const otherLogKey = formatVerifierKey({
  name: ORIGIN,
  type: NOTE_ED25519,
  publicKey: testKeys('b').signer('log').publicKey,
})
const sameNameKey = openWitnessKey(join(folder, 'same-name.key'), 'witness.example/w1').verifierKey
