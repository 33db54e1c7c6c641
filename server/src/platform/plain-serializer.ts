import { SerializerSelector } from '@fastify/fast-json-stringify-compiler'
import type { FastifyServerOptions } from 'fastify'

type Schema = { [keyword: string]: unknown }
type BuildSerializer = NonNullable<
  NonNullable<NonNullable<FastifyServerOptions['schemaController']>['compilersFactory']>['buildSerializer']
>

/**
 * Builds the functions that write responses. For a union the library would validate each value to know which member it is,
 * and compile the validator while the first caller and everybody else waits; most unions can be written without.
 */
export const buildPlainSerializer: BuildSerializer = (externalSchemas, options) => {
  const build = SerializerSelector()(externalSchemas, options)
  return (route) => build({ ...route, schema: withPlainUnions(route.schema) as Schema })
}

/** The same schema, with `anyOf` replaced where the types of the values tell the members apart. */
export function withPlainUnions(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withPlainUnions)
  if (typeof schema !== 'object' || schema === null) return schema
  const plain = Object.fromEntries(Object.entries(schema).map(([keyword, value]) => [keyword, withPlainUnions(value)]))
  const union = Array.isArray(plain.anyOf) ? joinMembers(plain.anyOf) : undefined
  if (!union) return plain
  const { anyOf: _, ...rest } = plain
  return { ...rest, ...union }
}

const SCALARS = new Set<unknown>(['string', 'number', 'integer', 'boolean'])

function joinMembers(members: readonly Schema[]): Schema | undefined {
  const values = members.filter(({ type }) => type !== 'null')
  const nullable = values.length < members.length ? { nullable: true } : {}
  const [first, ...others] = values
  if (!first || typeof first.type !== 'string') return undefined
  if (others.length === 0) return { ...first, ...nullable }
  const isOneScalar = SCALARS.has(first.type) && others.every(({ type }) => type === first.type)
  return isOneScalar ? { type: first.type, ...nullable } : undefined
}
