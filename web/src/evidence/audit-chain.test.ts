import { hashAuditEvent } from '@countersign/proof'
import { expect, test } from 'vitest'
import { type AuditEvent, checkChain, checkHeads, holds } from './audit-chain.ts'

/** A chain as the service lists it, newest first. */
function makeChain(count: number): AuditEvent[] {
  const events: AuditEvent[] = []
  for (let seq = 1; seq <= count; seq += 1) {
    const event = {
      id: `aud_${seq}`,
      seq,
      type: 'key.created',
      occurred_at: '2026-11-16T00:00:00.000Z',
      actor: 'key_1',
      subject: `key_${seq}`,
      decision: null,
      policy_ids: [],
      input_hash: null,
      data: { name: `Ünïcode ${seq}` },
      prev_hash: events[0]?.hash ?? null,
    }
    events.unshift({ ...event, hash: hashAuditEvent(event) })
  }
  return events
}

const chain = makeChain(9)
const change = (seq: number, changes: Partial<AuditEvent>) =>
  chain.map((event) => (event.seq === seq ? { ...event, ...changes } : event))

test('a chain holds from its first event to its last, wherever the list begins', () => {
  expect(checkChain(chain, false)).toMatchObject([{ name: 'events 1 to 9', ok: true }])
  expect(checkChain(chain.slice(0, 4), false)).toMatchObject([{ name: 'events 6 to 9', ok: true }])
  expect(checkChain([], false)).toEqual([])
})

test('a changed event is named, and how far the chain holds before it', () => {
  for (const changes of [{ data: { name: 'other' } }, { actor: 'key_2' }, { hash: chain[0]!.hash }]) {
    const [check] = checkChain(change(5, changes), false)
    expect(check).toMatchObject({ ok: false, reason: expect.stringMatching(/^Event 5: .*from event 1 to 4\.$/) })
  }
})

test('a changed event whose hash was made again breaks the link of the next one', () => {
  const forged = { ...chain.find(({ seq }) => seq === 5)!, actor: 'key_2' }
  const [check] = checkChain(change(5, { actor: 'key_2', hash: hashAuditEvent(forged) }), false)
  expect(check).toMatchObject({ ok: false, reason: expect.stringContaining('Event 6') })
})

test('a missing event is a break, unless a filter leaves events out', () => {
  const rows = chain.filter(({ seq }) => seq !== 5)
  expect(checkChain(rows, false)).toMatchObject([{ ok: false, reason: 'Event 4 is followed by event 6.' }])
  expect(checkChain(rows, true)).toMatchObject([
    { name: 'events 1 to 4', ok: true },
    { name: 'events 6 to 9', ok: true },
  ])
})

test('an event later in the chain that claims to be the first is refused', () => {
  expect(holds(checkChain(change(9, { prev_hash: null }).slice(0, 1), false))).toBe(false)
})

test('the head of the service must be the newest event', () => {
  const checkpoint = { chain: 'audit_1', seq: 9, hash: chain[0]!.hash, committed_seq: 0, receipt: null }
  const check = (changes: object) => checkHeads(chain, { ...checkpoint, ...changes }, { keys: [] }, new Date())
  expect(check({})).toMatchObject([{ name: 'head', ok: true }, { ok: 'skipped' }])
  expect(holds(check({ hash: chain[1]!.hash }))).toBe(false)
  const unsigned = { kind: 'audit_head', audit: { chain: 'audit_1', seq: 9, hash: chain[0]!.hash } }
  expect(holds(check({ receipt: unsigned }))).toBe(false)
})
