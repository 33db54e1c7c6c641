/** The script that the browser test bundles for the page: the published package and a loop over the vectors. */
import { canonicalize, fromHex, type Jwk, verifyEd25519, verifyReceipt } from '../src/proof.ts'

export type PageInput = {
  jcs: { name: string; input: string; output: string }[]
  ed25519: { id: number; jwk: Jwk; msg: string; sig: string; valid: boolean }[]
  receipt: unknown
  tampered: unknown
  jwks: { keys: Jwk[] }
}

export type PageResult = {
  jcsAgree: number
  ed25519Agree: number
  receipt: ReturnType<typeof verifyReceipt>
  tampered: ReturnType<typeof verifyReceipt>
}

export function runVectors({ jcs, ed25519, receipt, tampered, jwks }: PageInput): PageResult {
  return {
    jcsAgree: jcs.filter(({ input, output }) => canonicalize(JSON.parse(input)) === output).length,
    ed25519Agree: ed25519.filter(({ jwk, msg, sig, valid }) => verifyEd25519(jwk, fromHex(msg), fromHex(sig)) === valid)
      .length,
    receipt: verifyReceipt(receipt, { jwks, log: { required: true } }),
    tampered: verifyReceipt(tampered, { jwks, log: { required: true } }),
  }
}
