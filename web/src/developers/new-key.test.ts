import { expect, test } from 'vitest'
import { toNewKey } from './new-key.ts'

const form = (entries: [string, string][]) => {
  const data = new FormData()
  for (const [name, value] of entries) data.append(name, value)
  return data
}

test('fields that are left empty are left out', () => {
  const entries: [string, string][] = [
    ['name', ' Agent '],
    ['scopes', 'run'],
    ['scopes', 'read'],
    ['spender', ' '],
    ['team', ''],
    ['mandate_ids', ' , '],
    ['expires_at', ''],
  ]
  expect(toNewKey(form(entries))).toEqual({ name: 'Agent', scopes: ['read', 'run'] })
})

test('mandates are separated by commas or spaces, and a time is sent as UTC', () => {
  const newKey = toNewKey(
    form([
      ['name', 'Agent'],
      ['scopes', 'run'],
      ['spender', 'fleet-7'],
      ['team', 'maps'],
      ['mandate_ids', 'mnd_1, mnd_2\nmnd_1'],
      ['expires_at', '2026-12-01T10:00'],
    ]),
  )
  expect(newKey).toEqual({
    name: 'Agent',
    scopes: ['run'],
    spender: 'fleet-7',
    team: 'maps',
    mandate_ids: ['mnd_1', 'mnd_2'],
    expires_at: new Date('2026-12-01T10:00').toISOString(),
  })
})
