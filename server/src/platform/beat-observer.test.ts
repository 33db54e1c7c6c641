import { describe, expect, test } from 'vitest'
import { createBeatObserver } from './beat-observer.ts'

const GRACE = 1_000
const STEP = 100

/** Looks every `STEP` ms at the rows that `beats` returns for the time, and stops after the last look before `until`. */
function observe(beats: (at: number) => Record<string, number>, options: { ended?: string[] } = {}) {
  const observer = createBeatObserver({ graceMs: GRACE, hasEnded: ({ id }) => options.ended?.includes(id) ?? false })
  let connection = 1
  let now = 0
  const look = (at: number) => {
    now = at
    const rows = Object.entries(beats(at)).map(([id, beat]) => ({ id, beat: BigInt(beat) }))
    observer.look({ rows, connection, sentAt: at, receivedAt: at + 1 })
  }
  return {
    until: (end: number) => {
      for (let at = now + STEP; at <= end; at += STEP) look(at)
    },
    look,
    reconnect: () => {
      connection += 1
    },
    interrupt: observer.interrupt,
    stateOf: (id: string) => observer.stateOf(id, now + 2),
    isSeenAlive: observer.isSeenAlive,
    deadRows: () => observer.deadRows().map(({ id }) => id),
  }
}

test('a process is dead when its beat stood still over the whole grace, and not a look earlier', () => {
  const world = observe(() => ({ other: 7 }))
  world.until(STEP + GRACE)
  expect(world.stateOf('other')).toBe('possibly alive')
  world.until(STEP + GRACE + STEP)
  expect(world.stateOf('other')).toBe('dead')
  expect(world.deadRows()).toEqual(['other'])
})

test('a beat that changes once within each grace keeps its process alive, whether it grows or falls', () => {
  const world = observe((at) => ({ other: -Math.floor(at / 900) }))
  world.until(10 * GRACE)
  expect(world.stateOf('other')).toBe('possibly alive')
  expect(world.isSeenAlive('other')).toBe(true)
})

test('a dead process that beats again is alive', () => {
  const world = observe((at) => ({ other: at < 5_000 ? 1 : 2 }))
  world.until(4_900)
  expect(world.stateOf('other')).toBe('dead')
  world.until(5_000)
  expect(world.stateOf('other')).toBe('possibly alive')
})

describe('the observation starts again', () => {
  const afterwards = (interrupt: (world: ReturnType<typeof observe>) => void) => {
    const world = observe(() => ({ other: 7 }))
    world.until(GRACE)
    interrupt(world)
    return world
  }

  test('after a reconnect of the observer: nobody is dead because the database was away', () => {
    const world = afterwards(({ reconnect }) => reconnect())
    world.until(2 * GRACE)
    expect(world.stateOf('other')).toBe('possibly alive')
    world.until(2 * GRACE + 3 * STEP)
    expect(world.stateOf('other')).toBe('dead')
  })

  test('after a look that failed', () => {
    const world = afterwards(({ interrupt }) => interrupt())
    expect(world.stateOf('other')).toBe('possibly alive')
    world.until(2 * GRACE)
    expect(world.stateOf('other')).toBe('possibly alive')
  })

  test('after a silence of half a grace: a machine that was suspended, or a database that did not answer', () => {
    const world = afterwards(({ look }) => look(100 * GRACE))
    expect(world.stateOf('other')).toBe('possibly alive')
    world.until(101 * GRACE)
    expect(world.stateOf('other')).toBe('possibly alive')
  })
})

test('the time that a look itself takes does not count', () => {
  const observer = createBeatObserver({ graceMs: GRACE, hasEnded: () => false })
  const rows = [{ id: 'other', beat: 1n }]
  for (let at = 0; at < GRACE; at += 400) observer.look({ rows, connection: 1, sentAt: at, receivedAt: at + 390 })
  // Sent 810 ms after the first answer, answered 1,200 ms after it.
  observer.look({ rows, connection: 1, sentAt: 1_200, receivedAt: 1_590 })
  expect(observer.stateOf('other', 1_600)).toBe('possibly alive')
})

test('a row that vanishes under observation is of a process that left: it is dead at once', () => {
  const world = observe((at): Record<string, number> => (at <= 300 ? { other: at } : {}))
  world.until(300)
  expect(world.stateOf('other')).toBe('possibly alive')
  world.until(400)
  expect(world.stateOf('other')).toBe('dead')
})

test('a row that is missing after a reconnect was perhaps lost with a failover: it is absent only after the grace', () => {
  const world = observe((at): Record<string, number> => (at <= 300 ? { other: at } : {}))
  world.until(300)
  world.reconnect()
  world.until(400)
  expect(world.stateOf('other')).toBe('possibly alive')
  world.until(GRACE + 400)
  expect(world.stateOf('other')).toBe('possibly alive')
  world.until(GRACE + 600)
  expect(world.stateOf('other')).toBe('absent')
})

test('a process of this machine that the operating system no longer has is dead at once', () => {
  const world = observe(() => ({ other: 1, third: 1 }), { ended: ['other'] })
  world.until(STEP)
  expect([world.stateOf('other'), world.stateOf('third')]).toEqual(['dead', 'possibly alive'])
})

test('without any look nobody is dead', () => {
  const world = observe(() => ({}))
  expect([world.stateOf('other'), world.isSeenAlive('other'), world.deadRows()]).toEqual(['possibly alive', false, []])
})
