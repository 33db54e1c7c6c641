import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  consistencyProof,
  formatVerifierKey,
  hashLeaf,
  inclusionProof,
  NOTE_ED25519,
  parseLogPolicy,
  parseTlogProof,
  toBase64,
  utf8,
  verifyLogPolicy,
} from '@countersign/proof'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { serveWitness } from '../../../cli/src/commands/witness.ts'
import { createWitness, openWitnessKey } from '../../../cli/src/witness.ts'
import { fillerHashes, LOG_ORIGIN, logKey, makeCheckpoint } from '../../../proof/test/fixtures.ts'
import { createHttpWitness } from '../../src/adapters/witnesses/http-witness.ts'
import { createCheckpointSubmission } from '../../src/modules/receipts/submit-checkpoints.ts'
import { createReceiptsFixture, createTestDatabase, ORIGIN, silent, testKeys } from '../receipts/helpers.ts'

/** The program of judge.go, built with Go's own sumdb packages: `npm run test:soak -- sumdb` makes it. */
const judge = process.env.SUMDB_JUDGE
const folder = mkdtempSync(join(tmpdir(), 'countersign-sumdb-'))
const children: ChildProcess[] = []
afterAll(() => {
  for (const child of children) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

type Case = Record<string, unknown> & { name: string }

/** What the judge says of each case. */
function verdicts(cases: Case[]): Record<string, boolean> {
  const { stdout, stderr, status } = spawnSync(judge!, ['verify'], { input: JSON.stringify(cases), encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
  return Object.fromEntries(
    stdout
      .trim()
      .split('\n')
      .map((line) => [line.split(' ')[1]!.replace(/:$/, ''), line.startsWith('accepted ')]),
  )
}

const firstLine = (child: ChildProcess): Promise<string> =>
  new Promise((ready, fail) => {
    let output = ''
    child.stdout!.on('data', (chunk) => {
      output += chunk
      if (output.includes('\n')) ready(output.split('\n')[0]!)
    })
    child.once('exit', (code) => fail(new Error(`The judge ended (${code}).`)))
  })

describe.skipIf(judge === undefined)('Go’s sumdb/note and sumdb/tlog', () => {
  const log = formatVerifierKey({ name: LOG_ORIGIN, type: NOTE_ED25519, publicKey: logKey.publicKey })

  test('accept our checkpoints and every proof of trees up to 33 entries, and nothing that was changed', () => {
    const leaves = fillerHashes(33)
    const checkpoint = (size: number) => makeCheckpoint(leaves.slice(0, size))
    const good: Case[] = []
    const bad: Case[] = []
    for (let size = 1; size <= 33; size += 1) {
      for (let index = 0; index < size; index += 1) {
        const proof = inclusionProof(leaves.slice(0, size), index).map(toBase64)
        const base = { kind: 'inclusion', log, checkpoint: checkpoint(size), proof }
        good.push({ ...base, name: `i${size}.${index}`, index, entry: toBase64(utf8(`entry ${index}`)) })
        bad.push({ ...base, name: `e${size}.${index}`, index, entry: toBase64(utf8(`entry ${index}!`)) })
      }
      for (let old = 1; old <= size; old += 1) {
        const proof = consistencyProof(leaves.slice(0, size), old).map(toBase64)
        const base = { kind: 'consistency', log, checkpoint: checkpoint(size), old: checkpoint(old) }
        good.push({ ...base, name: `c${size}.${old}`, proof })
        bad.push({ ...base, name: `d${size}.${old}`, proof: [...proof, toBase64(hashLeaf(utf8('x')))] })
      }
    }
    expect(Object.values(verdicts(good))).toEqual(good.map(() => true))
    expect(Object.values(verdicts(bad))).toEqual(bad.map(() => false))
  })

  test('a log of theirs is cosigned by our witness through forty sizes, and its fork is not', async () => {
    const child = spawn(judge!, ['log'], { stdio: ['pipe', 'pipe', 'pipe'] })
    children.push(child)
    const theirKey = await firstLine(child)
    const key = openWitnessKey(join(folder, 'ours.key'), 'witness.example/ours')
    const witness = createWitness({ key, logs: [theirKey], folder: join(folder, 'ours'), lock: { assertHeld() {} } })
    const server = serveWitness(witness)
    await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
    let output = ''
    child.stdout.on('data', (chunk) => (output += chunk))
    child.stderr.on('data', (chunk) => (output += chunk))
    const ended = new Promise<number | null>((done) => child.once('exit', done))
    child.stdin.end(`${key.verifierKey}@http://127.0.0.1:${(server.address() as AddressInfo).port}\n`)
    expect([await ended, output]).toEqual([0, 'done witness.example/ours\n'])
    server.closeAllConnections()
    server.close()
  })

  describe('with a database', () => {
    let testDatabase: Awaited<ReturnType<typeof createTestDatabase>>
    beforeAll(async () => {
      testDatabase = await createTestDatabase()
    })
    afterAll(() => testDatabase?.drop())

    test('a witness of theirs cosigns our log, and they accept the checkpoint and a proof file of ours', async () => {
      const ourKey = formatVerifierKey({
        name: ORIGIN,
        type: NOTE_ED25519,
        publicKey: testKeys().signer('log').publicKey,
      })
      const child = spawn(judge!, ['witness', ourKey], { stdio: ['ignore', 'pipe', 'inherit'] })
      children.push(child)
      const [, verifierKey, url] = (await firstLine(child)).split(' ')
      const parsed = parseLogPolicy(`log ${ourKey}\nwitness theirs ${verifierKey} ${url}\nquorum theirs\n`)
      if (!parsed.ok) throw new Error(parsed.reason)
      const { policy } = parsed
      const fixture = createReceiptsFixture(testDatabase.database, { policy })
      const submission = createCheckpointSubmission({
        db: fixture.db,
        clock: fixture.clock,
        log: silent,
        instance: 'a',
        policy,
        transparencyLog: fixture.log,
        send: createHttpWitness(),
      })
      let id = ''
      for (const count of [1, 2, 5, 300]) {
        const issued = await fixture.issueMany(count)
        id = issued.at(-1)!.row.id
        await fixture.sequencer.runOnce()
        // Their witness dates its cosignatures by the clock of the machine.
        fixture.clock.set(new Date())
        await submission.sweep()
        const checkpoint = await fixture.log.checkpoint({ witnessed: true })
        expect(verifyLogPolicy(checkpoint, { policy, now: new Date() })).toMatchObject({ ok: true, missing: [] })
        const signed = { kind: 'checkpoint', log: ourKey, witnesses: [verifierKey], checkpoint, signers: 2 }
        expect(verdicts([{ ...signed, name: 'checkpoint' }])).toEqual({ checkpoint: true })
      }
      const proof = parseTlogProof(await fixture.receipts.proofFile(id, { witnessed: true }))!
      const base = { kind: 'inclusion', log: ourKey, witnesses: [verifierKey], ...proof }
      const entry = toBase64(proof.extra!)
      const cases = [
        { ...base, name: 'proof', entry },
        { ...base, name: 'moved', entry, index: proof.index - 1 },
      ]
      expect(verdicts(cases)).toEqual({ proof: true, moved: false })
    })
  })
})
