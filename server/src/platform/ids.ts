import { randomBytes } from 'node:crypto'
import type { Clock } from './clock.ts'

/** Ids are a short prefix and a UUIDv7, so they sort by time and an id can serve as a cursor. */
export type Ids = { next(prefix: string): string; uuid(): string }

/**
 * UUIDv7 with a 12-bit counter in `rand_a`, so that ids made within one millisecond keep their order.
 * When the clock stands still or steps back, the last time is kept and the counter goes on.
 */
export function createIds(clock: Clock): Ids {
  let lastTime = 0
  let counter = 0
  // Asking the system for 16 bytes at a time costs more than everything else here.
  let pool = Buffer.alloc(0)
  let used = 0
  const random = (size: number): Buffer => {
    if (used + size > pool.length) {
      pool = randomBytes(8_192)
      used = 0
    }
    used += size
    return pool.subarray(used - size, used)
  }

  const uuid = () => {
    const now = clock.now().getTime()
    if (now > lastTime) {
      lastTime = now
      counter = random(2).readUInt16BE() & 0x7ff
    } else {
      counter += 1
      if (counter > 0xfff) {
        lastTime += 1
        counter = 0
      }
    }
    const bytes = Buffer.from(random(16))
    bytes.writeUIntBE(lastTime, 0, 6)
    bytes[6] = 0x70 | (counter >> 8)
    bytes[7] = counter & 0xff
    bytes[8] = 0x80 | (bytes[8]! & 0x3f)
    const hex = bytes.toString('hex')
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
  }

  return { uuid, next: (prefix) => `${prefix}_${uuid()}` }
}
