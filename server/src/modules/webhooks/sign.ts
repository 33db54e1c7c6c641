import { createHmac, randomBytes } from 'node:crypto'

/** Standard Webhooks: `whsec_` and 32 random bytes in base64. */
export const generateSigningSecret = () => `whsec_${randomBytes(32).toString('base64')}`

export type Message = { id: string; timestamp: number; body: string }

/** One signature for each valid secret; the receiver accepts the message if any of them verifies. */
export function signMessage(secrets: readonly string[], { id, timestamp, body }: Message): string {
  return secrets
    .map((secret) => {
      const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
      return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`
    })
    .join(' ')
}
