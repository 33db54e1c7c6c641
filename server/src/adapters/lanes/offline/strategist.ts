import { type Brief, topicOf } from './brief.ts'
import { type Criterion, type Option, readChoice } from './choices.ts'
import type { Report, Section } from './report.ts'
import { clip, formatNumber, formatPercent, round } from './text.ts'

const METHOD =
  'Offline strategist: a weighted matrix over the options and criteria in your task, arithmetic only, no language model.'

/** An options × criteria matrix with weights, a ranking, and how far a weight must move before the answer changes. */
export function strategise(brief: Brief): Report {
  const { options, criteria, origin } = readChoice(brief)
  const ranked = options
    .map((option) => ({ option, total: total(option, criteria) }))
    .sort((a, b) => b.total - a.total || options.indexOf(a.option) - options.indexOf(b.option))
  const [best, second] = ranked as [Ranked, Ranked]
  const margin = round(best.total - second.total, 4)
  const settled =
    margin > 0
      ? [
          { heading: 'Sensitivity', lines: sensitivity(ranked, criteria) },
          { heading: 'What would change the answer', lines: upsets(best, second, criteria, margin) },
          plan(best.option, criteria),
        ]
      : [undecided(criteria)]
  return {
    lane: 'strategist',
    title: `Decision: ${clip(topicOf(brief), 70)}`,
    summary:
      margin > 0
        ? `“${best.option.name}” leads with ${formatNumber(round(best.total, 2))} of 5, ahead of “${second.option.name}” by ${formatNumber(margin)}.`
        : `${levelNames(ranked)} are level at ${formatNumber(round(best.total, 2))} of 5: the evidence in the task does not decide between them.`,
    sections: [
      matrix(ranked, criteria),
      { heading: 'Where the scores come from', lines: originLines(origin, options) },
      ...settled,
    ],
    method: METHOD,
  }
}

const levelNames = (ranked: readonly Ranked[]) => {
  const names = ranked
    .filter(({ total: sum }) => round(ranked[0]!.total - sum, 4) === 0)
    .map(({ option }) => `“${option.name}”`)
  return `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`
}

type Ranked = { option: Option; total: number }

const total = (option: Option, criteria: readonly Criterion[]) =>
  criteria.reduce((sum, criterion, at) => sum + criterion.weight * option.scores[at]!, 0)

function matrix(ranked: readonly Ranked[], criteria: readonly Criterion[]): Section {
  return {
    heading: 'Options × criteria (5 is best)',
    table: {
      columns: [
        'option',
        ...criteria.map((criterion) => `${criterion.name} (${formatPercent(criterion.weight)})`),
        'weighted',
      ],
      rows: ranked.map(({ option, total: sum }) => [
        clip(option.name, 60),
        ...option.scores.map((score) => formatNumber(round(score, 2))),
        formatNumber(round(sum, 2)),
      ]),
    },
  }
}

function originLines(origin: 'given' | 'evidence' | 'defaults', options: readonly Option[]): string[] {
  if (origin === 'given') return ['The scores and weights are yours; larger scales were brought to 0–5.']
  if (origin === 'defaults') {
    return [
      'Your task names no options to compare, so the three standing ones are used: act in full, pilot, or wait.',
      'Their scores are this lane’s stated defaults. Replace them with yours to make the result your own.',
    ]
  }
  const evidence = options.flatMap((option) => option.evidence.map((line) => `${clip(option.name, 40)}: ${line}`))
  return evidence.length > 0
    ? evidence.slice(0, 10)
    : [
        'The task says nothing for or against any option, so every score is the neutral 3. Send pros and cons, or scores, to separate them.',
      ]
}

/**
 * One weight moves and the others keep their proportions. The weight at which the leader is caught is where the two
 * straight lines cross; no crossing between 0 and 1 means that this weight alone cannot change the answer.
 */
function sensitivity(ranked: readonly Ranked[], criteria: readonly Criterion[]): string[] {
  const best = ranked[0]!.option
  return criteria.map((criterion, at) => {
    const crossings = ranked.slice(1).flatMap(({ option }) => {
      const rest = 1 - criterion.weight
      if (rest <= 0) return []
      const others = criteria.reduce(
        (sum, other, index) =>
          index === at ? sum : sum + (other.weight / rest) * (best.scores[index]! - option.scores[index]!),
        0,
      )
      const own = best.scores[at]! - option.scores[at]!
      if (others === own) return []
      const crossing = others / (others - own)
      return crossing > 0 && crossing < 1 && Math.abs(crossing - criterion.weight) > 1e-9 ? [{ option, crossing }] : []
    })
    const nearest = crossings.sort(
      (a, b) => Math.abs(a.crossing - criterion.weight) - Math.abs(b.crossing - criterion.weight),
    )[0]
    return nearest
      ? `${criterion.name}: at a weight of ${formatPercent(nearest.crossing)} (now ${formatPercent(criterion.weight)}) “${clip(nearest.option.name, 40)}” draws level.`
      : `${criterion.name}: no weight of this criterion alone changes the leader.`
  })
}

function upsets(best: Ranked, second: Ranked, criteria: readonly Criterion[], margin: number): string[] {
  return criteria
    .map((criterion, at) => ({ criterion, needed: margin / criterion.weight, room: 5 - second.option.scores[at]! }))
    .filter(({ needed, room, criterion }) => criterion.weight > 0 && needed <= room)
    .sort((a, b) => a.needed - b.needed)
    .slice(0, 3)
    .map(
      ({ criterion, needed }) =>
        `If “${clip(second.option.name, 40)}” scored ${formatNumber(round(needed, 2))} higher on ${criterion.name}, it would match “${clip(best.option.name, 40)}”.`,
    )
}

/** A tie has no leader to plan for: what is missing is evidence, heaviest criterion first. */
function undecided(criteria: readonly Criterion[]): Section {
  return {
    heading: 'What would settle it',
    lines: [
      ...[...criteria]
        .sort((a, b) => b.weight - a.weight)
        .map(({ name, weight }) => `${name} (${formatPercent(weight)}): which option does better, and what shows it?`),
      'Send a sentence of evidence for each option, or scores such as “A cost 4, speed 2; B cost 3, speed 5”, and the matrix decides.',
    ],
  }
}

function plan(best: Option, criteria: readonly Criterion[]): Section {
  const heaviest = [...criteria].sort((a, b) => b.weight - a.weight)[0]!
  const weakest = criteria[best.scores.reduce((low, score, at) => (score < best.scores[low]! ? at : low), 0)]!
  return {
    heading: 'Next steps',
    lines: [
      `Days 1–30: write down what success on ${heaviest.name} means for “${clip(best.name, 50)}”, as a number with a date; name one owner.`,
      `Days 31–60: run the smallest version that can fail, and measure ${weakest.name} first, because it is the weak spot.`,
      'Days 61–90: scale, change or stop, by the number written down on day 1.',
      `Review the matrix whenever a score moves by a whole point.`,
    ],
  }
}
