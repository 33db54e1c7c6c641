import { expect, test, vi } from 'vitest'
import { systemClock } from '../../platform/clock.ts'
import { createLiveLane } from './ai-sdk.ts'
import { readLaneSettings } from './settings.ts'

test('a model that could not be opened once is opened again by the next run', async () => {
  const settings = readLaneSettings(
    {
      LANE_PROVIDER: 'openai-compatible',
      LANE_BASE_URL: 'http://127.0.0.1:1/v1',
      LANE_MODEL: 'm',
    },
    ['comedian-v1'],
  )!
  const openModel = vi.fn(() => Promise.reject(new Error('The provider package could not be loaded.')))
  const lane = createLiveLane(settings, { clock: systemClock, openModel })
  const task = {
    agentId: 'comedian-v1',
    task: 'x',
    signal: new AbortController().signal,
    deadline: new Date(Date.now() + 60_000),
  }
  for (let run = 0; run < 2; run++) await lane.execute(task as never).catch(() => undefined)
  expect(openModel).toHaveBeenCalledTimes(2)
})
