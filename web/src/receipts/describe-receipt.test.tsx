import { expect, test } from 'vitest'
import { makeReceipt } from '../../../proof/test/fixtures.ts'
import { renderText } from '../../test/render.tsx'
import { DescriptionList } from '../components/ui.tsx'
import { describeReceipt, type Receipt } from './describe-receipt.tsx'

const render = (changes: object) =>
  renderText(<DescriptionList items={describeReceipt({ ...makeReceipt(), ...changes } as unknown as Receipt)} />)

test('the price is shown in USDC, whether the receipt has it as number or text', () => {
  expect(render({ pricing: { price_usdc: 0.015 } })).toContain('Price 0.015 USDC')
  expect(render({ pricing: { price_usdc: '0.015' } })).toContain('Price 0.015 USDC')
  expect(render({ pricing: null })).not.toContain('Price')
})

test('a receipt that does not say whether it was charged claims neither', () => {
  expect(render({})).not.toContain('Charged')
  expect(render({ charged: true })).toContain('Charged yes')
  expect(render({ charged: false })).toContain('Charged no, nothing was charged')
})

test('the log entry is pending until the receipt is in the log', () => {
  expect(render({ log: null })).toContain('Log entry pending')
  expect(render({ log: { index: 0, origin: 'log.test' } })).toContain('Log entry #0 of log.test')
})

test('fields that are null or of an unexpected type are left out', () => {
  const text = render({ governance: { decision: 'allow', mandate_id: null, approval_id: {} }, prev_hash: null })
  expect(text).toContain('Decision allow')
  for (const name of ['Mandate', 'Approval', 'Previous receipt']) expect(text).not.toContain(name)
})
