import { formatUsdc } from '../format.ts'
import { isObject } from '../schema/json-schema.ts'

export const constraintLabel = (name: string) =>
  `${name[0]!.toUpperCase()}${name.slice(1).replaceAll('_', ' ')}`
    .replace(/ usdc$/, ' (USDC)')
    .replace(/ utc$/, ' (UTC)')

/** A limit in words, such as “Max per run: 0.02 USDC”. */
export function describeConstraint(name: string, value: unknown): string {
  const label = constraintLabel(name).replace(/ \(USDC\)$/, '')
  if (name.endsWith('_usdc') && typeof value === 'number') return `${label}: ${formatUsdc(value)}`
  if (Array.isArray(value)) return `${label}: ${value.length === 0 ? 'none' : value.join(', ')}`
  if (typeof value === 'boolean') return `${label}: ${value ? 'yes' : 'no'}`
  if (isObject(value) && 'start' in value) return `${label}: from ${value.start} up to ${value.end}`
  return `${label}: ${typeof value === 'object' ? JSON.stringify(value) : String(value)}`
}
