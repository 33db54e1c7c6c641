import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Multiplier } from './multiplier.ts'
import { inForce, multiplierAt, settleMultiplier } from './multiplier.ts'
import { deriveReference, LAST_CLOSE_LABEL, type ReferencePrint, type UnderlyingState } from './reference.ts'

const monday = new Date('2026-11-16T15:00:00Z')
const sunday = new Date('2026-11-15T15:00:00Z')
const ago = (at: Date, seconds: number) => new Date(at.getTime() - seconds * 1000)

const plain: Multiplier = { value: 1, previous: null, changedAt: null, agree: true, source: 'chain' }

function print(source: string, price: number, options: Partial<ReferencePrint> = {}, at = monday): ReferencePrint {
  const publishedAt = options.publishedAt ?? ago(at, 5)
  return {
    source,
    price,
    conf: 0,
    unit: 'share',
    publishedAt,
    changedAt: publishedAt,
    fetchedAt: ago(at, 2),
    ...options,
  }
}

const derive = (
  prints: ReferencePrint[],
  state: UnderlyingState = 'open',
  at = monday,
  multiplier: Multiplier | undefined = plain,
) => deriveReference(prints, multiplier, state, at)

describe('the reference', () => {
  test('is the median of the sources, and names them', () => {
    const { reference } = derive([print('a', 100), print('b', 100.1), print('c', 100.05, { unit: 'token' })])
    expect(reference?.price).toBe(100.05)
    expect(reference?.label).toBe('a×multiplier+b×multiplier+c')
    expect(reference?.carried).toBe(false)
    expect(reference?.spreadBps).toBeCloseTo(10, 1)
  })

  test('drops a source further than 25 basis points from the median, and says so', () => {
    const { reference, refusals } = derive([print('a', 100), print('b', 100.02), print('liar', 101)])
    expect(reference?.sources).toEqual(['a', 'b'])
    expect(reference?.price).toBeCloseTo(100.01, 10)
    expect(refusals).toEqual([{ source: 'liar', reason: 'stands apart from the median of the sources' }])
  })

  test('keeps a source that is honest about a wider error', () => {
    const { reference } = derive([print('a', 100), print('b', 100.02), print('wide', 100.4, { conf: 0.2 })])
    expect(reference?.sources).toContain('wide')
    expect(reference?.confBps).toBeCloseTo(20, 0)
  })

  test('two sources that contradict each other leave none', () => {
    expect(derive([print('a', 100), print('b', 110)]).reference).toBeUndefined()
  })

  test.each([
    ['zero', { price: 0 }, /is not a price/],
    ['negative', { price: -3 }, /is not a price/],
    ['not a number', { price: Number.NaN }, /is not a price/],
    ['infinite', { price: Number.POSITIVE_INFINITY }, /is not a price/],
    ['from the future', { publishedAt: ago(monday, -120) }, /in the future/],
    ['without a time', { publishedAt: new Date(Number.NaN) }, /does not say when/],
    ['old', { publishedAt: ago(monday, 16 * 60) }, /more than 15 minutes ago/],
    ['with a useless error', { conf: 20 }, /too wide/],
    ['not answering', { fetchedAt: ago(monday, 16 * 60) }, /has not answered/],
  ])('a print that is %s is refused with its reason', (_name, options, reason) => {
    const { reference, refusals } = derive([print('bad', 100, options)])
    expect(reference).toBeUndefined()
    expect(refusals[0]?.reason).toMatch(reason)
  })

  test('without a multiplier a share price says nothing about a token, a token feed still does', () => {
    const { reference, refusals } = deriveReference(
      [print('a', 100), print('feed', 101, { unit: 'token' })],
      undefined,
      'open',
      monday,
    )
    expect(reference?.sources).toEqual(['feed'])
    expect(refusals).toEqual([{ source: 'a', reason: 'no multiplier is known' }])
  })
})

describe('a weekend', () => {
  const friday = new Date('2026-11-13T20:59:58Z')

  test('carries the last regular close, and calls it so', () => {
    const { reference } = derive([print('pyth', 100, { publishedAt: friday }, sunday)], 'closed', sunday)
    expect(reference?.label).toBe(LAST_CLOSE_LABEL)
    expect(reference?.carried).toBe(true)
  })

  test('a close under fresh timestamps is still the close', () => {
    const restamped = print('feed', 100, { publishedAt: ago(sunday, 3), changedAt: friday }, sunday)
    expect(derive([restamped], 'closed', sunday).reference?.label).toBe(LAST_CLOSE_LABEL)
  })

  test('a print from before the last close is not it', () => {
    const thursday = print('pyth', 100, { publishedAt: new Date('2026-11-12T20:59:58Z') }, sunday)
    expect(derive([thursday], 'closed', sunday).refusals[0]?.reason).toMatch(/before the last close/)
  })

  test('on Monday a feed still at Friday is refused, by its date or by its standing still', () => {
    const dated = print('dated', 100, { publishedAt: friday })
    const restamped = print('restamped', 100, { publishedAt: ago(monday, 3), changedAt: friday })
    const { reference, refusals } = derive([dated, restamped])
    expect(reference).toBeUndefined()
    expect(refusals.map((each) => each.reason)).toEqual([
      expect.stringMatching(/more than 15 minutes ago/),
      expect.stringMatching(/frozen/),
    ])
  })

  test('just after the bell a price that has not moved yet is not frozen', () => {
    const bell = new Date('2026-11-16T14:40:00Z')
    const quiet = print('quiet', 100, { publishedAt: ago(bell, 3), changedAt: friday }, bell)
    expect(derive([quiet], 'open', bell).reference?.price).toBe(100)
  })
})

