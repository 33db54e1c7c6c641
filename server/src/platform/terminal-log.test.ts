import { expect, test } from 'vitest'
import { formatLogLine } from './terminal-log.ts'

const line = (fields: object) => JSON.stringify({ level: 30, time: Date.UTC(2026, 0, 2, 3, 4, 5), ...fields })

test('a line on a terminal has time, level, message and its fields', () => {
  expect(formatLogLine(line({ msg: 'it listens', port: 4020, nested: { a: 1 } }), { colour: false })).toMatch(
    /^\d\d:\d\d:\d\d INFO {2}it listens port=4020 nested=\{"a":1\}\n$/,
  )
})

test('an error has its stack on lines of its own', () => {
  const text = formatLogLine(line({ level: 50, msg: 'failed', err: { message: 'no', stack: 'Error: no\n    at x' } }), {
    colour: false,
  })
  expect(text).toMatch(/ERROR failed\n {2}Error: no\n {6}at x\n$/)
})

test('nothing that a caller sent can move the cursor or change the title of the terminal', () => {
  const hostile = '\u001b]0;owned\u0007\u001b[2J\r\u009b31m'
  const text = formatLogLine(line({ msg: hostile, path: hostile, err: { stack: hostile } }), { colour: false })
  expect([...text].filter((character) => /[\p{Cc}]/u.test(character) && character !== '\n')).toEqual([])
})

test('what is not JSON is printed as it is, without control characters', () => {
  expect(formatLogLine('plain \u001b[2J text', { colour: false })).toBe('plain �[2J text\n')
})
