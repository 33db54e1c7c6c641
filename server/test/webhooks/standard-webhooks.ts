import { Webhook } from 'standardwebhooks'

/** Verifies a delivery as a receiver with the Standard Webhooks library does; throws when no signature is by this secret. */
export const verifyDelivery = (secret: string, body: string, headers: Record<string, string>): unknown =>
  new Webhook(secret).verify(body, headers)
