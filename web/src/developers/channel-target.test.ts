import { expect, test } from 'vitest'
import { describeTarget, parseRecipients, toNewChannel } from './channel-target.ts'

test('recipients are lines of addresses, with or without a name', () => {
  expect(parseRecipients('ada@example.com\n Grace Hopper <grace@example.com>, \n<x@example.com>\n')).toEqual([
    { email: 'ada@example.com' },
    { name: 'Grace Hopper', email: 'grace@example.com' },
    { email: 'x@example.com' },
  ])
})

test('an address or recipients are sent, as the type wants', () => {
  const form = new FormData()
  form.set('type', 'slack')
  form.set('name', ' ')
  form.set('url', ' https://hooks.slack.com/x ')
  form.set('recipients', 'a@example.com')
  expect(toNewChannel(form)).toEqual({ type: 'slack', url: 'https://hooks.slack.com/x' })
  form.set('type', 'email')
  form.set('name', 'On call')
  expect(toNewChannel(form)).toEqual({ type: 'email', name: 'On call', recipients: [{ email: 'a@example.com' }] })
})

test('a channel says where its messages go', () => {
  expect(describeTarget({ url: 'https://hooks.slack.com/…', recipients: [] })).toBe('https://hooks.slack.com/…')
  const recipient = { id: 'rcp_1', added_by: 'key_1', created_at: '' }
  const recipients = [
    { ...recipient, email: 'ada@example.com', name: 'Ada' },
    { ...recipient, email: 'x@example.com', name: null },
  ]
  expect(describeTarget({ url: null, recipients })).toBe('Ada <ada@example.com>, x@example.com')
})
