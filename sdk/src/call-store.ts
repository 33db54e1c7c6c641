/**
 * Where the client keeps what it must not forget: each call before it is sent, each signed payment before it is sent, and
 * that the call has ended. An entry is written once and never changed, so a table with a unique key, `SET NX` or
 * IndexedDB's `add` will do.
 */
export type CallStore = {
  /** Writes an entry durably. Resolves to false, and writes nothing, when the name exists. This must be atomic. */
  create(name: string, value: string): Promise<boolean>
  read(name: string): Promise<string | undefined>
  /** The names of all entries. */
  names(): Promise<string[]>
  remove(name: string): Promise<void>
}

/** Lives as long as the process: a payment that was sent is sent again after an error, but not after a restart. */
export function memoryStore(): CallStore {
  const entries = new Map<string, string>()
  return {
    async create(name, value) {
      if (entries.has(name)) return false
      entries.set(name, value)
      return true
    },
    read: async (name) => entries.get(name),
    names: async () => [...entries.keys()],
    async remove(name) {
      entries.delete(name)
    },
  }
}
