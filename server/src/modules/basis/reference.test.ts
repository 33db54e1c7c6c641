import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Multiplier } from './multiplier.ts'
import { effectiveMultiplier, multiplierAt, resolveMultiplier } from './multiplier.ts'
import { deriveReference, LAST_CLOSE_LABEL, type ReferencePrint } from './reference.ts'
import type { UnderlyingState } from './underlying-state.ts'

const monday = new Date('2026-11-16T15:00:00Z')
const sunday = new Date('2026-11-15T15:00:00Z')
const ago = (at: Date, seconds: number) => new Date(at.getTime() - seconds * 1000)

const multiplierOfOne: Multiplier = { value: 1, previous: null, changedAt: null, sourcesAgree: true, source: 'chain' }

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
  multiplier: Multiplier | undefined = multiplierOfOne,
) => deriveReference(prints, multiplier, state, at)

describe('the reference', () => {
  test('is the median of the sources, and names them', () => {
    const { reference } = derive([print('a', 100), print('b', 100.1), print('c', 100.05, { unit: 'token' })])
    expect(reference?.price).toBe(100.05)
    expect(reference?.label).toBe('a×multiplier+b×multiplier+c')
    expect(reference?.carried).toBe(false)
    expect(reference?.spreadBps).toBeCloseTo(10, 1)
  })

  test('rejects a source further than 25 basis points from the median', () => {
    const { reference, rejections } = derive([print('a', 100), print('b', 100.02), print('outlier', 101)])
    expect(reference?.sources).toEqual(['a', 'b'])
    expect(reference?.price).toBeCloseTo(100.01, 10)
    expect(rejections).toEqual([{ source: 'outlier', reason: 'it is too far from the median of the sources' }])
  })

  test('uses a distant source whose own error covers the distance', () => {
    const { reference } = derive([print('a', 100), print('b', 100.02), print('wide', 100.4, { conf: 0.2 })])
    expect(reference?.sources).toContain('wide')
    expect(reference?.confBps).toBeCloseTo(20, 0)
  })

  test('is undefined when two sources contradict each other', () => {
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
    ['with too wide an error', { conf: 20 }, /too wide/],
    ['from a source that stopped answering', { fetchedAt: ago(monday, 16 * 60) }, /has not answered/],
  ])('a print that is %s is rejected with its reason', (_name, options, reason) => {
    const { reference, rejections } = derive([print('a', 100, options)])
    expect(reference).toBeUndefined()
    expect(rejections[0]?.reason).toMatch(reason)
  })

  test('without a multiplier a share price is not used, a token price is', () => {
    const { reference, rejections } = deriveReference(
      [print('a', 100), print('feed', 101, { unit: 'token' })],
      undefined,
      'open',
      monday,
    )
    expect(reference?.sources).toEqual(['feed'])
    expect(rejections).toEqual([{ source: 'a', reason: 'no multiplier is known' }])
  })
})

describe('a weekend', () => {
  const friday = new Date('2026-11-13T20:59:58Z')

  test('carries the last regular close, and labels it', () => {
    const { reference } = derive([print('pyth', 100, { publishedAt: friday }, sunday)], 'closed', sunday)
    expect(reference?.label).toBe(LAST_CLOSE_LABEL)
    expect(reference?.carried).toBe(true)
  })

  test('an unchanged close under new timestamps is still the last close', () => {
    const restampedPrint = print('feed', 100, { publishedAt: ago(sunday, 3), changedAt: friday }, sunday)
    expect(derive([restampedPrint], 'closed', sunday).reference?.label).toBe(LAST_CLOSE_LABEL)
  })

  test('a print from before the last close is rejected', () => {
    const thursdayPrint = print('pyth', 100, { publishedAt: new Date('2026-11-12T20:59:58Z') }, sunday)
    expect(derive([thursdayPrint], 'closed', sunday).rejections[0]?.reason).toMatch(/before the last close/)
  })

  test('on Monday a feed with Friday’s price is rejected, by its date or as frozen', () => {
    const datedPrint = print('dated', 100, { publishedAt: friday })
    const restampedPrint = print('restamped', 100, { publishedAt: ago(monday, 3), changedAt: friday })
    const { reference, rejections } = derive([datedPrint, restampedPrint])
    expect(reference).toBeUndefined()
    expect(rejections.map((rejection) => rejection.reason)).toEqual([
      expect.stringMatching(/more than 15 minutes ago/),
      expect.stringMatching(/frozen/),
    ])
  })

  test('shortly after the opening an unchanged price is not frozen', () => {
    const afterBell = new Date('2026-11-16T14:40:00Z')
    const unchangedPrint = print('quiet', 100, { publishedAt: ago(afterBell, 3), changedAt: friday }, afterBell)
    expect(derive([unchangedPrint], 'open', afterBell).reference?.price).toBe(100)
  })
})

