import { invalid } from '../../platform/problem.ts'
import { asObject } from '../../platform/x402-wire.ts'

/** The x402 extension `payment-identifier`: an id of the client's choice that binds like an idempotency key. Version 2 only. */
const NAME = 'payment-identifier'
const MIN_LENGTH = 16
const MAX_LENGTH = 128

/** The `extensions` member of a 402, as the extension's specification writes it. */
export const paymentIdentifierOffer = {
  [NAME]: {
    info: { required: false },
    schema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: {
        required: { type: 'boolean' },
        id: { type: 'string', minLength: MIN_LENGTH, maxLength: MAX_LENGTH, pattern: '^[a-zA-Z0-9_-]+$' },
      },
      required: ['required'],
    },
  },
}

/** The `extensions` member of the answer. */
export const paymentIdentifierEcho = (id: string) => ({ [NAME]: { info: { required: false, id } } })

/** The id in a payment; undefined where there is none, as in the declaration that clients send back unchanged. */
export function readPaymentIdentifier(payload: unknown): string | undefined {
  const info = asObject(asObject(asObject(asObject(payload)?.extensions)?.[NAME])?.info)
  if (!info || info.id === undefined) return undefined
  const { id } = info
  if (typeof id !== 'string' || id.length < MIN_LENGTH || id.length > MAX_LENGTH || !/^[\w-]+$/.test(id))
    throw invalid(`A payment identifier is ${MIN_LENGTH} to ${MAX_LENGTH} letters, digits, hyphens and underscores.`)
  return id
}
