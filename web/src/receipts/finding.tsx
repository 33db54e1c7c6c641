import { Bad, Mark, type Tone } from '../parts/parts.tsx'
import type { Finding } from './examine.ts'

const headlines = {
  holds: { tone: 'good', text: 'holds.' },
  expired: { tone: 'warn', text: 'is genuine, and has run out.' },
  fails: { tone: 'bad', text: 'does not hold.' },
} as const satisfies Record<string, { tone: Tone; text: string }>

/** Every check with its reason, and what must not be concluded even when all of them hold. */
export function FindingView({ finding }: { finding: Finding }) {
  if ('refused' in finding) return <Bad>{finding.refused}</Bad>
  const { kind, verdict, verification } = finding
  const { tone, text } = headlines[verdict]
  return (
    <div data-verdict={verdict}>
      <p className={`verdict ${tone}`} role="status">
        <Mark tone={tone}>
          The {kind} {text}
        </Mark>
      </p>
      <ul className="checks" aria-label="Checks">
        {verification.checks.map(({ name, ok, reason }) => (
          <li key={name} data-check={name}>
            <Mark tone={ok === 'skipped' ? 'plain' : ok ? 'good' : 'bad'}>
              {ok === 'skipped' ? 'not looked at' : ok ? 'holds' : 'fails'}
            </Mark>
            <strong>{name.replaceAll('_', ' ')}</strong>
            <span>{reason}</span>
          </li>
        ))}
      </ul>
      <h3>What this does not prove</h3>
      <ul className="limits">
        {verification.does_not_prove.map((sentence) => (
          <li key={sentence}>{sentence}</li>
        ))}
      </ul>
    </div>
  )
}
