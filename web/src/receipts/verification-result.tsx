import type { Check } from '@countersign/proof'
import { Badge, ErrorMessage, type Tone } from '../components/ui.tsx'
import type { VerificationResult } from './verify-evidence.ts'

const verdicts = {
  valid: { tone: 'success', text: 'is valid.' },
  expired: { tone: 'warning', text: 'is genuine but has expired.' },
  invalid: { tone: 'error', text: 'is not valid.' },
} as const satisfies Record<string, { tone: Tone; text: string }>

/** Every check with its reason, and what the checks do not prove. */
export function VerificationResultView({ result }: { result: VerificationResult }) {
  if ('error' in result) return <ErrorMessage>{result.error}</ErrorMessage>
  const { kind, verdict, verification } = result
  const { tone, text } = verdicts[verdict]
  return (
    <div data-verdict={verdict}>
      <p className={`verdict ${tone}`} role="status">
        <Badge tone={tone}>
          The {kind} {text}
        </Badge>
      </p>
      <CheckList checks={verification.checks} />
      <h3>What this does not prove</h3>
      <ul className="caveats">
        {verification.does_not_prove.map((sentence) => (
          <li key={sentence}>{sentence}</li>
        ))}
      </ul>
    </div>
  )
}

export const CheckList = ({ checks }: { checks: readonly Check[] }) => (
  <ul className="checks" aria-label="Checks">
    {checks.map(({ name, ok, reason }) => (
      <li key={name} data-check={name}>
        <Badge tone={ok === 'skipped' ? 'neutral' : ok ? 'success' : 'error'}>
          {ok === 'skipped' ? 'skipped' : ok ? 'passed' : 'failed'}
        </Badge>
        <strong>{name.replaceAll('_', ' ')}</strong>
        <span>{reason}</span>
      </li>
    ))}
  </ul>
)
