import { flushCompileCache } from 'node:module'
import { afterAll } from 'vitest'

// The workers of the tests are ended by a signal, before Node would store what it compiled.
afterAll(() => flushCompileCache())
