/** What was read of a text, by kind of reading, while one output is verified: many checks ask for the same. */
let readings: Map<string, Map<string, unknown>> | undefined

/** Remembers readings while `work` runs, which is synchronous, and forgets them after it. */
export function withTextCache<Result>(work: () => Result): Result {
  readings = new Map()
  try {
    return work()
  } finally {
    readings = undefined
  }
}

/** A reading of a text, computed once for each text. The caller may not change what it gets. */
export function cached<Reading>(kind: string, text: string, read: (text: string) => Reading): Reading {
  if (!readings) return read(text)
  let ofKind = readings.get(kind)
  if (!ofKind) {
    ofKind = new Map()
    readings.set(kind, ofKind)
  }
  const earlierReading = ofKind.get(text)
  if (earlierReading !== undefined) return earlierReading as Reading
  const reading = read(text)
  ofKind.set(text, reading)
  return reading
}
