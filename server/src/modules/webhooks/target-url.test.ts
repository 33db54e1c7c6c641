import { expect, test } from 'vitest'
import { checkTargetUrl, isPublicAddress } from './target-url.ts'

const production = { allowLoopback: false }
const development = { allowLoopback: true }

test.each([
  'https://127.0.0.1/',
  'https://2130706433/',
  'https://0x7f000001/',
  'https://0x7f.1/',
  'https://0177.0.0.1/',
  'https://017700000001/',
  'https://127.1/',
  'https://0/',
  'https://0.0.0.0/',
  'https://10.1.2.3/',
  'https://172.31.255.255/',
  'https://192.168.0.1/',
  'https://169.254.169.254/latest/meta-data',
  'https://100.64.0.1/',
  'https://198.18.0.1/',
  'https://224.0.0.1/',
  'https://255.255.255.255/',
  'https://[::1]/',
  'https://[::]/',
  'https://[::ffff:127.0.0.1]/',
  'https://[::ffff:7f00:1]/',
  'https://[::ffff:10.0.0.1]/',
  'https://[::127.0.0.1]/',
  'https://[64:ff9b::7f00:1]/',
  'https://[64:ff9b:1::a00:1]/',
  'https://[2002:7f00:1::]/',
  'https://[2001:0:7f00:1::]/',
  'https://[fd00::1]/',
  'https://[fe80::1]/',
  'https://[ff02::1]/',
  'https://localhost/',
  'https://LOCALHOST./',
  'https://127。0。0。1/',
])('%s is refused as not public', (url) => {
  expect(() => checkTargetUrl(url, production)).toThrow('public address')
})

test.each([
  'http://example.com/hook',
  'ftp://example.com/',
  'file:///etc/passwd',
  'gopher://example.com/',
  'javascript:alert(1)',
  'example.com/hook',
  '',
  'https://',
  'https://user:secret@example.com/',
])('%s is not a valid webhook URL', (url) => {
  expect(() => checkTargetUrl(url, production)).toThrow(
    /^url (is not a valid address|must start with https|must not contain)/,
  )
})

test('a URL of more than 2,048 characters is refused', () => {
  expect(() => checkTargetUrl(`https://example.com/${'x'.repeat(2048)}`, production)).toThrow(
    'url is not a valid address',
  )
})

test('public addresses and names are accepted, without their fragment', () => {
  for (const url of ['https://example.com/hook', 'https://8.8.8.8:8443/', 'https://[2606:4700::1111]/', 'https://1.1/'])
    expect(checkTargetUrl(url, production)).toBe(new URL(url).href)
  expect(checkTargetUrl('https://example.com/a?b=c#d', production)).toBe('https://example.com/a?b=c')
})

test('in development, loopback names and addresses are allowed over http too, and nothing else is', () => {
  for (const url of ['http://127.0.0.1:9/x', 'http://localhost:9/x', 'http://[::1]:9/x', 'https://127.0.0.1/'])
    expect(checkTargetUrl(url, development)).toBe(url)
  for (const url of ['http://10.0.0.1/', 'http://example.com/', 'https://192.168.1.1/', 'http://0.0.0.0/'])
    expect(() => checkTargetUrl(url, development)).toThrow(/^url must (start with https|lead to a public address)/)
})

test('the Azure metadata address is not public', () => {
  expect(isPublicAddress('168.63.129.16')).toBe(false)
  expect(() => checkTargetUrl('https://168.63.129.16/', production)).toThrow('public address')
})

test('text that is not an IP address, or has a zone id, is not public', () => {
  for (const text of ['', 'example.com', '1.2.3', 'fe80::1%eth0', '2606:4700::1111%1'])
    expect(isPublicAddress(text)).toBe(false)
})
