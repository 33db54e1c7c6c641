import { lastSession, marketState, nextOpen } from './calendar.ts'
import { selectObservations } from './measurement-state.ts'
import type { CoveredWrapper, SourcedObservation } from './price-source.ts'
import { filterFresh } from './staleness.ts'

export type UnderlyingState = 'open' | 'closed' | 'halted' | 'holiday'

/**
 * Precedence: halted, holiday, closed, open. The exchange's own clock can report an unscheduled closure during a
 * scheduled session.
 */
export function underlyingState(
  wrapper: CoveredWrapper,
  observations: readonly SourcedObservation[],
  at: Date,
): { state: UnderlyingState; note?: string } {
  const halts = filterFresh(selectObservations(observations, wrapper, 'halt'), at)
  if (halts.some(({ observation }) => observation.halted))
    return { state: 'halted', note: `Trading in ${wrapper.underlying} is halted.` }
  const scheduledState = marketState(at)
  if (scheduledState !== 'open')
    return {
      state: scheduledState,
      note: `The exchange is ${scheduledState === 'holiday' ? 'on holiday' : 'closed'} and opens ${nextOpen(at).toISOString()}.`,
    }
  // A clock value from before the opening does not describe this session.
  const closedClock = filterFresh(selectObservations(observations, wrapper, 'exchange_clock'), at).find(
    ({ observation }) => !observation.open && observation.publishedAt >= lastSession(at).open,
  )
  if (closedClock)
    return { state: 'closed', note: `${closedClock.source} reports the exchange closed during a scheduled session.` }
  return { state: 'open' }
}
