import type { KeyPurpose, Keys } from '../../platform/keys.ts'
import type { Signers } from './attest.ts'
import type { Mode } from './attestation.ts'

const purposes = { live: 'basis', preview: 'basis-preview' } as const satisfies Record<Mode, KeyPurpose>

/** The keys of the service for each mode. The secp256k1 side is loaded when the first attestation is asked for. */
export function createSigners(keys: Pick<Keys, 'signer' | 'evmKey'>): Signers {
  const signersOf = (purpose: (typeof purposes)[Mode]): Signers[Mode] => {
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
      async cosign({ domain, types, primaryType, message }) {
        const signer = await account()
        const { asOf, validUntil, seq, wrapperPriceE6, referencePriceE6, basisBpsE2, ratioE9, ...texts } = message
        const integers = { asOf, validUntil, seq, wrapperPriceE6, referencePriceE6, basisBpsE2, ratioE9 }
        const exact = Object.fromEntries(Object.entries(integers).map(([name, value]) => [name, BigInt(value)]))
        const value = await signer.signTypedData({
          domain,
          types,
          primaryType,
          message: { ...texts, ...exact } as never,
        })
        return { signer: signer.address, value }
      },
    }
  }
  return { live: signersOf(purposes.live), preview: signersOf(purposes.preview) }
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined
  return () => {
    made ??= make()
    return made
  }
}
