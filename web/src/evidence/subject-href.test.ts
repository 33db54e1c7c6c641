import { expect, test } from 'vitest'
import { subjectHref } from './subject-href.ts'

test('a subject leads to its page by the kind of its id, and anything else leads nowhere', () => {
  expect(subjectHref('run_1')).toBe('#/account/runs/run_1')
  expect(subjectHref('rcpt_1')).toBe('#/receipts/rcpt_1')
  expect(subjectHref('key_1')).toBe('#/account/keys')
  for (const subject of ['run', 'ten_1', '', 'javascript:alert(1)', 'writer-v1'])
    expect(subjectHref(subject)).toBeUndefined()
})
