/**
 * Signatures on secp256k1, by the fastest library that works here: the native one, then WebAssembly, then JavaScript.
 * They differ fifteenfold in speed and nothing else; a library must pass a self-test before it is used.
 */
import { createRequire } from 'node:module'
import type { Hex } from '../../modules/payments/facilitator.ts'
import { keccak, toBytes, toHex } from '../chain/codec.ts'

export type Curve = {
  name: 'native' | 'wasm' | 'javascript'
  /** The address that signed, or undefined when no key could have made this signature. `compact` is r and s, 64 bytes. */
  recover(digest: Uint8Array, compact: Uint8Array, recovery: 0 | 1): Hex | undefined
  sign(digest: Uint8Array, privateKey: Uint8Array): { compact: Uint8Array; recovery: number }
  addressOf(privateKey: Uint8Array): Hex
}

type Library = {
  recover(digest: Uint8Array, compact: Uint8Array, recovery: 0 | 1): Uint8Array | null
  sign(digest: Uint8Array, privateKey: Uint8Array): { compact: Uint8Array; recovery: number }
  publicKey(privateKey: Uint8Array): Uint8Array | null
}

const require = createRequire(import.meta.url)

const LIBRARIES: { name: Curve['name']; load(): Library }[] = [
  { name: 'native', load: loadNative },
  { name: 'wasm', load: loadWasm },
  { name: 'javascript', load: loadJavascript },
]

let activeCurve: Curve | undefined

/** The fastest library that works, chosen once per process. */
export function loadCurve(log?: { info(fields: object, message: string): void }): Curve {
  if (activeCurve) return activeCurve
  const reasons: string[] = []
  for (const { name, load } of LIBRARIES) {
    try {
      activeCurve = runSelfTest(toCurve(name, load()))
      log?.info(
        { secp256k1: name, ...(reasons.length > 0 ? { passed_over: reasons } : {}) },
        'signature library chosen',
      )
      return activeCurve
    } catch (error) {
      reasons.push(`${name}: ${error instanceof Error ? error.message.split('\n')[0] : String(error)}`)
    }
  }
  throw new Error(`No secp256k1 library works here. ${reasons.join('; ')}`)
}

/** One library by name, for tests that compare them. */
export const loadCurveByName = (name: Curve['name']): Curve =>
  runSelfTest(toCurve(name, LIBRARIES.find((library) => library.name === name)!.load()))

function toCurve(name: Curve['name'], library: Library): Curve {
  const addressOfPublicKey = (publicKey: Uint8Array) => toHex(keccak(publicKey.subarray(1)).subarray(12))
  return {
    name,
    recover(digest, compact, recovery) {
      try {
        const publicKey = library.recover(digest, compact, recovery)
        return publicKey ? addressOfPublicKey(publicKey) : undefined
      } catch {
        return undefined
      }
    },
    sign: (digest, privateKey) => library.sign(digest, privateKey),
    addressOf(privateKey) {
      const publicKey = library.publicKey(privateKey)
      if (!publicKey) throw new Error('not a private key')
      return addressOfPublicKey(publicKey)
    },
  }
}

const TEST_VECTOR = {
  privateKey: toBytes(`${'00'.repeat(31)}01`),
  address: '0x7e5f4552091a69125d5dfcb7b8c2659029395bdf',
  digest: keccak(Buffer.from('countersign')),
}

function runSelfTest(curve: Curve): Curve {
  const { compact, recovery } = curve.sign(TEST_VECTOR.digest, TEST_VECTOR.privateKey)
  const passed =
    curve.addressOf(TEST_VECTOR.privateKey) === TEST_VECTOR.address &&
    curve.recover(TEST_VECTOR.digest, compact, recovery === 1 ? 1 : 0) === TEST_VECTOR.address &&
    curve.recover(TEST_VECTOR.digest, compact, recovery === 1 ? 0 : 1) !== TEST_VECTOR.address &&
    curve.recover(TEST_VECTOR.digest, new Uint8Array(64), 0) === undefined
  if (!passed) throw new Error('failed its self-test')
  return curve
}

/** Requires the bindings directly, because the package's entry point silently falls back to slow JavaScript. */
function loadNative(): Library {
  const secp = require('secp256k1/bindings.js') as {
    ecdsaRecover(compact: Uint8Array, recovery: number, digest: Uint8Array, compressed: boolean): Uint8Array
    ecdsaSign(digest: Uint8Array, privateKey: Uint8Array): { signature: Uint8Array; recid: number }
    publicKeyCreate(privateKey: Uint8Array, compressed: boolean): Uint8Array
  }
  return {
    recover: (digest, compact, recovery) => secp.ecdsaRecover(compact, recovery, digest, false),
    sign(digest, privateKey) {
      const { signature, recid } = secp.ecdsaSign(digest, privateKey)
      return { compact: signature, recovery: recid }
    },
    publicKey: (privateKey) => secp.publicKeyCreate(privateKey, false),
  }
}

function loadWasm(): Library {
  const secp = require('tiny-secp256k1') as typeof import('tiny-secp256k1')
  return {
    recover: (digest, compact, recovery) => secp.recover(digest, compact, recovery, false),
    sign(digest, privateKey) {
      const { signature, recoveryId } = secp.signRecoverable(digest, privateKey)
      return { compact: signature, recovery: recoveryId }
    },
    publicKey: (privateKey) => secp.pointFromScalar(privateKey, false),
  }
}

function loadJavascript(): Library {
  const { secp256k1 } = require('@noble/curves/secp256k1.js') as typeof import('@noble/curves/secp256k1.js')
  return {
    recover(digest, compact, recovery) {
      const signature = secp256k1.Signature.fromBytes(compact, 'compact').addRecoveryBit(recovery)
      return signature.recoverPublicKey(digest).toBytes(false)
    },
    sign(digest, privateKey) {
      const signature = secp256k1.sign(digest, privateKey, { prehash: false, format: 'recovered' })
      return { compact: signature.subarray(1), recovery: signature[0]! }
    },
    publicKey: (privateKey) => secp256k1.getPublicKey(privateKey, false),
  }
}
