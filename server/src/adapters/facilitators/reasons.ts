/** Reasons for refusing a payment: the codes that x402's reference facilitator for EVM chains uses. */
export const REASON = {
  scheme: 'invalid_exact_evm_scheme',
  network: 'invalid_exact_evm_network_mismatch',
  domain: 'invalid_exact_evm_missing_eip712_domain',
  asset: 'asset_not_deployed_contract',
  recipient: 'invalid_exact_evm_recipient_mismatch',
  signature: 'invalid_exact_evm_signature',
  validBefore: 'invalid_exact_evm_payload_authorization_valid_before',
  validAfter: 'invalid_exact_evm_payload_authorization_valid_after',
  value: 'invalid_exact_evm_payload_authorization_value_mismatch',
  nonceUsed: 'invalid_exact_evm_nonce_already_used',
  balance: 'invalid_exact_evm_insufficient_balance',
  simulation: 'invalid_exact_evm_transaction_simulation_failed',
  transaction: 'invalid_exact_evm_transaction_failed',
  payload: 'invalid_payload',
  pending: 'settlement_pending',
} as const

/** The reason behind the token's revert message; undefined when the message is not a known one. */
export function reasonFromRevert(text: string | undefined): string | undefined {
  if (!text) return undefined
  if (/authorization is not yet valid/i.test(text)) return REASON.validAfter
  if (/authorization is expired/i.test(text)) return REASON.validBefore
  if (/authorization is used or canceled/i.test(text)) return REASON.nonceUsed
  if (/exceeds balance/i.test(text)) return REASON.balance
  if (/invalid signature/i.test(text)) return REASON.signature
  return undefined
}
