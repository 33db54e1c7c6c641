import type { Authorization, Hex } from '../../modules/payments/facilitator.ts'
import { bytesOf, hexOf } from '../chain/codec.ts'
import { USDC } from '../chain/edr.ts'
import { authorizationDigest } from '../facilitators/authorization.ts'
import { loadCurve } from '../facilitators/recover.ts'

const CHAIN_ID = 8453

/** Signs for the address that payments go to, if one of these keys is its key. */
export function payeeSigner(
  payTo: Hex,
  privateKeys: readonly Uint8Array[],
): ((authorization: Authorization) => Promise<Hex>) | undefined {
  const curve = loadCurve()
  const key = privateKeys.find((one) => curve.addressOf(one).toLowerCase() === payTo.toLowerCase())
  if (!key) return undefined
  return async (authorization) => {
    const digest = authorizationDigest(authorization, {
      name: 'USD Coin',
      version: '2',
      chainId: CHAIN_ID,
      asset: USDC,
    })
    const { compact, recovery } = curve.sign(digest, key)
    return `${hexOf(compact)}${(27 + recovery).toString(16)}` as Hex
  }
}

export const keyBytes = (privateKey: Hex): Uint8Array => bytesOf(privateKey)
