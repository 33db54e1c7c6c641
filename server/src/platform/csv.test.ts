import { expect, test } from 'vitest'
import { toCsv } from './csv.ts'

test('fields with separators, quotes and line ends are quoted, and every line ends with CRLF', () => {
  expect(
    toCsv(
      ['a', 'b'],
      [
        ['x,y', 'say "hi"'],
        ['two\r\nlines', null],
      ],
    ),
  ).toBe('a,b\r\n"x,y","say ""hi"""\r\n"two\r\nlines",\r\n')
  expect(toCsv(['n'], [[-0.5], [12]])).toBe('n\r\n-0.5\r\n12\r\n')
})

test('a text that a spreadsheet would evaluate is shown as text', () => {
  for (const text of ['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '  =1', '\r=1', '＝1'])
    expect(
      toCsv(['a'], [[text]])
        .split('\r\n')[1]!
        .replace(/^"/, '')
        .startsWith("'") || text.includes('\r'),
    ).toBe(true)
  expect(toCsv(['a'], [['=HYPERLINK("http://x","y")']])).toBe('a\r\n"\'=HYPERLINK(""http://x"",""y"")"\r\n')
  expect(toCsv(['a'], [['plain-text']])).toBe('a\r\nplain-text\r\n')
})
