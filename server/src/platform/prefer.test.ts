import { expect, test } from 'vitest'
import { prefersAsync } from './prefer.ts'

test.each([
  'respond-async',
  'Respond-Async',
  ' respond-async , wait=10',
  'wait=10, respond-async',
  'respond-async; foo="a,b"',
  'respond-async=""',
  ['handling=lenient', 'respond-async'],
])('asks for an early answer: %s', (header) => expect(prefersAsync(header)).toBe(true))

test.each([
  undefined,
  '',
  'respond-sync',
  'respond-async-later',
  'respond-async=5',
  'handling="respond-async"',
  'handling="a, respond-async"',
  'handling="a\\", respond-async"',
  'foo; respond-async',
  '"respond-async',
  ',,;=',
])('is ignored: %s', (header) => expect(prefersAsync(header)).toBe(false))
