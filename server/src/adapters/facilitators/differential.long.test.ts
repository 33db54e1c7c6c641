import { expect, test } from 'vitest'
import { compareWithReference } from '../../../test/contract/differential.ts'

test('thousands of valid and invalid payments get the same result as from the x402 reference facilitator', async () => {
  const { cases } = await compareWithReference(60)
  expect(cases).toBeGreaterThan(2_000)
})
