/** A process as its row shows it. */
export type Beat = { id: string; beat: bigint }

/** One look at all rows, on the connection with this number. It shows a moment between `sentAt` and `receivedAt`. */
export type Look<Row extends Beat> = { rows: readonly Row[]; connection: number; sentAt: number; receivedAt: number }

type Observed<Row> = { row: Row; since: number; hasChanged: boolean }
type Absence = { since: number; hasLeft: boolean; askedAt: number }

/** How long an absent process that nobody asks about is remembered, in graces. */
const ABSENT_GRACES = 20

/**
 * What one process knows of the others by their beats: the rule by which one is dead, without a database or a clock. Times
 * are milliseconds of this process's monotonic clock.
 */
export function createBeatObserver<Row extends Beat>({
  graceMs,
  hasEnded,
}: {
  graceMs: number
  /** Whether it is certain without its beat that a process has ended. */
  hasEnded(row: Row): boolean
}) {
  let last: Look<Row> | undefined
  let observed = new Map<string, Observed<Row>>()
  let absences = new Map<string, Absence>()

  /** An observer that did not look for half of the grace may have been silent together with those it observes. */
  const isContinued = (next: Look<Row>) =>
    last !== undefined && last.connection === next.connection && next.receivedAt - last.receivedAt <= graceMs / 2

  const interrupt = () => {
    last = undefined
    observed = new Map()
    absences = new Map()
  }

  const isDead = ({ row, since }: Observed<Row>) => last!.sentAt - since >= graceMs || hasEnded(row)

  return {
    /** Nothing that was seen so far counts any more. */
    interrupt,

    look(next: Look<Row>) {
      if (!isContinued(next)) interrupt()
      const before = observed
      observed = new Map()
      for (const row of next.rows) {
        const earlier = before.get(row.id)
        const isSame = earlier?.row.beat === row.beat
        const since = isSame ? earlier!.since : next.receivedAt
        observed.set(row.id, { row, since, hasChanged: earlier !== undefined && (earlier.hasChanged || !isSame) })
      }
      for (const [id, { askedAt }] of absences)
        if (observed.has(id) || next.receivedAt - askedAt > ABSENT_GRACES * graceMs) absences.delete(id)
      for (const id of before.keys())
        if (!observed.has(id)) absences.set(id, { since: next.sentAt, hasLeft: true, askedAt: next.receivedAt })
      last = next
    },

    /**
     * `dead`: its beat stood still over the grace, it has ended for certain, or its row vanished under observation.
     * `absent`: it has had no row over the whole grace, counted from the first time that somebody asked.
     */
    stateOf(id: string, now: number): 'dead' | 'absent' | 'possibly alive' {
      if (!last) return 'possibly alive'
      const beatRecord = observed.get(id)
      if (beatRecord) return isDead(beatRecord) ? 'dead' : 'possibly alive'
      const absence = absences.get(id) ?? { since: now, hasLeft: false, askedAt: now }
      absences.set(id, { ...absence, askedAt: now })
      if (absence.hasLeft) return 'dead'
      return last.sentAt - absence.since >= graceMs ? 'absent' : 'possibly alive'
    },

    /** Whether its beat has changed under observation. */
    isSeenAlive(id: string): boolean {
      const beatRecord = observed.get(id)
      return beatRecord ? beatRecord.hasChanged && !isDead(beatRecord) : false
    },

    deadRows: (): Row[] => [...observed.values()].filter(isDead).map(({ row }) => row),
  }
}
