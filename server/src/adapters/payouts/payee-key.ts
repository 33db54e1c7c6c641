import type { Authorization, Hex } from '../../modules/payments/facilitator.ts'
import { toBytes, toHex } from '../chain/codec.ts'
import { USDC } from '../chain/edr.ts'
import { authorizationDigest } from '../facilitators/authorization.ts'
import { loadCurve } from '../facilitators/secp256k1.ts'

const CHAIN_ID = 8453

/** A signer for the address that receives payments; undefined when none of these keys belongs to it. */
export function createPayeeSigner(
  payTo: Hex,
  privateKeys: readonly Uint8Array[],
): ((authorization: Authorization) => Promise<Hex>) | undefined {
  const curve = loadCurve()
  const key = privateKeys.find((privateKey) => curve.addressOf(privateKey).toLowerCase() === payTo.toLowerCase())
  if (!key) return undefined
  return async (authorization) => {
    const digest = authorizationDigest(authorization, {
      name: 'USD Coin',
      version: '2',
      chainId: CHAIN_ID,
      asset: USDC,
    })
    const { compact, recovery } = curve.sign(digest, key)
    return `${toHex(compact)}${(27 + recovery).toString(16)}` as Hex
  }
}

export const toKeyBytes = (privateKey: Hex): Uint8Array => toBytes(privateKey)
