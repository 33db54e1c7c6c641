import { expect, test } from 'vitest'
import { type Delivery, describeDeliveryState, findFailedSince } from './delivery-state.ts'

const delivery = (seq: number, changes: Partial<Delivery> = {}) =>
  ({
    id: `dlv_${seq}`,
    seq,
    state: 'exhausted',
    attempts: 9,
    last_error: 'answered 500',
    last_attempt_at: '2026-11-16T12:00:00Z',
    created_at: `2026-11-16T00:${String(seq).padStart(2, '0')}:00Z`,
    ...changes,
  }) as Delivery

test('a pending delivery that was tried is not the same as one that waits', () => {
  expect(describeDeliveryState({ state: 'pending', attempts: 0 }).label).toBe('waiting')
  expect(describeDeliveryState({ state: 'pending', attempts: 1 })).toMatchObject({ tone: 'warning' })
  expect(describeDeliveryState({ state: 'exhausted', attempts: 9 })).toMatchObject({ tone: 'error' })
})

const readPages = (pages: Partial<Record<Delivery['state'], Delivery[][]>>) => {
  const reads: string[] = []
  return {
    reads,
    readPage: async (state: Delivery['state'], cursor: string | undefined) => {
      const index = Number(cursor ?? 0)
      reads.push(`${state} ${index}`)
      const pageList = pages[state] ?? [[]]
      return { deliveries: pageList[index]!, next_cursor: index + 1 < pageList.length ? String(index + 1) : null }
    },
  }
}

test('failed deliveries since a time, oldest first; older pages are not read', async () => {
  const waiting = delivery(7, { state: 'pending', attempts: 0, last_error: null, last_attempt_at: null })
  const { readPage, reads } = readPages({
    exhausted: [[delivery(6), delivery(5)], [delivery(4), delivery(1)], [delivery(0)]],
    pending: [[waiting, delivery(3, { state: 'pending', attempts: 2 })]],
  })
  const failedDeliveries = await findFailedSince(readPage, Date.parse('2026-11-16T00:03:00Z'), 100)
  expect(failedDeliveries.map(({ seq }) => seq)).toEqual([3, 4, 5, 6])
  expect(reads).toEqual(['exhausted 0', 'exhausted 1', 'pending 0'])
})

test('the number is limited', async () => {
  const { readPage } = readPages({ exhausted: [[delivery(6), delivery(5)], [delivery(4)]] })
  expect(await findFailedSince(readPage, 0, 2)).toHaveLength(2)
})
