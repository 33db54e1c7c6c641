import type { ApiResponse } from '@countersign/sdk'
import type { Tone } from '../components/ui.tsx'
import { formatMilliseconds, formatUsdc } from '../format.ts'
import { routeHref } from '../route.ts'

export type Run = ApiResponse<'/api/runs/{id}', 'get'>
export type RunSettlement = ApiResponse<'/api/settlements', 'get'>['settlements'][number]
export type RunReceipt = ApiResponse<'/api/receipts/{id}', 'get'>

/** One step of a run: what happened, when, and what it decided. */
export type TimelineStep = {
  name: 'Route' | 'Policy' | 'Payment' | 'Work' | 'Verification' | 'Settlement' | 'Receipt' | 'Log'
  tone: Tone
  text: string
  at: string | null
  /** Facts below the text. */
  facts: string[]
  link?: { href: string; text: string }
}

// biome-ignore lint/suspicious/noExplicitAny: the stored answer has a member for each outcome, and each is checked before it is read
type Answer = Record<string, any>

/** The way of a run from the request to the public log, from its stored answer and what its parts say now. */
export function toTimeline(run: Run, settlement?: RunSettlement, receipt?: RunReceipt): TimelineStep[] {
  const answer: Answer = (run.answer?.body as Answer | undefined) ?? {}
  const steps = [routeStep(run, answer), policyStep(run, answer)]
  if (isRefused(run, answer)) return steps
  steps.push(paymentStep(run, answer, settlement), ...workSteps(run, answer))
  if (settlement || answer.settlement) steps.push(settlementStep(answer, settlement))
  const shown = receipt ?? (answer.receipt as RunReceipt | undefined)
  if (shown) steps.push(...receiptSteps(shown))
  return steps
}

const isRefused = ({ outcome }: Run, answer: Answer) =>
  outcome === 'blocked' || outcome === 'escalated' || (outcome === 'failed' && answer.decision === 'blocked')

function routeStep(run: Run, { route }: Answer): TimelineStep {
  const confidence = typeof route?.confidence === 'number' && route.confidence < 1 ? route.confidence : undefined
  return {
    name: 'Route',
    tone: 'success',
    text: `To ${run.agent_id}`,
    at: run.created_at,
    facts: [
      ...(typeof route?.reason === 'string' ? [route.reason] : []),
      ...(confidence === undefined ? [] : [`Confidence ${(confidence * 100).toFixed(0)} %`]),
    ],
  }
}

function policyStep(run: Run, answer: Answer): TimelineStep {
  const results = (answer.policy_applied ?? answer.policy_results ?? []) as { reason?: string }[]
  const facts = results.flatMap(({ reason }) => (reason ? [reason] : []))
  const at = run.created_at
  if (run.outcome === 'escalated')
    return {
      name: 'Policy',
      tone: 'warning',
      text: 'A person has to decide',
      at,
      facts: messageOf(answer, facts),
      ...approvalLink,
    }
  if (isRefused(run, answer))
    return { name: 'Policy', tone: 'error', text: 'Refused; nothing was charged', at, facts: messageOf(answer, facts) }
  const governance = (answer.receipt?.governance ?? {}) as Record<string, string | null>
  const grants = (['mandate', 'approval', 'override', 'preauth'] as const).flatMap((name) =>
    governance[`${name}_id`] ? [`Under the ${name} ${governance[`${name}_id`]}`] : [],
  )
  return {
    name: 'Policy',
    tone: 'success',
    text: facts.length + grants.length === 0 ? 'Allowed: no rule applies' : 'Allowed',
    at,
    facts: [...facts, ...grants],
  }
}

const approvalLink = { link: { href: routeHref(['account', 'approvals']), text: 'Approvals' } }
const messageOf = (answer: Answer, facts: string[]) =>
  typeof answer.message === 'string' && !facts.includes(answer.message) ? [answer.message, ...facts] : facts

function paymentStep(run: Run, answer: Answer, settlement?: RunSettlement): TimelineStep {
  const method = settlement?.method ?? answer.settlement?.method
  const payer = settlement?.payer ?? answer.settlement?.payer
  return {
    name: 'Payment',
    tone: 'success',
    text: `${formatUsdc(run.price_usdc)} held${method ? ` by ${method}` : ''}`,
    at: settlement?.created_at ?? timeOfId(answer.settlement?.settlement_id) ?? run.created_at,
    facts: payer ? [`Paid by ${payer}`] : [],
  }
}

