/**
 * Many readers or one writer; a waiting writer goes before new readers. The embedded chain uses it so that no reader sees
 * a transaction that is mined but not yet in the journal, since a crash would undo it.
 */
export type ReadWriteLock = {
  read<Result>(work: () => Promise<Result>): Promise<Result>
  write<Result>(work: () => Promise<Result>): Promise<Result>
}

export function createReadWriteLock(): ReadWriteLock {
  let readers = 0
  let writing = false
  const waitingWriters: (() => void)[] = []
  let waitingReaders: (() => void)[] = []

  const wakeNext = () => {
    if (writing || readers > 0) return
    const writer = waitingWriters.shift()
    if (writer) {
      writing = true
      writer()
      return
    }
    const wokenReaders = waitingReaders
    waitingReaders = []
    readers += wokenReaders.length
    for (const reader of wokenReaders) reader()
  }

  return {
    async read(work) {
      if (writing || waitingWriters.length > 0) await new Promise<void>((resolve) => waitingReaders.push(resolve))
      else readers += 1
      try {
        return await work()
      } finally {
        readers -= 1
        wakeNext()
      }
    },
    async write(work) {
      if (writing || readers > 0) await new Promise<void>((resolve) => waitingWriters.push(resolve))
      else writing = true
      try {
        return await work()
      } finally {
        writing = false
        // Readers that queued behind this writer go next; otherwise continuous writing would starve them.
        const wokenReaders = waitingReaders
        waitingReaders = []
        readers += wokenReaders.length
        for (const reader of wokenReaders) reader()
        wakeNext()
      }
    },
  }
}
