import type { KeyPurpose, Keys } from '../../platform/keys.ts'
import type { AttestationSigners } from './attestation.ts'
import type { AttestationMode } from './attestation-content.ts'

const KEY_PURPOSES = { live: 'basis', preview: 'basis-preview' } as const satisfies Record<AttestationMode, KeyPurpose>

/** Signs with the service's keys of each mode. The secp256k1 library is loaded for the first attestation. */
export function createAttestationSigners(keys: Pick<Keys, 'signer' | 'evmKey'>): AttestationSigners {
  const createSigner = (purpose: (typeof KEY_PURPOSES)[AttestationMode]): AttestationSigners[AttestationMode] => {
    const account = once(async () => {
      const { privateKeyToAccount } = await import('viem/accounts')
      return privateKeyToAccount(`0x${keys.evmKey(purpose).toString('hex')}`)
    })
    return {
      sign(bytes) {
        const signer = keys.signer(purpose)
        return { alg: 'ed25519', key_id: signer.keyId, value: signer.sign(bytes).toString('base64') }
      },
      evmAddress: async () => (await account()).address,
      async signTypedData({ domain, types, primaryType, message }) {
        const signer = await account()
        const { asOf, validUntil, seq, wrapperPriceE6, referencePriceE6, basisBpsE2, ratioE9, ...texts } = message
        const integers = { asOf, validUntil, seq, wrapperPriceE6, referencePriceE6, basisBpsE2, ratioE9 }
        const bigints = Object.fromEntries(Object.entries(integers).map(([name, value]) => [name, BigInt(value)]))
        const value = await signer.signTypedData({
          domain,
          types,
          primaryType,
          message: { ...texts, ...bigints } as never,
        })
        return { signer: signer.address, value }
      },
    }
  }
  return { live: createSigner(KEY_PURPOSES.live), preview: createSigner(KEY_PURPOSES.preview) }
}

function once<T>(create: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined
  return () => {
    result ??= create()
    return result
  }
}
