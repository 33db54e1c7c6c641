/** Thrown by functions that build something from the caller's values. Verifiers never throw. */
export class ProofError extends Error {
  override readonly name = 'ProofError'
}
