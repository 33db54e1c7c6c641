/** Thrown by functions that build something out of the caller's own values. Verifiers answer, they do not throw. */
export class ProofError extends Error {
  override readonly name = 'ProofError'
}
