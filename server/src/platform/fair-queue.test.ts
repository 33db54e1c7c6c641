import { AsyncLocalStorage } from 'node:async_hooks'
import { expect, test, vi } from 'vitest'
import { createFairQueue } from './fair-queue.ts'
import type { Problem } from './problem.ts'

/** Work that ends when the test says so, in the order in which it began. */
function createWork() {
  const started: { name: string; end: () => void }[] = []
  const work = (name: string) => () =>
    new Promise<string>((resolve) => started.push({ name, end: () => resolve(name) }))
  const names = () => started.map(({ name }) => name)
  return { started, work, names }
}

const settle = () => new Promise((resume) => setImmediate(resume))

test('one owner alone gets half of the slots, and a slot is left for the next owner', async () => {
  const queue = createFairQueue({ slots: 8 })
  const { work, names } = createWork()
  for (let index = 0; index < 20; index += 1) void queue.run('flood', work('flood'))
  await settle()
  expect(queue.load('flood')).toEqual({ underWay: 4, waiting: 16 })
  void queue.run('quiet', work('quiet'))
  await settle()
  expect(names().at(-1)).toBe('quiet')
})

test('what an owner began alone takes no slots of those who come later, and they fill no more than the slots', async () => {
  const queue = createFairQueue({ slots: 6, maxBesideOthers: 2, maxAlone: 20 })
  const { started, work, names } = createWork()
  for (let index = 0; index < 30; index += 1) void queue.run('flood', work('flood'))
  await settle()
  expect(queue.load('flood')).toEqual({ underWay: 20, waiting: 10 })
  for (let index = 0; index < 9; index += 1) void queue.run(`quiet ${index}`, work(`quiet ${index}`))
  await settle()
  // Two of the six slots are the flood's.
  expect(names().slice(20)).toEqual(['quiet 0', 'quiet 1', 'quiet 2', 'quiet 3'])
  for (const { end } of started.slice(0, 18)) end()
  await settle()
  expect(names()).toHaveLength(24)
  expect(queue.load('flood')).toEqual({ underWay: 2, waiting: 10 })
  started[18]!.end()
  started[20]!.end()
  await settle()
  expect(names()).toHaveLength(26)
})

test('an owner may have more of the slots alone, and the others are left for whoever comes next', async () => {
  const queue = createFairQueue({ slots: 10, maxBesideOthers: 2, maxAlone: 8 })
  const { started, work, names } = createWork()
  for (let index = 0; index < 20; index += 1) void queue.run('flood', work('flood'))
  await settle()
  expect(queue.load('flood')).toEqual({ underWay: 8, waiting: 12 })
  void queue.run('quiet', work('quiet'))
  await settle()
  expect(names().at(-1)).toBe('quiet')
  // Beside others it waits until it has fewer under way than it may have now.
  for (const { end } of started.slice(0, 6)) end()
  await settle()
  expect(queue.load('flood')).toEqual({ underWay: 2, waiting: 12 })
  started[6]!.end()
  await settle()
  expect(queue.load('flood')).toEqual({ underWay: 2, waiting: 11 })
})

test('while others are about an owner gets no more than its share, and alone again it gets half', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  try {
    const queue = createFairQueue({ slots: 20, maxBesideOthers: 3 })
    const { started, work } = createWork()
    void queue.run('quiet', work('quiet'))
    for (let index = 0; index < 30; index += 1) void queue.run('flood', work('flood'))
    await settle()
    expect(queue.load('flood')).toEqual({ underWay: 3, waiting: 27 })
    vi.advanceTimersByTime(6_000)
    started[1]!.end()
    await settle()
    expect(queue.load('flood').underWay).toBe(10)
    void queue.run('quiet', work('quiet'))
    started[2]!.end()
    await settle()
    expect(queue.load('flood').underWay).toBe(9)
  } finally {
    vi.useRealTimers()
  }
})

test('owners that wait take turns, whatever each has waiting', async () => {
  const queue = createFairQueue({ slots: 2 })
  const { started, work, names } = createWork()
  for (const owner of ['a', 'a', 'a', 'a', 'a', 'b', 'c', 'b', 'c']) void queue.run(owner, work(owner))
  for (let index = 0; index < 9; index += 1) {
    await settle()
    started[index]!.end()
  }
  await settle()
  // The first of `a` and of `b` find a free slot; from then on they take turns.
  expect(names().slice(0, 7).join('')).toBe('abacbac')
  expect(names().sort().join('')).toBe('aaaaabbcc')
})

test('the 1,025th that waits is refused with 503 and Retry-After, and another owner is served', async () => {
  const queue = createFairQueue({ slots: 4 })
  const { work, names } = createWork()
  const flood = Array.from({ length: 2 + 1_024 }, () => queue.run('flood', work('flood')))
  await settle()
  expect(queue.load('flood')).toEqual({ underWay: 2, waiting: 1_024 })
  const refusal = (await queue.run('flood', work('refused')).catch((error) => error)) as Problem
  expect(refusal.options).toMatchObject({ status: 503, code: 'unavailable', retryable: true, retryAfterSeconds: 1 })
  expect(names()).not.toContain('refused')
  void queue.run('quiet', work('quiet'))
  await settle()
  expect(names().at(-1)).toBe('quiet')
  expect(flood).toHaveLength(1_026)
})

test('when too many wait in all, the owner with the most loses its newest, not the one that came last', async () => {
  const queue = createFairQueue({ slots: 2, maxWaitingOfAll: 10 })
  const { work } = createWork()
  const flood = Array.from({ length: 11 }, () => queue.run('flood', work('flood')).catch(() => 'refused'))
  void queue.run('other', work('other'))
  const quiet = queue.run('quiet', work('quiet'))
  await settle()
  expect(queue.load('quiet')).toEqual({ underWay: 0, waiting: 1 })
  expect(await flood.at(-1)).toBe('refused')
  expect(queue.load('flood')).toEqual({ underWay: 1, waiting: 9 })
  expect(quiet).toBeInstanceOf(Promise)
})

test('work that fails frees its slot', async () => {
  const queue = createFairQueue({ slots: 1 })
  const failing = queue.run('a', async () => {
    throw new Error('failed')
  })
  const next = queue.run('b', async () => 'done')
  await expect(failing).rejects.toThrow('failed')
  expect(await next).toBe('done')
  expect(queue.load('a')).toEqual({ underWay: 0, waiting: 0 })
})

test('work that waited runs in the context of its own caller, not of the one that freed the slot', async () => {
  const context = new AsyncLocalStorage<string>()
  const queue = createFairQueue({ slots: 2 })
  const contexts: (string | undefined)[] = []
  const started = Promise.withResolvers<void>()
  const first = context.run('first', () => queue.run('a', () => started.promise))
  const others = ['second', 'third'].map((name) =>
    context.run(name, () =>
      queue.run('a', async () => {
        contexts.push(context.getStore())
      }),
    ),
  )
  started.resolve()
  await Promise.all([first, ...others])
  expect(contexts).toEqual(['second', 'third'])
})
