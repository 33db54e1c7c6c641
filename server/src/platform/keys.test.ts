import { expect, test } from 'vitest'
import { createKeys, keyPurposes } from './keys.ts'

const encryption = 'e'.repeat(40)

test('signatures of the previous key verify only while it is configured', () => {
  const old = createKeys({ signing: 'a'.repeat(40), encryption })
  const rotatedKeys = createKeys({ signing: 'b'.repeat(40), previousSigning: 'a'.repeat(40), encryption })
  const laterKeys = createKeys({ signing: 'b'.repeat(40), encryption })
  const signature = old.signer('tokens').sign('token')
  expect(rotatedKeys.signer('tokens').verify('token', signature)).toBe(true)
  expect(laterKeys.signer('tokens').verify('token', signature)).toBe(false)
  expect(rotatedKeys.signer('tokens').sign('token')).toEqual(laterKeys.signer('tokens').sign('token'))
  expect(rotatedKeys.previousSigner('log')?.keyId).toBe(old.signer('log').keyId)
  expect(laterKeys.previousSigner('log')).toBeUndefined()
})

test('a signature verifies only with the key of its own purpose', () => {
  const keys = createKeys({ signing: 'a'.repeat(40), previousSigning: 'b'.repeat(40), encryption })
  const signature = keys.signer('receipts').sign('bytes')
  expect(keyPurposes.filter((purpose) => keys.signer(purpose).verify('bytes', signature))).toEqual(['receipts'])
})
