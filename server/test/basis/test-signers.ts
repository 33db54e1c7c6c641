import { privateKeyToAccount } from 'viem/accounts'
import { createAttestationSigners } from '../../src/modules/basis/attestation-signers.ts'
import type { Keys } from '../../src/platform/keys.ts'

/** The service's signers with their public side: the key set and the two EVM addresses. */
export function createTestSigners(keys: Keys) {
  const addressOf = (purpose: string) => privateKeyToAccount(`0x${keys.evmKey(purpose).toString('hex')}`).address
  const publishedPurpose = { basis: 'attestation', 'basis-preview': 'attestation-preview' } as const
  return {
    signers: createAttestationSigners(keys),
    addresses: { live: addressOf('basis'), preview: addressOf('basis-preview') },
    jwks: {
      keys: (['basis', 'basis-preview'] as const).map((purpose) => ({
        ...keys.signer(purpose).publicJwk,
        purpose: publishedPurpose[purpose],
      })),
    },
  }
}
