import { createHmac, randomBytes } from 'node:crypto'

/** Standard Webhooks: `whsec_` and 32 random bytes in base64. */
export const makeSigningSecret = () => `whsec_${randomBytes(32).toString('base64')}`

export type Message = { id: string; timestamp: number; body: string }

/** One signature for each secret that is valid now; the receiver accepts the message if it knows any of them. */
export function signMessage(secrets: readonly string[], { id, timestamp, body }: Message): string {
  return secrets
    .map((secret) => {
      const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
      return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`
    })
    .join(' ')
}
