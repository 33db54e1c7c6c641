import { privateKeyToAccount } from 'viem/accounts'
import { createSigners } from '../../src/modules/basis/signers.ts'
import type { Keys } from '../../src/platform/keys.ts'

/** The service's signers, with what a verifier outside knows of them: the key set and the two addresses. */
export function createTestSigners(keys: Keys) {
  const address = (label: string) => privateKeyToAccount(`0x${keys.evmKey(label).toString('hex')}`).address
  const marked = { basis: 'attestation', 'basis-preview': 'attestation-preview' } as const
  return {
    signers: createSigners(keys),
    addresses: { live: address('basis'), preview: address('basis-preview') },
    jwks: {
      keys: (['basis', 'basis-preview'] as const).map((purpose) => ({
        ...keys.signer(purpose).publicJwk,
        purpose: marked[purpose],
      })),
    },
  }
}
