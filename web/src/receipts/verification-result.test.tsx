import { expect, test } from 'vitest'
import { renderHtml, renderText } from '../../test/render.tsx'
import { VerificationResultView } from './verification-result.tsx'
import type { VerificationResult } from './verify-evidence.ts'

const result = (verdict: 'valid' | 'expired' | 'invalid'): VerificationResult => ({
  kind: 'attestation',
  verdict,
  verification: {
    ok: verdict === 'valid',
    checks: [
      { name: 'signature', ok: true, reason: 'It matches.' },
      { name: 'evidence_hash', ok: false, reason: 'It differs.' },
      { name: 'freshness', ok: 'skipped', reason: 'No time was given.' },
    ],
    does_not_prove: ['That the issuer holds the reserves.'],
  },
})

test('the verdict is a sentence, and an expired attestation is still called genuine', () => {
  expect(renderText(<VerificationResultView result={result('valid')} />)).toContain('The attestation is valid.')
  expect(renderText(<VerificationResultView result={result('invalid')} />)).toContain('The attestation is not valid.')
  expect(renderText(<VerificationResultView result={result('expired')} />)).toContain('is genuine but has expired.')
})

test('every check is listed with its outcome and reason, a skipped one not as passed', () => {
  const html = renderHtml(<VerificationResultView result={result('invalid')} />)
  const outcome = (name: string) =>
    new RegExp(`data-check="${name}".*?class="badge (\\w+)".*?(passed|failed|skipped)`).exec(html)?.slice(1)
  expect(outcome('signature')).toEqual(['success', 'passed'])
  expect(outcome('evidence_hash')).toEqual(['error', 'failed'])
  expect(outcome('freshness')).toEqual(['neutral', 'skipped'])
  expect(html).toContain('It differs.')
})

test('what the checks do not prove is shown even for a valid result', () => {
  expect(renderText(<VerificationResultView result={result('valid')} />)).toContain('holds the reserves')
})

test('an error is shown as an alert without a verdict', () => {
  const html = renderHtml(<VerificationResultView result={{ error: 'Not valid JSON.' }} />)
  expect(html).toContain('role="alert"')
  expect(html).not.toContain('data-verdict')
})
