import { readFileSync } from 'node:fs'
import {
  type LogPolicy,
  type Note,
  noteKeyId,
  noteSignatureLine,
  parseCheckpoint,
  parseLogPolicy,
  parseVerifierKey,
  toBase64,
  verifyCosignatures,
} from '@countersign/proof'
import type { Db } from '../../platform/db.ts'
import { conflict, invalid, notConfigured } from '../../platform/problem.ts'
import { saveCosignature } from './log.store.ts'

type WitnessDeps = {
  db: Db
  origin: string
  witnesses: readonly string[]
  now: Date
  rootAt(size: number): Promise<Uint8Array>
}

/**
 * Accepts a checkpoint of this log that a witness has cosigned. It must have the root that the log had at that size;
 * another root is evidence of a fork, and the error says so.
 */
export async function acceptCosignatures(deps: WitnessDeps, newestSize: number, note: string) {
  if (deps.witnesses.length === 0) throw notConfigured('No witness is configured for this log.')
  const checkpoint = parseCheckpoint(note)
  if (!checkpoint) throw invalid('This is not a checkpoint in the signed note format.')
  if (checkpoint.origin !== deps.origin) throw invalid(`The checkpoint is of another log: '${checkpoint.origin}'.`)
  if (checkpoint.size === 0 || checkpoint.size > newestSize)
    throw invalid(`The log has no checkpoint of ${checkpoint.size} entries.`)
  const root = await deps.rootAt(checkpoint.size)
  if (toBase64(root) !== toBase64(checkpoint.root))
    throw conflict(
      'The log had another root at this size. If our signature is under this checkpoint, keep it as evidence.',
    )

  const verification = verifyCosignatures(note, { witnesses: deps.witnesses, now: deps.now })
  if (!verification.ok) throw invalid(verification.reason)
  const accepted = cosignaturesOf(checkpoint.note, deps.witnesses)
  for (const { witness, time, line } of accepted)
    await saveCosignature(deps.db, checkpoint.size, witness, line, new Date(time * 1000))
  return {
    size: checkpoint.size,
    accepted: accepted.map(({ witness, time }) => ({ witness, cosigned_at: new Date(time * 1000).toISOString() })),
  }
}

/** One signature line for each known witness; they have been verified already. */
export function cosignaturesOf(note: Note, witnesses: readonly string[]) {
  return witnesses.flatMap((verifierKey) => {
    const key = parseVerifierKey(verifierKey)
    const keyId = key && toBase64(noteKeyId(key))
    const signature =
      key && note.signatures.find((candidate) => candidate.name === key.name && toBase64(candidate.keyId) === keyId)
    if (!signature) return []
    // A cosignature is the witness's time, in eight bytes, and then its signature.
    const time = Number(Buffer.from(signature.signature).readBigUInt64BE(0))
    return [{ witness: key.name, time, line: noteSignatureLine(key, signature.signature) }]
  })
}

/** The policy of LOG_POLICY. A service that cannot read it does not start, or it would run without its witnesses. */
export function loadLogPolicy(path: string | undefined): LogPolicy | undefined {
  if (path === undefined) return undefined
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    throw new Error(`LOG_POLICY cannot be read: ${(error as Error).message}`, { cause: error })
  }
  const parsed = parseLogPolicy(text)
  if (!parsed.ok) throw new Error(`LOG_POLICY cannot be used: ${parsed.reason}`)
  return parsed.policy
}

/** Why this log cannot work with the policy, or undefined when it can. */
export function policyProblem(policy: LogPolicy, ownVerifierKeys: readonly string[]): string | undefined {
  if (policy.logs.length > 0 && !policy.logs.some(({ verifierKey }) => ownVerifierKeys.includes(verifierKey)))
    return `It lists logs, and none of them is this one: ${ownVerifierKeys[0]}`
  const names = policy.witnesses.map(({ key }) => key.name)
  const repeated = names.find((name, place) => names.indexOf(name) !== place)
  if (repeated !== undefined) return `Two of its witnesses have the key name '${repeated}'.`
  const invalid = policy.witnesses.find(({ url }) => url !== undefined && !isWebAddress(url))
  return invalid && `The address of '${invalid.name}' must be an http or https address.`
}

const isWebAddress = (url: string) => URL.canParse(url) && ['http:', 'https:'].includes(new URL(url).protocol)
