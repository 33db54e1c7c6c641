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
  /** `v2.<key id>.<base64url of nonce, tag and ciphertext>`; earlier releases wrote `v1.` and no key id. */
  encrypt(plain: string): string
  /** Also opens what the keys of ENCRYPTION_KEY_PREVIOUS have encrypted. */
  decrypt(ciphertext: string): string
  encryption: {
    /** What every ciphertext of the current key begins with. */
    currentPrefix: string
    /** Whether ENCRYPTION_KEY_PREVIOUS is set. */
    hasPrevious: boolean
    isCurrent(ciphertext: string): boolean
    /** The fingerprint key that derives from the key which opens this ciphertext. */
    fingerprintKeyFor(ciphertext: string): string
  }
  /** Keyed hash (HMAC) for values that are looked up but never read back, such as API keys. */
  fingerprint(value: string): string
  /** Hashes cannot be made again without their values, so the key of the database's first start stays in use. */
  useFingerprintKey(base64: string): void
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

/** One encryption key, with the fingerprint key that derives from the same secret. */
function createCipher(secret: string) {
  const root = toKeyBytes(secret)
  const cipherKey = createSecretKey(derive(root, 'encrypt'))
  const keyId = derive(root, 'encryption-key-id').toString('hex').slice(0, 12)
  return {
    prefix: `v2.${keyId}.`,
    fingerprintKey: derive(root, 'fingerprint'),
    encrypt(plain: string): string {
      const iv = randomBytes(12)
      const cipher = createCipheriv('aes-256-gcm', cipherKey, iv)
      const body = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()])
      return `v2.${keyId}.${Buffer.concat([iv, cipher.getAuthTag(), body]).toString('base64url')}`
    },
    /** Throws when another key has encrypted it. */
    decrypt(ciphertext: string): string {
      const bytes = Buffer.from(ciphertext.slice(ciphertext.lastIndexOf('.') + 1), 'base64url')
      const decipher = createDecipheriv('aes-256-gcm', cipherKey, bytes.subarray(0, 12), { authTagLength: 16 })
      decipher.setAuthTag(bytes.subarray(12, 28))
      return Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]).toString('utf8')
    },
  }
}

/** The cipher that opens this text, with what it says. A text without a key id is tried with every key. */
function openWith(ciphers: readonly ReturnType<typeof createCipher>[], ciphertext: string) {
  const candidates = ciphertext.startsWith('v2.')
    ? ciphers.filter(({ prefix }) => ciphertext.startsWith(prefix))
    : ciphers
  for (const cipher of candidates) {
    try {
      return { cipher, plain: cipher.decrypt(ciphertext) }
    } catch {
      // Another key has encrypted it, or it was changed.
    }
  }
  throw new Error('A stored value cannot be decrypted with ENCRYPTION_KEY or ENCRYPTION_KEY_PREVIOUS.')
}

export type KeySecrets = {
  signing: string
  encryption: string
  previousSigning?: string
  previousEncryption?: readonly string[]
}

export function createKeys(secrets: KeySecrets): Keys {
  const signingRoot = toKeyBytes(secrets.signing)
  const previousRoot = secrets.previousSigning === undefined ? undefined : toKeyBytes(secrets.previousSigning)
  const previous = new Map(
    previousRoot ? keyPurposes.map((purpose) => [purpose, createSigner(previousRoot, purpose)]) : [],
  )
  const signers = new Map(
    keyPurposes.map((purpose) => [purpose, createSigner(signingRoot, purpose, previous.get(purpose))]),
  )
  const currentCipher = createCipher(secrets.encryption)
  const ciphers = [currentCipher, ...(secrets.previousEncryption ?? []).map(createCipher)]
  let hashKey = createSecretKey(currentCipher.fingerprintKey)

  return {
    signer: (purpose) => signers.get(purpose)!,
    previousSigner: (purpose) => previous.get(purpose),
    publicJwks: () => [...signers.values()].map((signer) => signer.publicJwk),
    evmKey: (label) => derive(signingRoot, `evm/${label}`),
    encrypt: currentCipher.encrypt,
    decrypt: (ciphertext) => openWith(ciphers, ciphertext).plain,
    encryption: {
      currentPrefix: currentCipher.prefix,
      hasPrevious: ciphers.length > 1,
      isCurrent: (ciphertext) => openWith(ciphers, ciphertext).cipher === currentCipher,
      fingerprintKeyFor: (ciphertext) => openWith(ciphers, ciphertext).cipher.fingerprintKey.toString('base64'),
    },
    fingerprint: (value) => createHmac('sha256', hashKey).update(value).digest('hex'),
    useFingerprintKey(base64) {
      hashKey = createSecretKey(Buffer.from(base64, 'base64'))
    },
  }
}
