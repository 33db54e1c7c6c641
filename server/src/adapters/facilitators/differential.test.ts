import { expect, test } from 'vitest'
import { compareWithReference } from '../../../test/contract/differential.ts'

test('every kind of good and bad payment gets the verdict that the x402 reference gives it', async () => {
  const { cases, valid } = await compareWithReference(2)
  expect(cases).toBeGreaterThanOrEqual(60)
  expect(valid).toBeGreaterThanOrEqual(18)
})
