import { type CheckpointStore, type Jwks, type RememberedCheck, rememberCheckpoint } from '@countersign/proof'
import { CountersignError, type Receipt } from '@countersign/sdk'
import { api } from '../api.ts'
import { openStorage } from '../session.ts'

const STORAGE_KEY = 'countersign.checkpoints'

/** The largest checkpoint that this browser has seen of each log, by its name. */
export type Checkpoints = Readonly<Record<string, string>>

export type LogMemory = RememberedCheck & { origin: string }

/** Contents that are no such list count as none: whoever can write here can clear it too. */
export function readCheckpoints(): Checkpoints {
  try {
    const value = JSON.parse(openStorage()?.getItem(STORAGE_KEY) ?? '{}')
    const entries = Object.entries(value as object).filter(([, note]) => typeof note === 'string')
    return Object.fromEntries(entries) as Checkpoints
  } catch {
    return {}
  }
}

const storeAll = (all: Checkpoints) => openStorage()?.setItem(STORAGE_KEY, JSON.stringify(all))

export function forgetCheckpoint(origin: string) {
  const { [origin]: _, ...others } = readCheckpoints()
  storeAll(others)
}

const store: CheckpointStore = {
  read: (log) => readCheckpoints()[log],
  write: (log, note) => void storeAll({ ...readCheckpoints(), [log]: note }),
}

/** Compares the checkpoint of a receipt with what this browser has seen of its log before, and remembers it. */
export async function checkLogMemory(
  receipt: Receipt,
  before: Checkpoints,
  jwks: Jwks,
  now: Date,
): Promise<LogMemory | null> {
  const { log } = receipt
  if (!log) return null
  const { origin, checkpoint } = log
  const keys = jwks.keys.filter(({ purpose }) => purpose === undefined || purpose === 'log')
  const options = { store, origin, keys, now, before: before[origin], fetchConsistency }
  return { ...(await rememberCheckpoint(checkpoint, options)), origin }
}

/** Empty when the service refuses: it cannot show that its log only grew. */
async function fetchConsistency(from: number, to: number): Promise<readonly string[]> {
  try {
    return (await api.get('/api/log/consistency', { query: { from, to } })).proof
  } catch (error) {
    const isRefused = error instanceof CountersignError && error.status >= 400 && error.status < 500
    if (isRefused && error.status !== 429) return []
    throw error
  }
}
