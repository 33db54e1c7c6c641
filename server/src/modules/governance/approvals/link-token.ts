import { createHash, randomBytes } from 'node:crypto'

const TOKEN_BYTES = 32
export const LINK_TOKEN = /^[A-Za-z0-9_-]{43}$/

/** 256 random bits: it is the only credential of the page behind a link. */
export const createLinkToken = () => randomBytes(TOKEN_BYTES).toString('base64url')

export const hashLinkToken = (token: string) => createHash('sha256').update(token).digest('hex')
