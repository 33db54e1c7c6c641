import { Type } from 'typebox'

export const oneOf = (...choices: readonly string[]) => Type.Union(choices.map((choice) => Type.Literal(choice)))

export const nullable = <T extends Parameters<typeof Type.Union>[0][number]>(type: T) => Type.Union([type, Type.Null()])

/** An object whose fields are described elsewhere. */
export const openObject = (description: string) => Type.Object({}, { additionalProperties: true, description })

export const Id = Type.String({ minLength: 1, maxLength: 80 })
export const IdempotencyKey = Type.Optional(Type.String({ minLength: 1, maxLength: 255 }))
