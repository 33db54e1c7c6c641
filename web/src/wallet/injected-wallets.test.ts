import { expect, test } from 'vitest'
import { parseAnnouncement } from './injected-wallets.ts'

const provider = { request: async () => undefined }
const info = { uuid: '1', name: 'Wallet', icon: 'data:image/svg+xml;base64,PHN2Zy8+' }

test('an announced wallet is taken with its name and icon', () => {
  expect(parseAnnouncement({ info, provider })).toEqual({ id: '1', name: 'Wallet', icon: info.icon, provider })
})

test('an icon is only taken as an image in the announcement itself, never as an address', () => {
  for (const icon of ['https://example.com/x.png', 'javascript:alert(1)', 'data:text/html,<script>', '/api/session', 7])
    expect(parseAnnouncement({ info: { ...info, icon }, provider })?.icon).toBeUndefined()
})

test('what is no wallet is not listed, and a long name is cut', () => {
  for (const detail of [
    undefined,
    null,
    {},
    { info },
    { info, provider: {} },
    { info: { ...info, uuid: undefined }, provider },
    { info: { ...info, name: ' ' }, provider },
  ])
    expect(parseAnnouncement(detail)).toBeUndefined()
  expect(parseAnnouncement({ info: { ...info, name: 'x'.repeat(1000) }, provider })?.name).toHaveLength(60)
})
