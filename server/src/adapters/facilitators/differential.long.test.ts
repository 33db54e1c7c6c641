import { expect, test } from 'vitest'
import { compareWithReference } from '../../../test/contract/differential.ts'

test('thousands of good and bad payments get the verdict that the x402 reference gives them', async () => {
  const { cases } = await compareWithReference(60)
  expect(cases).toBeGreaterThan(2_000)
})
