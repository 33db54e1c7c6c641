import { outsideTenantReads } from './tenant-reads.ts'

const MAX_KEYS = 256

type Waiting<Key, Value> = {
  key: Key
  resolve: (value: Value | undefined) => void
  reject: (error: unknown) => void
}

/**
 * Reads rows for many callers in one query: keys that arrive while a query is under way are read together by the next.
 * Every read begins after it was requested, so a caller sees all that was committed before its call.
 */
export function groupReads<Key, Value>(
  readMany: (keys: readonly Key[]) => Promise<readonly (Value | undefined)[]>,
  { maxKeys = MAX_KEYS, maxInFlight = 1 } = {},
): (key: Key) => Promise<Value | undefined> {
  const waiting: Waiting<Key, Value>[] = []
  let inFlight = 0

  const drain = async () => {
    while (waiting.length > 0) {
      const group = waiting.splice(0, maxKeys)
      try {
        const values = await readMany(group.map((item) => item.key))
        for (const [index, item] of group.entries()) item.resolve(values[index])
      } catch (error) {
        for (const item of group) item.reject(error)
      }
    }
    inFlight -= 1
  }

  return (key) =>
    new Promise((resolve, reject) => {
      waiting.push({ key, resolve, reject })
      if (inFlight >= maxInFlight) return
      inFlight += 1
      // After the requests that have already arrived in this turn of the event loop.
      setImmediate(() => outsideTenantReads(() => void drain()))
    })
}
