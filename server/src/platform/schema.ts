import { type TSchema, Type } from 'typebox'

export const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()])
export const nullableText = nullable(Type.String())
export const nullableNumber = nullable(Type.Number())
export const timestamp = Type.String({ format: 'date-time' })
/** A pattern with the words in which a refusal describes it: nobody is shown a regular expression. */
export const pattern = (expression: string, form: string) => ({ pattern: expression, 'x-form': form })

/** A name that people compare: what they cannot see would make two names of one. The validator of `http.ts` knows the keyword. */
export const plainName = { 'x-name': true }

export const NAME_FAULT =
  'must not begin or end with white space, have other white space than single spaces, nor invisible or control characters'

// Invisible letters: the fillers of Hangul and the blank of Braille.
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u115f\u1160\u2800\u3164\uffa0]|(?! )\s/u

export const isPlainName = (text: string): boolean =>
  text === text.trim() && !text.includes('  ') && !INVISIBLE.test(text)

export const oneOf = <const T extends readonly string[]>(values: T, options: { description?: string } = {}) =>
  Type.Unsafe<T[number]>(
    Type.Union(
      values.map((value) => Type.Literal(value)),
      options,
    ),
  )
