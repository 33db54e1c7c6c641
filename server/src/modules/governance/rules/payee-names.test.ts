import { expect, test } from 'vitest'
import { merchantNames } from '../assess/payment-facts.ts'
import { findPayee, normalizePayee, unlistedNames } from './payee-names.ts'

const GOOD = `0x${'aA'.repeat(20)}`
const EVIL = `0x${'66'.repeat(20)}`
const SOLANA = 'So11111111111111111111111111111111111111112'
type Merchant = Parameters<typeof merchantNames>[0]
const preauth = (merchant: Merchant) => ({
  kind: 'preauth' as const,
  merchants: merchantNames(merchant),
  payTo: merchant.pay_to ?? null,
})

test.each<[list: string[], merchant: Merchant, unlisted: string[]]>([
  [['maps.example'], { id: 'evil.example', url: 'https://maps.example' }, ['evil.example']],
  [['maps.example'], { id: 'maps.example', url: 'https://evil.example' }, ['evil.example']],
  [['maps.example'], { id: 'maps.example', pay_to: EVIL }, []],
  [['maps.example', GOOD], { id: 'maps.example', pay_to: EVIL }, [EVIL]],
  [['maps.example', GOOD], { id: 'maps.example', pay_to: GOOD.toLowerCase() }, []],
  [['m-1'], { id: 'm-1', url: 'https://m1.example' }, []],
  [['m-1'], { id: 'm-2', url: 'https://m1.example' }, ['m-2']],
  [['m-1'], { id: 'm1.example' }, ['m1.example']],
  [['m-1'], { id: 'a.example', url: 'https://b.example' }, ['a.example', 'b.example']],
  [['m-1', 'maps.example'], { id: 'm-1', url: 'https://evil.example' }, ['evil.example']],
  [[GOOD], { id: 'anything', url: 'https://any.example', pay_to: GOOD }, []],
  [[GOOD], { id: 'anything', pay_to: EVIL }, [EVIL]],
  [['m-1', SOLANA], { id: 'm-1', pay_to: SOLANA }, []],
  [
    ['m-1', SOLANA],
    { id: 'm-1', pay_to: 'So11111111111111111111111111111111111111113' },
    ['so11111111111111111111111111111111111111113'],
  ],
  [['maps.example:8443'], { id: 'm', url: 'https://maps.example:8443/x' }, []],
  [['maps.example:8443'], { id: 'm', url: 'https://maps.example/x' }, ['maps.example']],
  [['maps.example'], { id: 'm', url: 'https://maps.example:8443/x' }, []],
  [['countersign', GOOD], { id: 'countersign', pay_to: EVIL }, []],
  [['m-1'], { id: 'm-1', url: 'http://payments/' }, []],
  [[], { id: 'm-1' }, ['m-1']],
])('a list that allows %j has for %j still to get %j', (list, merchant, unlisted) => {
  expect(unlistedNames(list, preauth(merchant))).toEqual(unlisted)
})

test('names that the service knows to be one payee need one of them in the list', () => {
  const run = { kind: 'run' as const, merchants: ['countersign', GOOD.toLowerCase()] }
  expect(unlistedNames(['countersign', EVIL], run)).toEqual([])
  expect(unlistedNames([GOOD, 'shop'], run)).toEqual([])
  expect(unlistedNames(['shop'], run)).toEqual(['countersign'])
})

test.each([
  'evil.example',
  'EVIL.example',
  'evil.example.',
  'https://evil.example/pay',
  'https:evil.example',
  'evil.example:443',
  'evil.example:8443',
  'evil.example/',
  'evil.example/pay?x=1',
  '//evil.example',
  '\\\\evil.example',
  'ｅｖｉｌ．ｅｘａｍｐｌｅ',
  'evil。example',
  'evil%2eexample',
  'ftp://user@evil.example/',
  'maps.example@evil.example/',
])('%s is the merchant evil.example', (id) => {
  expect(findPayee(['evil.example'], preauth({ id }))?.entry).toBe('evil.example')
  expect(unlistedNames(['evil.example'], preauth({ id }))).toEqual([])
})

test('an international name is one name in both its forms', () => {
  expect(normalizePayee('bücher.example')).toBe(normalizePayee('xn--bcher-kva.example'))
})

test.each([
  ['ACME-STORE', 'acme-store'],
  ['ＡＣＭＥ-store', 'acme-store'],
  ['acme-store.', 'acme-store'],
  ['https://acme-store/', 'acme-store'],
  ['12345', '12345'],
  ['Acme Inc.', 'acme inc'],
  ['bob@acme.example', 'bob@acme.example'],
  ['acme:7', 'acme:7'],
])('%s is compared as %s', (name, normalized) => {
  expect(normalizePayee(name)).toBe(normalized)
})
