import { randomBytes } from 'node:crypto'
import type { Clock } from './clock.ts'

/** Ids are a short prefix and a UUIDv7, so they sort by time and an id can serve as a cursor. */
export type Ids = { next(prefix: string): string; uuid(): string }

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/**
 * UUIDv7 with a 12-bit counter in `rand_a`, so that ids made within one millisecond keep their order.
 * When the clock stands still or steps back, the last time is kept and the counter goes on.
 */
export function createIds(clock: Clock): Ids {
  let lastTime = 0
  let counter = 0
  // The first half changes once a millisecond.
  let writtenTime = -1
  let written = ''
  // Asking the system for a few bytes at a time costs more than everything else here.
  let pool = Buffer.alloc(0)
  let used = 0
  const random = (): number => {
    if (used === pool.length) {
      pool = randomBytes(8_192)
      used = 0
    }
    return pool[used++]!
  }

  const uuid = () => {
    const now = clock.now().getTime()
    if (now > lastTime) {
      lastTime = now
      counter = ((random() & 0x07) << 8) | random()
    } else {
      counter += 1
      if (counter > 0xfff) {
        lastTime += 1
        counter = 0
      }
    }
    if (lastTime !== writtenTime) {
      const hex = lastTime.toString(16).padStart(12, '0')
      written = `${hex.slice(0, 8)}-${hex.slice(8)}-`
      writtenTime = lastTime
    }
    let tail = `${HEX[0x80 | (random() & 0x3f)]}${HEX[random()]}-`
    for (let byte = 0; byte < 6; byte++) tail += HEX[random()]
    return `${written}${HEX[0x70 | (counter >> 8)]}${HEX[counter & 0xff]}-${tail}`
  }

  return { uuid, next: (prefix) => `${prefix}_${uuid()}` }
}
