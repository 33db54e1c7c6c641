import type { Receipt } from '@countersign/sdk'
import type { ReactNode } from 'react'
import { Id, Timestamp } from '../components/ui.tsx'
import { formatUsdc } from '../format.ts'

export type { Receipt } from '@countersign/sdk'

/** The contents of a receipt as names and values; undefined values are not shown. */
export function describeReceipt(receipt: Receipt): [string, ReactNode][] {
  const { pricing, settlement, governance, verification, log } = receipt
  const price = readText(pricing, 'price_usdc')
  return [
    ['Receipt', renderId(receipt.receipt_id)],
    ['Run', renderId(receipt.run_id)],
    ['Kind', receipt.kind],
    ['Issued', <Timestamp key="issued" at={receipt.issued_at} />],
    ['Lane', receipt.agent_id],
    ['Price', price && formatUsdc(Number(price))],
    ['Charged', receipt.charged === undefined ? undefined : receipt.charged ? 'yes' : 'no, nothing was charged'],
    ['Paid by', renderId(readText(settlement, 'payer'))],
    ['Settlement', [readText(settlement, 'method'), readText(settlement, 'status')].filter(Boolean).join(', ')],
    ['Transaction', renderId(readText(settlement, 'transaction'))],
    ['Decision', readText(governance, 'decision')],
    ['Mandate', renderId(readText(governance, 'mandate_id'))],
    ['Pre-authorisation', renderId(readText(governance, 'preauth_id'))],
    ['Approval', renderId(readText(governance, 'approval_id'))],
    ['Override', renderId(readText(governance, 'override_id'))],
    ['Output grade', readText(verification, 'grade')],
    ['Executed by', [readText(verification, 'provider'), readText(verification, 'model')].filter(Boolean).join(', ')],
    ['Request hash', renderId(receipt.request_hash)],
    ['Input hash', renderId(receipt.input_hash)],
    ['Output hash', renderId(receipt.output_hash)],
    ['Previous receipt', renderId(receipt.prev_hash)],
    ['Signed with', renderId(receipt.signature.key_id)],
    ['Log entry', log ? `#${log.index} of ${log.origin}` : 'pending'],
  ]
}

const readText = (object: unknown, name: string): string | undefined => {
  const value = (object as Record<string, unknown> | null | undefined)?.[name]
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined
}

const renderId = (value: string | null | undefined) => (value ? <Id key={value} value={value} full /> : undefined)
