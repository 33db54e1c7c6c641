import type { ApiResponse } from '@countersign/sdk'
import { formatCount, formatUsdc } from '../format.ts'
import { toInputText, toMicro } from '../money-text.ts'

type SimulatedRun = Pick<
  ApiResponse<'/api/policies/simulate', 'post'>['results'][number],
  'run_id' | 'preauth_id' | 'amount_usdc'
> & { simulated: { outcome: string; would_run: boolean } }

type Effect = 'allowed' | 'blocked' | 'review'
export type VersionEffect = Record<Effect, { runs: number; usdc: number }>

const effectOf = ({ simulated: { would_run, outcome } }: SimulatedRun): Effect =>
  would_run ? 'allowed' : outcome === 'review_required' ? 'review' : 'blocked'

const keyOf = ({ run_id, preauth_id }: SimulatedRun) => preauth_id ?? run_id

/** What a draft does otherwise than the version in force, over the same past runs: the runs whose outcome differs, by their new one. */
export function compareSimulations(present: readonly SimulatedRun[], draft: readonly SimulatedRun[]): VersionEffect {
  const presentEffects = new Map(present.map((run) => [keyOf(run), effectOf(run)]))
  const changed = draft.filter((run) => {
    const before = presentEffects.get(keyOf(run))
    return before !== undefined && before !== effectOf(run)
  })
  const sumOf = (effect: Effect) => {
    const runs = changed.filter((run) => effectOf(run) === effect)
    const micro = runs.reduce((total, { amount_usdc }) => total + (toMicro(toInputText(amount_usdc)) ?? 0n), 0n)
    return { runs: runs.length, usdc: Number(micro) / 1_000_000 }
  }
  return { allowed: sumOf('allowed'), blocked: sumOf('blocked'), review: sumOf('review') }
}

const effectWords: Record<Effect, string> = {
  allowed: 'more would be allowed',
  blocked: 'more would be blocked',
  review: 'more would wait for a person',
}

/** The effect in one sentence. */
export function describeEffect(effect: VersionEffect, version: number): string {
  const parts = (['allowed', 'blocked', 'review'] as const).flatMap((name) => {
    const { runs, usdc } = effect[name]
    return runs === 0
      ? []
      : [`${formatCount(runs)} ${runs === 1 ? 'run' : 'runs'} (${formatUsdc(usdc)}) ${effectWords[name]}`]
  })
  const against = `Against version ${version}, which is in force now,`
  return parts.length === 0 ? `${against} nothing would be different.` : `${against} ${parts.join(', ')}.`
}
