import { expect, test } from 'vitest'
import { toCsv } from './csv.ts'

test('a value cannot leave its cell or become a formula', () => {
  expect(
    toCsv(
      ['a', 'b'],
      [
        ['x, "y"', '=HYPERLINK("evil")'],
        ['line\nbreak', null],
        ['@sum', -1.5],
      ],
    ),
  ).toBe('a,b\r\n"x, ""y""","\'=HYPERLINK(""evil"")"\r\n"line\nbreak",\r\n\'@sum,-1.5')
})
