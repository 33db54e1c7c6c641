import { createFairQueue } from '../../platform/fair-queue.ts'
import type { Lane } from './lane.ts'

/** Tasks of a lane that works on this machine take turns by owner, so that a flood of one does not delay the others' work. */
export function withTurns(lane: Lane, slots: number): Lane {
  const queue = createFairQueue({ slots })
  return { ...lane, execute: (task) => queue.run(task.owner ?? '', () => lane.execute(task)) }
}
