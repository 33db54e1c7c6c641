import {
  formatAddCheckpoint,
  type LogPolicy,
  parseCheckpoint,
  parseTreeSize,
  TLOG_SIZE_TYPE,
  verifyCosignatures,
} from '@countersign/proof'
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import type { Log } from '../../platform/log.ts'
import { saveCosignature } from './log.store.ts'
import { endTurn, recordAnswer, recordFailure, takeTurn, type WitnessToAsk, witnessesDue } from './log-quorum.store.ts'
import type { TransparencyLog } from './transparency-log.ts'
import { cosignaturesOf } from './witness.ts'

/** Posts `add-checkpoint` to a witness. Throws when it does not answer in time or answers too much. */
export type SendToWitness = (url: string, body: string) => Promise<{ status: number; type: string; body: string }>

export type SubmitCheckpointsDeps = {
  db: Db
  clock: Clock
  log: Pick<Log, 'warn' | 'error'>
  /** Unique for each process. */
  instance: string
  policy: LogPolicy
  transparencyLog: Pick<TransparencyLog, 'checkpointAt' | 'consistencyProof' | 'size' | 'publishIfQuorum'>
  send: SendToWitness
}

/** Longer than two requests to a witness take at most. */
const TURN_MS = 60_000
const FIRST_BACKOFF_MS = 5_000
const MAX_BACKOFF_MS = 600_000
/** A cosignature is asked for now, so an older one was not made for this request. */
const MAX_COSIGNATURE_AGE_SECONDS = 300
const MAX_PROBLEM_LENGTH = 300

/** A witness answered, and not with a cosignature. `size` is the tree it says it has. */
class WitnessRefusal extends Error {
  readonly size: number | undefined
  constructor(message: string, size?: number) {
    super(message)
    this.size = size
  }
}

type Witness = LogPolicy['witnesses'][number]

/**
 * Sends the newest checkpoint to the witnesses of the policy (C2SP tlog-witness) and stores their cosignatures. Nothing
 * waits for it: runs and receipts go on whether witnesses answer or not.
 */
export function createCheckpointSubmission(deps: SubmitCheckpointsDeps) {
  const { db, clock, log, policy, transparencyLog } = deps
  const witnesses = policy.witnesses.filter(({ url }) => url !== undefined)
  const byKeyName = new Map(witnesses.map((witness) => [witness.key.name, witness]))
  const names = [...byKeyName.keys()]

  const ask = async ({ witness: name, size: knownSize, failures }: WitnessToAsk, size: number) => {
    const witness = byKeyName.get(name)!
    try {
      const { line, time } = await requestCosignature(deps, witness, { size, knownSize })
      await saveCosignature(db, size, name, line, new Date(time * 1000))
      await recordAnswer(db, name, size, clock.now())
      await transparencyLog.publishIfQuorum(size)
    } catch (error) {
      const problem = (error as Error).message.slice(0, MAX_PROBLEM_LENGTH)
      const backoffMs = Math.min(FIRST_BACKOFF_MS * 2 ** Math.min(failures, 20), MAX_BACKOFF_MS)
      log.warn({ witness: name, problem }, 'a witness did not cosign the checkpoint')
      await recordFailure(db, {
        witness: name,
        size: (error instanceof WitnessRefusal ? error.size : undefined) ?? knownSize,
        problem,
        nextAttemptAt: new Date(clock.now().getTime() + backoffMs),
      })
    }
  }

  return {
    due: witnessesDue(names),

    /** One turn: the same checkpoint to every witness that may be asked. Ends when all have answered or run out of time. */
    async sweep() {
      const holder = deps.instance
      const turn = await takeTurn(db, { holder, witnesses: names, now: clock.now(), leaseMs: TURN_MS })
      if (!turn) return
      try {
        await Promise.all(turn.ask.map((witness) => ask(witness, turn.size)))
      } finally {
        await endTurn(db, holder)
      }
    },
  }
}

export type CheckpointSubmission = ReturnType<typeof createCheckpointSubmission>

/** The witness's cosignature; after a 409 the request is repeated once with the proof from the size that it names. */
async function requestCosignature(
  deps: SubmitCheckpointsDeps,
  witness: Witness,
  { size, knownSize }: { size: number; knownSize: number },
): Promise<{ line: string; time: number }> {
  const checkpoint = await deps.transparencyLog.checkpointAt(size)
  const request = async (oldSize: number) => {
    const proof = await deps.transparencyLog.consistencyProof(oldSize, size)
    return deps.send(witness.url!, formatAddCheckpoint({ oldSize, proof, checkpoint }))
  }
  let oldSize = Math.min(knownSize, size)
  let answer = await request(oldSize)
  if (answer.status === 409) {
    oldSize = await readConflict(deps, answer, size)
    answer = await request(oldSize)
  }
  if (answer.status !== 200)
    throw new WitnessRefusal(`It answered ${answer.status} to the tree of ${size} after that of ${oldSize}.`, oldSize)
  return readCosignature(checkpoint, answer.body, witness, deps.clock.now())
}

async function readConflict(
  { transparencyLog, log }: SubmitCheckpointsDeps,
  { type, body }: { type: string; body: string },
  size: number,
): Promise<number> {
  const isSize = type.split(';', 1)[0]!.trim().toLowerCase() === TLOG_SIZE_TYPE && body.endsWith('\n')
  const witnessSize = isSize ? parseTreeSize(body.slice(0, -1)) : undefined
  if (witnessSize === undefined) throw new WitnessRefusal('It answered 409 without the size that it has.')
  const newestSize = await transparencyLog.size()
  if (witnessSize > newestSize) {
    log.error(
      { witnessSize, newestSize },
      'a witness knows a larger tree: this log was rolled back, or the witness is wrong',
    )
    throw new WitnessRefusal(`It says that it cosigned ${witnessSize} entries, and this log has ${newestSize}.`)
  }
  if (witnessSize > size) throw new WitnessRefusal(`It has cosigned ${witnessSize} entries already.`, witnessSize)
  return witnessSize
}

/** The line of this witness's key alone; lines of other keys are ignored, and a false one in its name fails. */
function readCosignature(checkpoint: string, lines: string, witness: Witness, now: Date) {
  const note = checkpoint + lines
  const verification = verifyCosignatures(note, { witnesses: [witness.verifierKey], now })
  const parsed = parseCheckpoint(note)
  if (!verification.ok || !parsed) throw new WitnessRefusal(`Its cosignature does not count: ${verification.reason}`)
  const newest = cosignaturesOf(parsed.note, [witness.verifierKey])[0]!
  const ageSeconds = Math.floor(now.getTime() / 1000) - newest.time
  if (ageSeconds > MAX_COSIGNATURE_AGE_SECONDS)
    throw new WitnessRefusal(`Its cosignature is dated ${ageSeconds} seconds ago.`)
  return newest
}
