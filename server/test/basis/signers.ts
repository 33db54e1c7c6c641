import { privateKeyToAccount } from 'viem/accounts'
import type { Signers } from '../../src/modules/basis/attest.ts'
import type { Mode } from '../../src/modules/basis/attestation.ts'
import type { KeyPurpose, Keys } from '../../src/platform/keys.ts'

/** The signers as the service wires them: one pair of keys a mode, and the key set that verifiers get. */
export function createTestSigners(keys: Keys) {
  const account = (label: string) => privateKeyToAccount(`0x${keys.evmKey(label).toString('hex')}`)
  const signersOf = (purpose: Extract<KeyPurpose, 'basis' | 'basis-preview'>): Signers[Mode] => ({
    sign(bytes) {
      const signer = keys.signer(purpose)
      return { alg: 'ed25519', key_id: signer.keyId, value: signer.sign(bytes).toString('base64') }
    },
    evmAddress: account(purpose).address,
    async cosign(typed) {
      const signer = account(purpose)
      return { signer: signer.address, value: await signer.signTypedData(typed as never) }
    },
  })
  const marked = { basis: 'attestation', 'basis-preview': 'attestation-preview' } as const
  return {
    signers: { live: signersOf('basis'), preview: signersOf('basis-preview') } satisfies Signers,
    addresses: { live: account('basis').address, preview: account('basis-preview').address },
    jwks: {
      keys: (['basis', 'basis-preview'] as const).map((purpose) => ({
        ...keys.signer(purpose).publicJwk,
        purpose: marked[purpose],
      })),
    },
  }
}
