import { expect, test } from 'vitest'
import { createKeys, keyPurposes } from './keys.ts'

const encryption = 'e'.repeat(40)

test('signatures of the previous key verify only while it is configured', () => {
  const old = createKeys({ signing: 'a'.repeat(40), encryption })
  const rotated = createKeys({ signing: 'b'.repeat(40), previousSigning: 'a'.repeat(40), encryption })
  const later = createKeys({ signing: 'b'.repeat(40), encryption })
  const signature = old.signer('tokens').sign('token')
  expect(rotated.signer('tokens').verify('token', signature)).toBe(true)
  expect(later.signer('tokens').verify('token', signature)).toBe(false)
  expect(rotated.signer('tokens').sign('token')).toEqual(later.signer('tokens').sign('token'))
  expect(rotated.previousSigner('log')?.keyId).toBe(old.signer('log').keyId)
  expect(later.previousSigner('log')).toBeUndefined()
})

test('a signature verifies only with the key of its own purpose', () => {
  const keys = createKeys({ signing: 'a'.repeat(40), previousSigning: 'b'.repeat(40), encryption })
  const signature = keys.signer('receipts').sign('bytes')
  expect(keyPurposes.filter((purpose) => keys.signer(purpose).verify('bytes', signature))).toEqual(['receipts'])
})
