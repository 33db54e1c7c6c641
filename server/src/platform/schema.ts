import { type TSchema, Type } from 'typebox'

export const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()])
export const nullableText = nullable(Type.String())
export const nullableNumber = nullable(Type.Number())
export const timestamp = Type.String({ format: 'date-time' })
/** A pattern with the words in which a refusal describes it: nobody is shown a regular expression. */
export const pattern = (expression: string, form: string) => ({ pattern: expression, 'x-form': form })

export const oneOf = <const T extends readonly string[]>(values: T, options: { description?: string } = {}) =>
  Type.Unsafe<T[number]>(
    Type.Union(
      values.map((value) => Type.Literal(value)),
      options,
    ),
  )
