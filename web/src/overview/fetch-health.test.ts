import { expect, test } from 'vitest'
import { stubFetch } from '../../test/browser-stubs.ts'
import { fetchHealth } from './fetch-health.ts'

test('a degraded service returns its report although the status is 503', async () => {
  const report = { status: 'degraded', supabase: 'unreachable', redis: 'ok' }
  stubFetch({ 'GET /api/health': { status: 503, body: report } })
  expect(await fetchHealth()).toEqual(report)
})

test('any other failure is an error', async () => {
  stubFetch({ 'GET /api/health': { status: 503, body: { error: 'error', message: 'Shutting down.' } } })
  await expect(fetchHealth()).rejects.toThrow('Shutting down.')
  stubFetch({})
  await expect(fetchHealth()).rejects.toMatchObject({ status: 0 })
})