function workSteps(run: Run, answer: Answer): TimelineStep[] {
  const { execution, verification } = answer
  if (!execution && !verification)
    return run.answer === null
      ? [{ name: 'Work', tone: 'neutral', text: 'Under way', at: null, facts: [] }]
      : [
          {
            name: 'Work',
            tone: 'error',
            text: 'Ended without a result; nothing was charged',
            at: run.finished_at ?? null,
            facts: messageOf(answer, []),
          },
        ]
  const verifiedAt = timeOfId(verification?.verification_id)
  const steps: TimelineStep[] = []
  if (execution)
    steps.push({
      name: 'Work',
      tone: 'success',
      text: `Done by ${execution.model ?? execution.provider ?? run.agent_id}${typeof execution.latency_ms === 'number' ? ` in ${formatMilliseconds(execution.latency_ms)}` : ''}`,
      at: verifiedAt,
      facts: ((execution.fallbacks ?? []) as { provider?: string; reason?: string }[]).map(
        ({ provider, reason }) => `${provider ?? 'A provider'} was tried before: ${reason ?? 'it failed'}`,
      ),
    })
  if (verification) steps.push(verificationStep(verification, verifiedAt))
  return steps
}

function verificationStep(verification: Answer, at: string | null): TimelineStep {
  const checks = (verification.checks ?? []) as { name: string; passed: boolean; reason: string; decides?: boolean }[]
  const failed = checks.filter(({ passed }) => !passed)
  const text =
    verification.verified === null
      ? 'Skipped, as asked'
      : verification.verified
        ? `Verified${verification.grade ? `, grade ${verification.grade}` : ''}`
        : verification.accepted_unverified
          ? 'Failed, and taken all the same, as asked'
          : 'Failed; nothing was charged'
  return {
    name: 'Verification',
    tone: verification.verified === null ? 'neutral' : verification.verified ? 'success' : 'error',
    text,
    at,
    facts: [
      ...failed.map(({ name, reason }) => `${name}: ${reason}`),
      ...(checks.length > failed.length ? [`${checks.length - failed.length} of ${checks.length} checks passed`] : []),
    ],
  }
}

const settlementTones: Record<string, Tone> = {
  settled: 'success',
  failed: 'error',
  unknown: 'warning',
  refunded: 'warning',
}

function settlementStep(answer: Answer, settlement?: RunSettlement): TimelineStep {
  const status = settlement?.status ?? answer.settlement?.status ?? 'pending'
  const transaction = settlement?.transaction ?? answer.settlement?.transaction
  return {
    name: 'Settlement',
    tone: settlementTones[status] ?? 'neutral',
    text: status,
    at: settlement?.updated_at ?? null,
    facts: [
      ...(transaction ? [`Transaction ${transaction}`] : []),
      ...(settlement?.reason ? [settlement.reason] : []),
      ...(settlement && settlement.attempts > 1 ? [`${settlement.attempts} attempts`] : []),
      ...(settlement?.refund ? ['Refunded'] : []),
    ],
  }
}

function receiptSteps(receipt: RunReceipt): TimelineStep[] {
  const { log } = receipt as { log?: { index?: number } | null }
  return [
    {
      name: 'Receipt',
      tone: 'success',
      text: 'Signed',
      at: receipt.issued_at,
      facts: [],
      link: { href: routeHref(['receipts', receipt.receipt_id]), text: 'Open and verify' },
    },
    {
      name: 'Log',
      tone: log ? 'success' : 'neutral',
      text: log
        ? `Entry ${log.index ?? ''} of the public log`.replace('  ', ' ')
        : 'Waits for its place in the public log',
      at: null,
      facts: [],
    },
  ]
}

/** Ids begin with the time they were made at, in milliseconds. */
export function timeOfId(id: unknown): string | null {
  const [, high, low] = /_([0-9a-f]{8})-([0-9a-f]{4})-7/.exec(String(id)) ?? []
  return high && low ? new Date(Number.parseInt(high + low, 16)).toISOString() : null
}
