import type { CallStore } from '@countersign/sdk'

const ENTRIES = 'entries'

/**
 * Keeps calls and signed payments in this browser until their outcome is known, so that a page which is closed in the
 * middle of a payment finds it again. Each tenant has its own, because a call belongs to whoever made it.
 */
export function browserStore(owner: string): CallStore {
  let opened: Promise<IDBDatabase> | undefined
  const open = () => {
    opened ??= openDatabase(`countersign-calls-${owner}`)
    return opened
  }
  const run = async <T>(mode: IDBTransactionMode, act: (entries: IDBObjectStore) => IDBRequest<T>): Promise<T> => {
    const transaction = (await open()).transaction(ENTRIES, mode, { durability: 'strict' })
    const request = act(transaction.objectStore(ENTRIES))
    return new Promise((resolve, reject) => {
      transaction.oncomplete = () => resolve(request.result)
      transaction.onabort = () => reject(transaction.error ?? request.error)
    })
  }
  return {
    create: (name, value) =>
      run('readwrite', (entries) => entries.add(value, name)).then(
        () => true,
        (error: unknown) => {
          if ((error as DOMException | null)?.name === 'ConstraintError') return false
          throw error
        },
      ),
    read: (name) => run('readonly', (entries) => entries.get(name)) as Promise<string | undefined>,
    names: async () => (await run('readonly', (entries) => entries.getAllKeys())).map(String),
    remove: async (name) => {
      await run('readwrite', (entries) => entries.delete(name))
    },
  }
}

const openDatabase = (name: string) =>
  new Promise<IDBDatabase>((resolve, reject) => {
    const request = indexedDB.open(name, 1)
    request.onupgradeneeded = () => request.result.createObjectStore(ENTRIES)
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
