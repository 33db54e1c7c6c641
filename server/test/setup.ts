import { flushCompileCache } from 'node:module'
import { afterAll, vi } from 'vitest'

const environment = { ...process.env }

// One process runs many test files, and each finds the environment and the clock as they were.
afterAll(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
  for (const name of Object.keys(process.env)) if (!(name in environment)) delete process.env[name]
  Object.assign(process.env, environment)
  // The workers of the tests are ended by a signal, before Node would store what it compiled.
  flushCompileCache()
})
