import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { bitFlips, check } from '../test/fixtures.ts'
import { fromUtf8, utf8 } from './encoding.ts'
import { type AuditHead, hashAuditEvent, MAX_AUDIT_LINE_LENGTH, verifyAuditExport } from './verify-audit-export.ts'

type Event = { seq: number; type: string; prev_hash: string | null; hash: string }

function chain(length: number, type = 'run.completed', first = 1, previousHash: string | null = null): Event[] {
  const events: Event[] = []
  for (let i = 0; i < length; i += 1) {
    const event = {
      id: `evt_${i}`,
      seq: first + i,
      type,
      actor: { key: 'key_1' },
      prev_hash: events.at(-1)?.hash ?? previousHash,
    }
    events.push({ ...event, hash: hashAuditEvent(event) })
  }
  return events
}
const lines = (events: object[]) => events.map((event) => JSON.stringify(event))
const events = chain(5)
const headOf = ({ seq, hash }: Event): AuditHead => ({ seq, hash })

test('a whole chain verifies, as text or line by line', () => {
  for (const form of [lines(events), `${lines(events).join('\n')}\n`, lines(events).join('\n')]) {
    expect(verifyAuditExport(form)).toMatchObject({ ok: true, count: 5, head: headOf(events[4]!), broken_at: null })
  }
})

test('an export may have empty lines, and begin with the number 0', () => {
  expect(verifyAuditExport(`\n${lines(events).join('\n\n')}\n\n`)).toMatchObject({ ok: true, count: 5 })
  expect(verifyAuditExport(lines(chain(2, 'run.completed', 0)))).toMatchObject({ ok: true, count: 2 })
})

test.each<[string, unknown, string]>([
  ['a value that is no text', 7, 'too long for an event.'],
  ['more text than the limit', ' '.repeat(MAX_AUDIT_LINE_LENGTH + 1), 'too long for an event.'],
  ['as much as the limit', ' '.repeat(MAX_AUDIT_LINE_LENGTH), 'Not JSON.'],
  ['a list', '[]', 'not a JSON object.'],
  ['null', 'null', 'not a JSON object.'],
  ['no number', '{}', "'seq' must be a whole number."],
  ['no hash', '{"seq":0}', "'hash' must be sha256:"],
])('a line with %s says what is wrong', (_, line, reason) => {
  expect(verifyAuditExport([line as string]).checks[0]?.reason).toContain(`Line 1: ${reason}`)
})

test('the order of keys in a line does not matter', () => {
  const shuffled = events.map((event) => Object.fromEntries(Object.entries(event).reverse()))
  expect(verifyAuditExport(lines(shuffled)).ok).toBe(true)
})

describe('a broken chain names the line', () => {
  test.each<[string, object[], number]>([
    ['an event removed', [...events.slice(0, 2), ...events.slice(3)], 3],
    ['the first event removed', events.slice(1), 1],
    ['two events swapped', [events[0]!, events[2]!, events[1]!], 2],
    ['an event repeated', [events[0]!, events[0]!], 2],
    ['one changed', events.with(2, { ...events[2]!, type: 'run.blocked' }), 3],
    ['one changed and hashed again', (events as object[]).with(2, rehash({ ...events[2]!, type: 'run.blocked' })), 4],
    ['a number skipped', [events[0]!, rehash({ ...events[1]!, seq: 3 })], 2],
    ['a negative number', [rehash({ ...events[0]!, seq: -1 })], 1],
    ['no hash', [{ ...events[0]!, hash: undefined }], 1],
    ['a list', [[events[0]]], 1],
    ['a hash that is none', [{ ...events[0]!, hash: 'x' }], 1],
    ['a first event with a previous one', events.slice(3), 1],
  ])('%s', (_, brokenExport, line) => {
    const result = verifyAuditExport(lines(brokenExport))
    expect(result).toMatchObject({ ok: false, broken_at: line, count: line - 1 })
    expect(result.checks[0]!.reason).toContain(`Line ${line}:`)
  })

  function rehash({ hash: _, ...event }: Event): object {
    return { ...event, hash: hashAuditEvent(event) }
  }
})

test('flipping any bit of an export makes it invalid, unless no value changes', () => {
  const text = lines(events.slice(0, 2)).join('\n')
  for (const alteredBytes of bitFlips(utf8(text))) {
    const flipped = fromUtf8(alteredBytes)
    if (flipped !== undefined) expect(verifyAuditExport(flipped).ok, flipped).toBe(false)
  }
})

test('a duplicate key is rejected: grep and a parser would read two different events', () => {
  const [first] = lines(events)
  const duplicateKeyLine = first!.replace('{', '{"type":"run.blocked",')
  expect(verifyAuditExport([duplicateKeyLine])).toMatchObject({ ok: false, broken_at: 1 })
})

describe('parts of a chain', () => {
  const previousHead = headOf(events[2]!)

  test('a later part verifies after the previous event', () => {
    expect(verifyAuditExport(lines(events.slice(3)), { after: previousHead })).toMatchObject({ ok: true, count: 2 })
    expect(verifyAuditExport(lines(events.slice(4)), { after: previousHead }).ok).toBe(false)
    expect(verifyAuditExport('', { after: previousHead })).toMatchObject({ ok: true, count: 0, head: previousHead })
  })

  test('a truncated or rewritten chain is detected with a trusted head', () => {
    const head = headOf(events[4]!)
    expect(verifyAuditExport(lines(events), { head }).ok).toBe(true)
    expect(check(verifyAuditExport(lines(events.slice(0, 4)), { head }), 'head')).toBe(false)
    const rewritten = verifyAuditExport(lines(chain(5, 'run.failed')), { head })
    expect([check(rewritten, 'chain'), check(rewritten, 'head'), rewritten.ok]).toEqual([true, false, false])
    expect(verifyAuditExport('', { after: head, head }).ok).toBe(true)
    expect(verifyAuditExport(lines(chain(1, 'x', 6, head.hash)), { after: head, head }).ok).toBe(true)
  })
})

test('an empty export proves nothing', () => {
  for (const empty of ['', '\n\n', [], ['']]) expect(verifyAuditExport(empty).ok).toBe(false)
})

test('it never throws, whatever the input', () => {
  expect(verifyAuditExport([`"${'x'.repeat(MAX_AUDIT_LINE_LENGTH)}"`]).ok).toBe(false)
  expect(verifyAuditExport([7 as never]).ok).toBe(false)
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.string(), fc.json())), (value) => {
      expect(verifyAuditExport(value).ok).toBe(false)
    }),
  )
})
