import { isObject } from './json-schema.ts'

/** `rules[0].value` as its parts. */
export const toPath = (path: string): (string | number)[] =>
  [...path.matchAll(/([^.[\]]+)|\[(\d+)\]/g)].map(([, name, index]) => name ?? Number(index))

export const readAt = (value: unknown, path: readonly (string | number)[]): unknown =>
  path.reduce<unknown>((part, name) => (part as Record<string | number, unknown> | undefined)?.[name], value)

/** The value with another member at a path; without a member it is taken away. */
export function setAt<T>(value: T, path: readonly (string | number)[], member: unknown): T {
  const [first, ...rest] = path
  if (first === undefined) return member as T
  if (Array.isArray(value)) {
    const index = Number(first)
    const changed = [...value]
    if (rest.length === 0 && member === undefined) changed.splice(index, 1)
    else changed[index] = setAt(changed[index], rest, member)
    return changed as T
  }
  const object = { ...(isObject(value) ? value : {}) }
  if (rest.length === 0 && member === undefined) delete object[first]
  else object[first] = setAt(object[first] ?? (typeof rest[0] === 'number' ? [] : {}), rest, member)
  return object as T
}
