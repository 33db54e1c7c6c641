import type { Jwks } from '@countersign/proof'
import { parseKeySet } from './verify-evidence.ts'

export const SERVICE_KEYS = 'Keys of this service'
export const PASTED_KEYS = 'Pasted keys'

/** The key set that verification trusts. Pasted keys never fall back to those of the service. */
export function selectTrustedKeys(
  source: string,
  pastedText: string,
  serviceKeys: Jwks | undefined,
): { jwks: Jwks } | { error: string } {
  if (source === PASTED_KEYS) return parseKeySet(pastedText)
  return serviceKeys
    ? { jwks: serviceKeys }
    : { error: 'The keys of this service could not be loaded: paste them instead.' }
}
