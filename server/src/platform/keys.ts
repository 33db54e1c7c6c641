import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
  sign,
  verify,
} from 'node:crypto'
import { canonicalJson } from './canonical.ts'

/** All signing keys derive from one secret, one key for each purpose, so that the receipt key signs nothing else. */
export const keyPurposes = ['receipts', 'log', 'tokens', 'quotes', 'statements', 'basis', 'basis-preview'] as const
export type KeyPurpose = (typeof keyPurposes)[number]

export type PublicJwk = {
  kty: 'OKP'
  crv: 'Ed25519'
  x: string
  kid: string
  use: 'sig'
  alg: 'EdDSA'
  purpose: KeyPurpose
}

export type Signer = {
  purpose: KeyPurpose
  keyId: string
  publicJwk: PublicJwk
  publicKey: Buffer
  privateKey: KeyObject
  sign(bytes: Uint8Array | string): Buffer
  /** Also accepts signatures of the previous key: issued tokens stay valid after a rotation. */
  verify(bytes: Uint8Array | string, signature: Uint8Array): boolean
}

export type Keys = {
  signer(purpose: KeyPurpose): Signer
  /** The signer of SIGNING_KEY_PREVIOUS, used while verifiers change over. */
  previousSigner(purpose: KeyPurpose): Signer | undefined
  publicJwks(): PublicJwk[]
  /** A 32-byte secp256k1 private key for EIP-712 co-signatures. */
  evmKey(label: string): Buffer
  encrypt(plain: string): string
  decrypt(ciphertext: string): string
  /** Keyed hash (HMAC) for values that are looked up but never read back, such as API keys. */
  fingerprint(value: string): string
}

/** 32 bytes in hexadecimal or base64 are used as they are; any other secret is hashed to 32 bytes. */
function toKeyBytes(secret: string): Buffer {
  if (/^(0x)?[0-9a-fA-F]{64}$/.test(secret)) return Buffer.from(secret.replace(/^0x/, ''), 'hex')
  const decoded = Buffer.from(secret, 'base64')
  return decoded.length === 32 ? decoded : createHash('sha256').update(secret).digest()
}

const derive = (root: Buffer, label: string) => Buffer.from(hkdfSync('sha256', root, '', `countersign/${label}`, 32))

// PKCS#8 wrapping of a raw ed25519 seed (RFC 8410).
const PKCS8_ED25519 = Buffer.from('302e020100300506032b657004220420', 'hex')

function createSigner(root: Buffer, purpose: KeyPurpose, previous?: Signer): Signer {
  const seed = derive(root, `sign/${purpose}`)
  const privateKey = createPrivateKey({ key: Buffer.concat([PKCS8_ED25519, seed]), format: 'der', type: 'pkcs8' })
  const publicKey = createPublicKey(privateKey)
  const { x } = publicKey.export({ format: 'jwk' }) as { x: string }
  const keyId = createHash('sha256')
    .update(canonicalJson({ crv: 'Ed25519', kty: 'OKP', x }))
    .digest('base64url')
  return {
    purpose,
    keyId,
    privateKey,
    publicKey: Buffer.from(x, 'base64url'),
    publicJwk: { kty: 'OKP', crv: 'Ed25519', x, kid: keyId, use: 'sig', alg: 'EdDSA', purpose },
    sign: (bytes) => sign(null, Buffer.from(bytes), privateKey),
    verify: (bytes, signature) =>
      verify(null, Buffer.from(bytes), publicKey, signature) || (previous?.verify(bytes, signature) ?? false),
  }
}

export function createKeys(secrets: { signing: string; encryption: string; previousSigning?: string }): Keys {
  const signingRoot = toKeyBytes(secrets.signing)
  const previousRoot = secrets.previousSigning === undefined ? undefined : toKeyBytes(secrets.previousSigning)
  const encryptionRoot = toKeyBytes(secrets.encryption)
  const previous = new Map(
    previousRoot ? keyPurposes.map((purpose) => [purpose, createSigner(previousRoot, purpose)]) : [],
  )
  const signers = new Map(
    keyPurposes.map((purpose) => [purpose, createSigner(signingRoot, purpose, previous.get(purpose))]),
  )
  const cipherKey = createSecretKey(derive(encryptionRoot, 'encrypt'))
  const hashKey = createSecretKey(derive(encryptionRoot, 'fingerprint'))

  return {
    signer: (purpose) => signers.get(purpose)!,
    previousSigner: (purpose) => previous.get(purpose),
    publicJwks: () => [...signers.values()].map((signer) => signer.publicJwk),
    evmKey: (label) => derive(signingRoot, `evm/${label}`),
    encrypt(plain) {
      const iv = randomBytes(12)
      const cipher = createCipheriv('aes-256-gcm', cipherKey, iv)
      const body = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()])
      return `v1.${Buffer.concat([iv, cipher.getAuthTag(), body]).toString('base64url')}`
    },
    decrypt(ciphertext) {
      const bytes = Buffer.from(ciphertext.replace(/^v1\./, ''), 'base64url')
      const decipher = createDecipheriv('aes-256-gcm', cipherKey, bytes.subarray(0, 12))
      decipher.setAuthTag(bytes.subarray(12, 28))
      return Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]).toString('utf8')
    },
    fingerprint: (value) => createHmac('sha256', hashKey).update(value).digest('hex'),
  }
}