describe('shares per token', () => {
  const activation = new Date('2026-11-16T13:00:00Z')
  const announced = { source: 'api', current: 1, next: { value: 10, at: activation }, onChain: false }

  test('the new multiplier holds from its time on', () => {
    expect(inForce(announced, ago(activation, 1))).toBe(1)
    expect(inForce(announced, activation)).toBe(10)
  })

  test('a split makes no false basis: the old print goes with the old multiplier, scoring is suspended', () => {
    const at = new Date('2026-11-16T13:30:00Z')
    const multiplier = settleMultiplier([announced], null, at)
    const close = print('pyth', 1000, { publishedAt: new Date('2026-11-13T20:59:58Z') }, at)
    const before = deriveReference([close], multiplier, 'closed', at)
    expect(before.reference?.price).toBe(1000)
    expect(before.reference?.suspended).toBe(true)
    const opened = print('pyth', 100.2)
    const after = deriveReference([opened], settleMultiplier([announced], null, monday), 'open', monday)
    expect(after.reference?.price).toBeCloseTo(1002, 9)
    expect(after.reference?.suspended).toBe(false)
  })

  test('a change seen only because it differs from what was remembered counts from when it was seen', () => {
    const settled = settleMultiplier(
      [{ source: 'list', current: 1.0039, next: null, onChain: false }],
      { value: 1, previous: null, changedAt: null },
      monday,
    )
    expect(settled).toMatchObject({ value: 1.0039, previous: 1, changedAt: monday })
    expect(multiplierAt(settled!, ago(monday, 1))).toBe(1)
    expect(multiplierAt(settled!, monday)).toBe(1.0039)
  })

  test('a change that nobody dated takes no print of the time in between, for it may be of either side', () => {
    const list = { source: 'list', current: 10, next: null, onChain: false }
    const before = settleMultiplier([{ ...list, current: 1 }], null, ago(monday, 60))
    const after = settleMultiplier([list], before!, monday)!
    const between = deriveReference([print('pyth', 100, { publishedAt: ago(monday, 5) })], after, 'open', monday)
    expect(between.reference).toBeUndefined()
    expect(between.refusals).toEqual([{ source: 'pyth', reason: expect.stringMatching(/nobody said when/) }])
    const old = deriveReference([print('pyth', 1000, { publishedAt: ago(monday, 61) })], after, 'open', monday)
    expect(old.reference).toMatchObject({ price: 1000, suspended: true })
    const later = new Date(monday.getTime() + 15_000)
    const known = settleMultiplier([list], after, later)!
    const fresh = deriveReference([print('pyth', 100, { publishedAt: later, fetchedAt: later })], known, 'open', later)
    expect(fresh.reference).toMatchObject({ price: 1000, suspended: false })
  })

  test('the same multiplier written with other digits is no change', () => {
    const remembered = { value: 1.0039, previous: null, changedAt: null }
    const page = { source: 'page', current: 1.003900001, next: null, onChain: false }
    expect(settleMultiplier([page], remembered, monday)).toMatchObject({ changedAt: null, previous: null })
    expect(settleMultiplier([{ ...page, current: 1.00391 }], remembered, monday)).toMatchObject({ changedAt: monday })
  })

  test('the chain is believed before a page, and disagreement is seen', () => {
    const readings = [
      { source: 'page', current: 1, next: null, onChain: false },
      { source: 'chain', current: 1.0039, next: null, onChain: true },
    ]
    expect(settleMultiplier(readings, null, monday)).toMatchObject({ value: 1.0039, source: 'chain', agree: false })
  })

  test.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, 1e18])('a multiplier of %d is no multiplier', (current) => {
    expect(settleMultiplier([{ source: 'x', current, next: null, onChain: true }], null, monday)).toBeUndefined()
  })

  test('whatever the split, a print and its multiplier stay together', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0.01, max: 100, noNaN: true }),
        fc.double({ min: 1, max: 5000, noNaN: true }),
        fc.integer({ min: -3600, max: 800 }),
        (ratio, price, seconds) => {
          const changedAt = ago(monday, Math.max(0, seconds))
          const multiplier: Multiplier = { ...plain, value: ratio, previous: 1, changedAt }
          const publishedAt = ago(monday, 400)
          const share = publishedAt < changedAt ? price : price / ratio
          const { reference } = deriveReference([print('a', share, { publishedAt })], multiplier, 'open', monday)
          expect(reference!.price / price).toBeCloseTo(1, 9)
        },
      ),
    )
  })
})
