import { expect, test } from 'vitest'
import type { Domain, InboxItem } from './inbox-item.ts'
import { orderItems, toInboxFilter } from './inbox-queries.ts'

const item = (id: string, domain: Domain, createdAt: string, expiresAt = '') =>
  ({ id, domain, createdAt, expiresAt }) as InboxItem
const idsOf = (items: InboxItem[]) => items.map(({ id }) => id)
const ended = { core: null, brokerage: null }

test('what expires first stands first, whichever list it is from', () => {
  const page = {
    items: [item('a', 'core', '1', '30'), item('b', 'core', '2', '10'), item('c', 'brokerage', '3', '20')],
    next: ended,
  }
  expect(idsOf(orderItems([page], 'pending'))).toEqual(['b', 'c', 'a'])
})

test('of decided ones nothing is shown before a list that goes on could come in between', () => {
  const items = [
    item('a9', 'core', '9'),
    item('a3', 'core', '3'),
    item('t7', 'brokerage', '7'),
    item('t5', 'brokerage', '5'),
  ]
  expect(idsOf(orderItems([{ items, next: ended }], 'all'))).toEqual(['a9', 't7', 't5', 'a3'])
  // Trades go on after 5: one of 4 may come before the payment of 3.
  expect(idsOf(orderItems([{ items, next: { core: null, brokerage: 'cursor' } }], 'all'))).toEqual(['a9', 't7', 't5'])
})

test('a filter that is none of the choices counts as none', () => {
  expect(toInboxFilter(new URLSearchParams('status=approved&domain=brokerage&spender= buyer-1 '))).toEqual({
    status: 'approved',
    domain: 'brokerage',
    spender: 'buyer-1',
  })
  expect(toInboxFilter(new URLSearchParams('status=x&domain=y'))).toEqual({
    status: 'pending',
    domain: 'all',
    spender: undefined,
  })
})
