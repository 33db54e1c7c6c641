import type { ApiResponse } from '@countersign/sdk'
import { type Column, Table } from '../components/table.tsx'
import { Badge, Id, MutedText, StatList, Timestamp, type Tone } from '../components/ui.tsx'
import { formatCount, formatUsdc } from '../format.ts'
import { routeHref } from '../route.ts'

export type SimulationResult = ApiResponse<'/api/policies/simulate', 'post'>
type SimulatedRun = SimulationResult['results'][number]

const MAX_LISTED = 200
const changeWords: Record<string, string> = {
  newly_blocked: 'blocked',
  newly_review: 'waits for a person',
  newly_allowed: 'allowed',
}
const changeTones: Record<string, Tone> = {
  newly_blocked: 'error',
  newly_review: 'warning',
  newly_allowed: 'success',
}

/** What the draft would have done to past runs, in runs and in money. */
export function SimulationReport({ result, effect }: { result: SimulationResult; effect: string | undefined }) {
  const { money } = result
  const changed = result.results.filter(({ change }) => change !== 'none')
  const stat = (name: string, count: number, amount: number, tone: Tone) => ({
    name,
    value: `${formatCount(count)} · ${formatUsdc(amount)}`,
    ...(count > 0 && { tone }),
  })
  return (
    <div role="status">
      {effect && (
        <p>
          <strong>{effect}</strong> Against what happened then:
        </p>
      )}
      <StatList
        stats={[
          stat('Newly blocked', result.newly_blocked, money.newly_blocked_usdc, 'warning'),
          stat('Newly for review', result.newly_review, money.newly_review_usdc, 'warning'),
          stat('Newly allowed', result.newly_allowed, money.newly_allowed_usdc, 'success'),
          { name: 'Spent then', value: formatUsdc(money.recorded_usdc) },
          { name: 'Spent with the draft', value: formatUsdc(money.simulated_usdc) },
          { name: 'Difference', value: formatUsdc(money.difference_usdc) },
        ]}
      />
      <MutedText>
        {formatCount(result.considered)} past {result.considered === 1 ? 'decision' : 'decisions'} replayed and compared
        with what happened then{result.has_more ? '; older ones were left out' : ''}.{' '}
        {result.considered === 0
          ? 'There are no runs yet that it could be tried on.'
          : changed.length === 0 && 'Nothing would have been different.'}
      </MutedText>
      {changed.length > 0 && (
        <Table
          label="Runs that would have been different"
          columns={columns}
          rows={changed.slice(0, MAX_LISTED)}
          rowKey={({ run_id, preauth_id }) => preauth_id ?? run_id}
          empty=""
        />
      )}
      {changed.length > MAX_LISTED && <MutedText>The first {MAX_LISTED} are listed.</MutedText>}
      <details>
        <summary>What is assumed</summary>
        <ul className="caveats">
          {result.assumptions.map((assumption) => (
            <li key={assumption}>{assumption}</li>
          ))}
        </ul>
      </details>
    </div>
  )
}

const columns: Column<SimulatedRun>[] = [
  {
    name: 'Run',
    render: ({ run_id }) => (
      <a href={routeHref(['account', 'runs', run_id])}>
        <Id value={run_id} />
      </a>
    ),
  },
  { name: 'Agent', render: ({ agent_id }) => agent_id },
  { name: 'Amount', render: ({ amount_usdc }) => formatUsdc(amount_usdc), numeric: true },
  { name: 'Then', render: ({ recorded }) => recorded.outcome },
  {
    name: 'With the draft',
    render: ({ change }) => <Badge tone={changeTones[change] ?? 'neutral'}>{changeWords[change] ?? change}</Badge>,
  },
  { name: 'Why', render: whyOf, wide: true },
  { name: 'When', render: ({ decided_at }) => <Timestamp at={decided_at} />, wide: true },
]

function whyOf({ simulated }: SimulatedRun): string {
  const results = simulated.policy_results as { outcome?: string; reason?: string }[]
  const refusal = results.find(({ outcome }) => outcome === 'blocked' || outcome === 'review_required')
  return refusal?.reason ?? 'Nothing in the draft refuses it.'
}

/** The effect in one sentence, for what asks before saving. */
export function describeSimulation(result: SimulationResult): string {
  const part = (count: number, amount: number, words: string) =>
    count === 0 ? [] : [`${formatCount(count)} ${count === 1 ? 'run' : 'runs'} (${formatUsdc(amount)}) ${words}`]
  const parts = [
    ...part(result.newly_allowed, result.money.newly_allowed_usdc, 'would have been allowed that did not run'),
    ...part(result.newly_blocked, result.money.newly_blocked_usdc, 'would have been blocked'),
    ...part(result.newly_review, result.money.newly_review_usdc, 'would have waited for a person'),
  ]
  return parts.length === 0
    ? `Of the ${formatCount(result.considered)} past decisions none would have been different.`
    : `Of the ${formatCount(result.considered)} past decisions, ${parts.join(', ')}.`
}
