import { Type } from 'typebox'

/** An object whose fields are described elsewhere. */
export const openObject = (description: string) => Type.Object({}, { additionalProperties: true, description })

export const Id = Type.String({ minLength: 1, maxLength: 80 })
export const IdempotencyKey = Type.Optional(Type.String({ minLength: 1, maxLength: 255 }))
