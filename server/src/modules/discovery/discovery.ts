import type { Clock } from '../../platform/clock.ts'
import type { Lane } from '../catalog/price-list.ts'
import type { PaymentTerms } from '../payments/facilitator.ts'
import type { PaymentRequired } from '../payments/x402.ts'

/** What the discovery documents are made of. */
export type DiscoveryDeps = {
  publicUrl: () => string
  clock: Clock
  /** The current price list, another object after every change. */
  lanes: () => readonly Lane[]
  /** When the price list was last changed. */
  updatedAt: () => Date
  /** The 402 that a probe of this path gets, as x402 version 2 has it. */
  paymentRequired(kind: PaidCall['kind']): PaymentRequired
  priceRange(kind: PaidCall['kind']): { minMicro: bigint; maxMicro: bigint }
  settlement: Pick<PaymentTerms, 'network' | 'asset' | 'payTo'>
  /** The OpenAPI description of the running service. */
  describeApi: () => object
  securityContact: string | undefined
  /** The tools of `/mcp` that are paid for by x402. */
  paidTools: () => readonly PaidTool[]
}

export type PaidCall = { kind: 'run' | 'loop'; path: string; purpose: string }

/** A tool that makes a paid call. */
export type PaidTool = {
  name: string
  kind: PaidCall['kind']
  description: string
  inputSchema: object
  example: object
}

/** The calls that anybody may pay for, in the order of the price list. */
export const paidCalls: readonly PaidCall[] = [
  { kind: 'run', path: '/api/run', purpose: 'Routes, executes, verifies, settles and attests one task.' },
  { kind: 'loop', path: '/api/loop', purpose: 'The execution primitive below a run, at the base price of its lane.' },
]

export const SERVICE_NAME = 'Countersign'
export const SUMMARY =
  'Execution, payment and attestation for autonomous agents: send a task, pay for it by x402 in USDC on Base, get the output with a signed receipt.'
