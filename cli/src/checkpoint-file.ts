import { createHash } from 'node:crypto'
import { join } from 'node:path'
import {
  type Check,
  type CheckpointKey,
  type CheckpointStore,
  type Jwks,
  type RememberedCheck,
  rememberCheckpoint,
} from '@countersign/proof'
import { CliError } from './cli-error.ts'
import { readIfPresent, writeDurably } from './durable-file.ts'
import { fetchJson, isObject, RefusedRequestError } from './evidence.ts'

const MAX_LOGS = 1_000

/** The largest checkpoint seen of each log, by its name. */
export type Checkpoints = Readonly<Record<string, string>>

const checkpointsPath = (folder: string) => join(folder, 'checkpoints.json')

export function readCheckpoints(folder: string): Checkpoints {
  const path = checkpointsPath(folder)
  const text = readIfPresent(path)
  if (text === undefined) return {}
  try {
    const value = JSON.parse(text)
    if (isObject(value) && Object.values(value).every((note) => typeof note === 'string')) return value as Checkpoints
  } catch {
    // Reported below.
  }
  throw new CliError(`${path} is damaged: move it away to begin again.`)
}

const fileCheckpoints = (folder: string): CheckpointStore => ({
  read: (log) => noteOf(readCheckpoints(folder), log),
  write(log, note) {
    const all = readCheckpoints(folder)
    if (!Object.hasOwn(all, log) && Object.keys(all).length >= MAX_LOGS)
      throw new CliError(`${checkpointsPath(folder)} has ${MAX_LOGS} logs: move it away to begin again.`)
    writeDurably(checkpointsPath(folder), `${JSON.stringify({ ...all, [log]: note }, null, 2)}\n`)
  },
})

const noteOf = (all: Checkpoints, log: string) => (Object.hasOwn(all, log) ? all[log] : undefined)

/** Not a name of its own: every service has it that was not given another. */
const DEFAULT_ORIGIN = 'countersign.local/log'

/** A log is remembered by its name; one that was given none, by the service that it belongs to. */
const memoryName = (origin: string, url: string | undefined): string | undefined =>
  origin === DEFAULT_ORIGIN ? url && `${url} ${origin}` : origin

/** Compares the checkpoint of a receipt with the largest one seen of its log before; evidence is written beside it. */
export async function checkMemory(
  log: { origin: string; checkpoint: string },
  options: {
    folder: string
    jwks: Jwks
    url: string | undefined
    /** What was remembered before the service was asked for its newest checkpoint; undefined for a saved one. */
    before: Checkpoints | undefined
  },
): Promise<Check[]> {
  const name = memoryName(log.origin, options.url)
  if (name === undefined) return []
  const keys: CheckpointKey[] = options.jwks.keys.filter(({ purpose }) => purpose === undefined || purpose === 'log')
  const { check, evidence } = await rememberCheckpoint(log.checkpoint, {
    store: fileCheckpoints(options.folder),
    origin: log.origin,
    name,
    keys,
    now: new Date(),
    before: options.before && noteOf(options.before, name),
    ...(options.url !== undefined && { fetchConsistency: consistencyOf(options.url) }),
  })
  return [evidence ? { ...check, reason: `${check.reason} Evidence: ${keep(options.folder, evidence)}` } : check]
}

const consistencyOf = (url: string) => async (from: number, to: number) => {
  try {
    const answer = await fetchJson(`${url.replace(/\/+$/, '')}/api/log/consistency?from=${from}&to=${to}`)
    return isObject(answer) && Array.isArray(answer.proof) ? (answer.proof as string[]) : []
  } catch (error) {
    if (error instanceof RefusedRequestError) return []
    throw error
  }
}

function keep(folder: string, evidence: NonNullable<RememberedCheck['evidence']>): string {
  const hash = createHash('sha256').update(evidence.checkpoints.join()).digest('hex').slice(0, 16)
  const path = join(folder, `evidence-${evidence.kind}-${hash}.json`)
  writeDurably(path, `${JSON.stringify(evidence, null, 2)}\n`)
  return path
}
