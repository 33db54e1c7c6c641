import { expect, test } from 'vitest'
import { compareWithReference } from '../../../test/contract/differential.ts'

test('every kind of valid and invalid payment gets the same result as from the x402 reference facilitator', async () => {
  const { cases, valid } = await compareWithReference(2)
  expect(cases).toBeGreaterThanOrEqual(60)
  expect(valid).toBeGreaterThanOrEqual(18)
})
