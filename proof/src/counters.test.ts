import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { jwks, makeReceipt } from '../test/fixtures.ts'
import { verifyOpening } from './verify-opening.ts'
import { verifyReceipt } from './verify-receipt.ts'

/** The form of the commitment, written a second time with Node's own hash. */
const sha256 = (text: string) => `sha256:${createHash('sha256').update(text).digest('hex')}`

const SALTS = ['AAECAwQFBgcICQoLDA0ODw', 'EBESExQVFhcYGRobHB0eHw', 'ICEiIyQlJicoKSorLC0uLw', 'MDEyMzQ1Njc4OTo7PD0-Pw']
const [TASK_SALT, LIST_SALT, BUDGET_SALT, MANDATE_SALT] = SALTS as [string, string, string, string]
const INPUT = 'Summarise the Q3 report.'

const budget = {
  counter: 'budget:ten_1:marketing',
  period: 'month:2026-11-01T00:00',
  measure: 'money',
  amount: '15000',
  salt: BUDGET_SALT,
}
const mandate = {
  counter: 'mandate:mdt_1:payment.budget',
  period: 'rolling_24h',
  slice_ends_at: '2026-11-17T15:05:00.000Z',
  measure: 'money',
  amount: '15000',
  salt: MANDATE_SALT,
}
const budgetHash = sha256(
  `${BUDGET_SALT}.counter.${sha256('{"amount":"15000","counter":"budget:ten_1:marketing","measure":"money","period":"month:2026-11-01T00:00"}')}`,
)
const mandateHash = sha256(
  `${MANDATE_SALT}.counter.${sha256('{"amount":"15000","counter":"mandate:mdt_1:payment.budget","measure":"money","period":"rolling_24h","slice_ends_at":"2026-11-17T15:05:00.000Z"}')}`,
)
const listHash = (...hashes: string[]) =>
  sha256(`${LIST_SALT}.counters.${sha256(`[${hashes.map((hash) => `"${hash}"`).join(',')}]`)}`)

const committed = {
  input_hash: sha256(`${TASK_SALT}.input_hash.${sha256(INPUT)}`),
  commitment: { alg: 'sha256-salted', salted: ['input_hash'] },
  counters: { alg: 'sha256-salted-list', hash: listHash(...[budgetHash, mandateHash].sort()) },
}
const receipt = makeReceipt(committed)
const uncounted = makeReceipt({ ...committed, counters: { alg: 'sha256-salted-list', hash: listHash() } })

type Item = Record<string, unknown>
const hashOf = ({ salt, ...rest }: Item) =>
  sha256(`${salt}.counter.${sha256(JSON.stringify(Object.fromEntries(Object.entries(rest).sort())))}`)
/** A receipt whose issuer committed to exactly these items, whatever they are. */
const commitTo = (items: Item[], salt = LIST_SALT) => {
  const hashes = items.map((item) => ('hash' in item ? String(item.hash) : hashOf(item))).sort()
  const hash = sha256(`${salt}.counters.${sha256(JSON.stringify(hashes))}`)
  return makeReceipt({ ...committed, counters: { alg: 'sha256-salted-list', hash } })
}

/** The task is disclosed as well, so that an opening is not refused for disclosing nothing. */
const open = (counters: unknown) => ({ salt: TASK_SALT, input: INPUT, counters }) as never