describe('shares per token', () => {
  const activation = new Date('2026-11-16T13:00:00Z')
  const announced = { source: 'api', current: 1, next: { value: 10, at: activation }, onChain: false }

  test('an announced multiplier is effective from its activation time', () => {
    expect(effectiveMultiplier(announced, ago(activation, 1))).toBe(1)
    expect(effectiveMultiplier(announced, activation)).toBe(10)
  })

  test('after a split an old print is valued with the old multiplier, and scoring is suspended', () => {
    const at = new Date('2026-11-16T13:30:00Z')
    const multiplier = resolveMultiplier([announced], null, at)
    const close = print('pyth', 1000, { publishedAt: new Date('2026-11-13T20:59:58Z') }, at)
    const beforeOpen = deriveReference([close], multiplier, 'closed', at)
    expect(beforeOpen.reference?.price).toBe(1000)
    expect(beforeOpen.reference?.suspended).toBe(true)
    const newPrint = print('pyth', 100.2)
    const afterOpen = deriveReference([newPrint], resolveMultiplier([announced], null, monday), 'open', monday)
    expect(afterOpen.reference?.price).toBeCloseTo(1002, 9)
    expect(afterOpen.reference?.suspended).toBe(false)
  })

  test('a difference to the stored multiplier counts as a change at the time it is observed', () => {
    const resolved = resolveMultiplier(
      [{ source: 'list', current: 1.0039, next: null, onChain: false }],
      { value: 1, previous: null, changedAt: null },
      monday,
    )
    expect(resolved).toMatchObject({ value: 1.0039, previous: 1, changedAt: monday })
    expect(multiplierAt(resolved!, ago(monday, 1))).toBe(1)
    expect(multiplierAt(resolved!, monday)).toBe(1.0039)
  })

  test('after an undated change, prints from the uncertain period are rejected', () => {
    const list = { source: 'list', current: 10, next: null, onChain: false }
    const before = resolveMultiplier([{ ...list, current: 1 }], null, ago(monday, 60))
    const after = resolveMultiplier([list], before!, monday)!
    const uncertain = deriveReference([print('pyth', 100, { publishedAt: ago(monday, 5) })], after, 'open', monday)
    expect(uncertain.reference).toBeUndefined()
    expect(uncertain.rejections).toEqual([
      { source: 'pyth', reason: expect.stringMatching(/around an undated change/) },
    ])
    const fromBefore = deriveReference([print('pyth', 1000, { publishedAt: ago(monday, 61) })], after, 'open', monday)
    expect(fromBefore.reference).toMatchObject({ price: 1000, suspended: true })
    const later = new Date(monday.getTime() + 15_000)
    const current = resolveMultiplier([list], after, later)!
    const fromAfter = deriveReference(
      [print('pyth', 100, { publishedAt: later, fetchedAt: later })],
      current,
      'open',
      later,
    )
    expect(fromAfter.reference).toMatchObject({ price: 1000, suspended: false })
  })

  test('a difference in the last digits is not a change of the multiplier', () => {
    const stored = { value: 1.0039, previous: null, changedAt: null }
    const page = { source: 'page', current: 1.003900001, next: null, onChain: false }
    expect(resolveMultiplier([page], stored, monday)).toMatchObject({ changedAt: null, previous: null })
    expect(resolveMultiplier([{ ...page, current: 1.00391 }], stored, monday)).toMatchObject({ changedAt: monday })
  })

  test('the chain has precedence over an issuer page, and a disagreement is reported', () => {
    const readings = [
      { source: 'page', current: 1, next: null, onChain: false },
      { source: 'chain', current: 1.0039, next: null, onChain: true },
    ]
    expect(resolveMultiplier(readings, null, monday)).toMatchObject({
      value: 1.0039,
      source: 'chain',
      sourcesAgree: false,
    })
  })

  test.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, 1e18])('a multiplier of %d is not usable', (current) => {
    expect(resolveMultiplier([{ source: 'x', current, next: null, onChain: true }], null, monday)).toBeUndefined()
  })

  test('a print is valued with the multiplier of its time, for any split', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0.01, max: 100, noNaN: true }),
        fc.double({ min: 1, max: 5000, noNaN: true }),
        fc.integer({ min: -3600, max: 800 }),
        (ratio, price, seconds) => {
          const changedAt = ago(monday, Math.max(0, seconds))
          const multiplier: Multiplier = { ...multiplierOfOne, value: ratio, previous: 1, changedAt }
          const publishedAt = ago(monday, 400)
          const share = publishedAt < changedAt ? price : price / ratio
          const { reference } = deriveReference([print('a', share, { publishedAt })], multiplier, 'open', monday)
          expect(reference!.price / price).toBeCloseTo(1, 9)
        },
      ),
    )
  })
})
