import { expect, test } from 'vitest'
import { parseJsonText, pathAtCaret } from './json-text.ts'

test('text that is JSON is read as JSON.parse reads it', () => {
  for (const text of ['{"a": [1, -2.5e3, true, null, "x\\n"], "b": {}}', '[]', '"a"', ' 1 '])
    expect(parseJsonText(text)).toEqual({ value: JSON.parse(text) })
})

test.each([
  ['{"a": 1,}', 'A comma too many before }.', 1, 9],
  ['{"a": 1\n "b": 2}', 'A comma is missing before this.', 2, 2],
  ['{\n  a: 1}', 'Unexpected a: 1}.', 2, 3],
  ['{"a" 1}', 'A colon is missing before this.', 1, 6],
  ['{"a": [1, 2}', 'Unexpected }.', 1, 12],
  ['{"a": 1', 'A closing } is missing.', 1, 8],
  ['{"a": "b', 'This text has no closing quote.', 1, 7],
  ['{"a": 1, "a": 2}', 'The field a stands here twice.', 1, 10],
  ['{} {}', 'Unexpected { after the end.', 1, 4],
  ['', 'There is no value.', 1, 1],
  ['{"a": "\\q"}', 'This text has an escape that JSON does not have.', 1, 7],
])('%j fails with its line and column', (text, error, line, column) => {
  expect(parseJsonText(text)).toEqual({ error, line, column })
})

test('the caret is in the object around it, also in unfinished text', () => {
  const text = '{"name": "a", "constraints": {"max": 1}, "rules": [{"field": "x"}, {"op": '
  const at = (part: string) => pathAtCaret(text, text.indexOf(part) + 1)
  expect(at('name')).toEqual([])
  expect(at('max')).toEqual(['constraints'])
  expect(at('field')).toEqual(['rules', 0])
  expect(pathAtCaret(text, text.length)).toEqual(['rules', 1])
  expect(pathAtCaret('{}', 0)).toEqual([])
})