describe('the counters of an opened receipt', () => {
  test.each([
    ['in the order of the answer', [budget, mandate]],
    ['in another order', [mandate, budget]],
  ])('are those that the receipt commits to, %s', (_, items) => {
    const opening = open({ salt: LIST_SALT, items })
    expect(verifyOpening(receipt, opening)).toMatchObject({
      ok: true,
      checks: [{ name: 'input' }, { name: 'counters', reason: expect.stringContaining('no other') }],
    })
    expect(verifyReceipt(receipt, { jwks, opening }).ok).toBe(true)
  })

  test('may be disclosed alone, without the salt of the task', () => {
    expect(verifyOpening(receipt, { counters: { salt: LIST_SALT, items: [budget, mandate] } as never }).ok).toBe(true)
  })

  test('may be disclosed one by one: the rest stays hidden, and the check says that there is a rest', () => {
    const { ok, checks } = verifyOpening(receipt, open({ salt: LIST_SALT, items: [budget, { hash: mandateHash }] }))
    expect([ok, checks.at(-1)?.reason]).toEqual([
      true,
      'Counted by budget:ten_1:marketing in month:2026-11-01T00:00 (15000); 1 more not disclosed.',
    ])
  })

  test('may be none, which is shown in the same way', () => {
    const none = verifyOpening(uncounted, open({ salt: LIST_SALT, items: [] }))
    expect([none.ok, none.checks.at(-1)?.reason]).toEqual([true, 'Counted by none that is disclosed, and no other.'])
    expect(verifyOpening(receipt, open({ salt: LIST_SALT, items: [] })).ok).toBe(false)
  })

  const refused: [string, unknown][] = [
    ['another counter', { salt: LIST_SALT, items: [{ ...budget, counter: 'budget:ten_1:sales' }, mandate] }],
    [
      'the counter of another tenant',
      { salt: LIST_SALT, items: [{ ...budget, counter: 'budget:ten_2:marketing' }, mandate] },
    ],
    ['another amount', { salt: LIST_SALT, items: [{ ...budget, amount: '14999' }, mandate] }],
    ['another window', { salt: LIST_SALT, items: [{ ...budget, period: 'month:2026-12-01T00:00' }, mandate] }],
    [
      'a later end of a rolling window',
      { salt: LIST_SALT, items: [budget, { ...mandate, slice_ends_at: '2026-11-18T15:05:00.000Z' }] },
    ],
    ['another measure', { salt: LIST_SALT, items: [{ ...budget, measure: 'count' }, mandate] }],
    ['a counter left out', { salt: LIST_SALT, items: [budget] }],
    ['all counters left out', { salt: LIST_SALT, items: [] }],
    ['a counter added', { salt: LIST_SALT, items: [budget, mandate, { ...budget, counter: 'budget:ten_1:sales' }] }],
    ['a counter twice', { salt: LIST_SALT, items: [budget, mandate, budget] }],
    ['a hidden counter that it also shows', { salt: LIST_SALT, items: [budget, mandate, { hash: mandateHash }] }],
    [
      'the salts of two counters swapped',
      {
        salt: LIST_SALT,
        items: [
          { ...budget, salt: MANDATE_SALT },
          { ...mandate, salt: BUDGET_SALT },
        ],
      },
    ],
    [
      'the salt of the task as the salt of a counter',
      { salt: LIST_SALT, items: [{ ...budget, salt: TASK_SALT }, mandate] },
    ],
    ['the salt of a counter as the salt of the list', { salt: BUDGET_SALT, items: [budget, mandate] }],
    ['no salt of the list', { items: [budget, mandate] }],
    ['no salt of a counter', { salt: LIST_SALT, items: [{ ...budget, salt: undefined }, mandate] }],
    ['a salt that is too short to hide anything', { salt: LIST_SALT, items: [{ ...budget, salt: 'AAEC' }, mandate] }],
    ['a member that no commitment covers', { salt: LIST_SALT, items: [{ ...budget, limit: '1' }, mandate] }],
    [
      'a hidden counter with a member beside its hash',
      { salt: LIST_SALT, items: [budget, { hash: mandateHash, amount: '1' }] },
    ],
    ['an amount that is a number', { salt: LIST_SALT, items: [{ ...budget, amount: 15000 }, mandate] }],
    ['an amount below zero', { salt: LIST_SALT, items: [{ ...budget, amount: '-1' }, mandate] }],
    ['an amount with a leading zero', { salt: LIST_SALT, items: [{ ...budget, amount: '015000' }, mandate] }],
    ['items that are no list', { salt: LIST_SALT, items: { 0: budget, 1: mandate } }],
    ['items that are no objects', { salt: LIST_SALT, items: [budget, null] }],
    [
      'more items than a receipt can have',
      { salt: LIST_SALT, items: Array.from({ length: 1025 }, () => ({ hash: mandateHash })) },
    ],
    ['a list in place of an object', [budget, mandate]],
    ['null', null],
    ['a salt in a list', { salt: LIST_SALT, items: [{ ...budget, salt: [BUDGET_SALT] }, mandate] }],
    ['the salt of the list in a list', { salt: [LIST_SALT], items: [budget, mandate] }],
  ]
  test.each(refused)('are refused with %s', (_, counters) => {
    expect(verifyOpening(receipt, open(counters))).toMatchObject({
      ok: false,
      checks: [
        { name: 'input', ok: true },
        { name: 'counters', ok: false },
      ],
    })
    expect(verifyReceipt(receipt, { jwks, opening: open(counters) }).ok).toBe(false)
  })

  test('may count payments instead of money, and be as many as a receipt can have', () => {
    const items = [{ ...budget, measure: 'count', amount: '1' }]
    expect(verifyOpening(commitTo(items), open({ salt: LIST_SALT, items })).ok).toBe(true)
    const many = (length: number) => Array.from({ length }, (_, index) => ({ hash: sha256(String(index)) }))
    expect(verifyOpening(commitTo(many(1024)), open({ salt: LIST_SALT, items: many(1024) })).ok).toBe(true)
    expect(verifyOpening(commitTo(many(1025)), open({ salt: LIST_SALT, items: many(1025) })).ok).toBe(false)
  })

  test.each<[string, Item[], string]>([
    ['a counter twice', [budget, budget], 'listed twice'],
    ['one window twice under two salts', [budget, { ...budget, amount: '1', salt: TASK_SALT }], 'listed twice'],
    ['a hidden counter twice', [{ hash: budgetHash }, { hash: budgetHash }], 'listed twice'],
    ['an end of a window that is no time', [{ ...mandate, slice_ends_at: 'soon' }], 'A counter is'],
    ['another measure', [{ ...budget, measure: 'weight' }], 'A counter is'],
    ['an amount that is a number', [{ ...budget, amount: 15000 }], 'A counter is'],
    ['another member', [{ ...budget, limit: '1' }], 'A counter is'],
    ['a short salt', [{ ...budget, salt: 'AAEC' }], 'A counter is'],
  ])('are refused with %s, although the issuer committed to it', (_, items, reason) => {
    const { ok, checks } = verifyOpening(commitTo(items), open({ salt: LIST_SALT, items }))
    expect([ok, checks.at(-1)]).toEqual([
      false,
      { name: 'counters', ok: false, reason: expect.stringContaining(reason) },
    ])
  })

  test('are refused under a short salt of the list, although the issuer committed to it', () => {
    expect(verifyOpening(commitTo([budget], 'AAEC'), open({ salt: 'AAEC', items: [budget] })).ok).toBe(false)
  })

  test.each([
    ['an old receipt, which commits to none', undefined],
    ['a commitment of another kind', { ...committed.counters, alg: 'sha256' }],
    ['a commitment without a hash', { alg: 'sha256-salted-list' }],
    ['a commitment that is a text', committed.counters.hash],
  ])('are refused of %s', (_, counters) => {
    const { counters: __, ...rest } = committed
    const other = makeReceipt({ ...rest, ...(counters !== undefined && { counters }) })
    expect(verifyOpening(other, open({ salt: LIST_SALT, items: [budget, mandate] })).ok).toBe(false)
    // The receipt itself still verifies, and so does its task.
    expect(verifyReceipt(other, { jwks, opening: { salt: TASK_SALT, input: INPUT } }).ok).toBe(true)
  })

  test('of a receipt whose commitment was replaced break its signature', () => {
    const moved = { ...receipt, counters: uncounted.counters }
    const opening = open({ salt: LIST_SALT, items: [] })
    expect(verifyOpening(moved, opening).ok).toBe(true)
    expect(verifyReceipt(moved, { jwks, opening }).ok).toBe(false)
  })
})
