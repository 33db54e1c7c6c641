import { sha256 as nobleSha256 } from '@noble/hashes/sha2.js'

export const HASH_BYTES = 32

export const sha256 = (bytes: Uint8Array): Uint8Array => nobleSha256(bytes)
