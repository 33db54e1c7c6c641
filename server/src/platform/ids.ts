import { randomBytes } from 'node:crypto'
import type { Clock } from './clock.ts'

/** Ids are a short prefix and a UUIDv7, so they sort by time and an id can serve as a cursor. */
export type Ids = {
  next(prefix: string): string
  uuid(): string
  /** 128 random bits in base64url. */
  salt(): string
}

const SALT_BYTES = 16

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/**
 * UUIDv7 with a 12-bit counter in `rand_a`, so that ids of one millisecond stay in order.
 * When the clock has not advanced, the last time is reused and the counter increases.
 */
export function createIds(clock: Clock): Ids {
  let lastTime = 0
  let counter = 0
  // The text of the first 48 bits changes once a millisecond.
  let timePartOf = -1
  let timePart = ''
  // Reading a few random bytes at a time from the system costs more than everything else here.
  let pool = Buffer.alloc(0)
  let poolOffset = 0
  const randomByte = (): number => {
    if (poolOffset === pool.length) {
      pool = randomBytes(8_192)
      poolOffset = 0
    }
    return pool[poolOffset++]!
  }

  const uuid = () => {
    const now = clock.now().getTime()
    if (now > lastTime) {
      lastTime = now
      counter = ((randomByte() & 0x07) << 8) | randomByte()
    } else {
      counter += 1
      if (counter > 0xfff) {
        lastTime += 1
        counter = 0
      }
    }
    if (lastTime !== timePartOf) {
      const hex = lastTime.toString(16).padStart(12, '0')
      timePart = `${hex.slice(0, 8)}-${hex.slice(8)}-`
      timePartOf = lastTime
    }
    let randomPart = `${HEX[0x80 | (randomByte() & 0x3f)]}${HEX[randomByte()]}-`
    for (let byte = 0; byte < 6; byte++) randomPart += HEX[randomByte()]
    return `${timePart}${HEX[0x70 | (counter >> 8)]}${HEX[counter & 0xff]}-${randomPart}`
  }

  const salt = () => Buffer.from(Array.from({ length: SALT_BYTES }, randomByte)).toString('base64url')

  return { uuid, salt, next: (prefix) => `${prefix}_${uuid()}` }
}

/** Every id of this prefix that was made before `at` sorts before this one, and every later one after it. */
export function firstIdAt(prefix: string, at: Date): string {
  const hex = at.getTime().toString(16).padStart(12, '0')
  return `${prefix}_${hex.slice(0, 8)}-${hex.slice(8)}`
}
