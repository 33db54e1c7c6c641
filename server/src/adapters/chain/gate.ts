/**
 * Many readers or one writer, and a waiting writer goes before new readers. On the embedded chain it keeps a reader from
 * seeing a transaction that has been mined but is not in the journal yet: a crash would take that sight back.
 */
export type Gate = {
  read<Result>(work: () => Promise<Result>): Promise<Result>
  write<Result>(work: () => Promise<Result>): Promise<Result>
}

export function createGate(): Gate {
  let readers = 0
  let writing = false
  const waitingWriters: (() => void)[] = []
  let waitingReaders: (() => void)[] = []

  const wake = () => {
    if (writing || readers > 0) return
    const writer = waitingWriters.shift()
    if (writer) {
      writing = true
      writer()
      return
    }
    const woken = waitingReaders
    waitingReaders = []
    readers += woken.length
    for (const reader of woken) reader()
  }

  return {
    async read(work) {
      if (writing || waitingWriters.length > 0) await new Promise<void>((resolve) => waitingReaders.push(resolve))
      else readers += 1
      try {
        return await work()
      } finally {
        readers -= 1
        wake()
      }
    },
    async write(work) {
      if (writing || readers > 0) await new Promise<void>((resolve) => waitingWriters.push(resolve))
      else writing = true
      try {
        return await work()
      } finally {
        writing = false
        // Readers that queued behind this writer go next, or steady writing would starve them.
        const woken = waitingReaders
        waitingReaders = []
        readers += woken.length
        for (const reader of woken) reader()
        wake()
      }
    },
  }
}
