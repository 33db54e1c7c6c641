import { type Brief, extractTopic } from './brief.ts'
import { type Criterion, type Option, readDecision } from './decision.ts'
import type { Report, Section } from './report.ts'
import { clip, formatNumber, formatPercent, round } from './text.ts'

const METHOD =
  'Offline strategist: a weighted matrix over the options and criteria in your task, arithmetic only, no language model.'

/** An options × criteria matrix with weights, a ranking, and how far a weight must change to change the result. */
export function evaluateOptions(brief: Brief): Report {
  const { options, criteria, origin } = readDecision(brief)
  const ranked = options
    .map((option) => ({ option, total: weightedTotal(option, criteria) }))
    .sort((a, b) => b.total - a.total || options.indexOf(a.option) - options.indexOf(b.option))
  const [best, second] = ranked as [RankedOption, RankedOption]
  const margin = round(best.total - second.total, 4)
  const conclusionSections =
    margin > 0
      ? [
          { heading: 'Sensitivity', lines: describeSensitivity(ranked, criteria) },
          { heading: 'What would change the answer', lines: describeUpsets(best, second, criteria, margin) },
          describeNextSteps(best.option, criteria),
        ]
      : [describeTie(criteria)]
  return {
    lane: 'strategist',
    title: `Decision: ${clip(extractTopic(brief), 70)}`,
    summary:
      margin > 0
        ? `“${best.option.name}” leads with ${formatNumber(round(best.total, 2))} of 5, ahead of “${second.option.name}” by ${formatNumber(margin)}.`
        : `${joinTiedNames(ranked)} are level at ${formatNumber(round(best.total, 2))} of 5: the evidence in the task does not decide between them.`,
    sections: [
      buildMatrix(ranked, criteria),
      { heading: 'Where the scores come from', lines: describeScoreOrigin(origin, options) },
      ...conclusionSections,
    ],
    method: METHOD,
  }
}

const joinTiedNames = (ranked: readonly RankedOption[]) => {
  const names = ranked
    .filter(({ total: sum }) => round(ranked[0]!.total - sum, 4) === 0)
    .map(({ option }) => `“${option.name}”`)
  return `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`
}

type RankedOption = { option: Option; total: number }

const weightedTotal = (option: Option, criteria: readonly Criterion[]) =>
  criteria.reduce((sum, criterion, i) => sum + criterion.weight * option.scores[i]!, 0)

function buildMatrix(ranked: readonly RankedOption[], criteria: readonly Criterion[]): Section {
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

function describeScoreOrigin(origin: 'given' | 'evidence' | 'defaults', options: readonly Option[]): string[] {
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
 * Changes one weight while the others keep their proportions. Both totals are linear in that weight, so the tie is where
 * the lines cross; without a crossing between 0 and 1 this weight alone cannot change the result.
 */
function describeSensitivity(ranked: readonly RankedOption[], criteria: readonly Criterion[]): string[] {
  const best = ranked[0]!.option
  return criteria.map((criterion, i) => {
    const crossings = ranked.slice(1).flatMap(({ option }) => {
      const otherWeight = 1 - criterion.weight
      if (otherWeight <= 0) return []
      const weightedDifference = criteria.reduce(
        (sum, otherCriterion, index) =>
          index === i
            ? sum
            : sum + (otherCriterion.weight / otherWeight) * (best.scores[index]! - option.scores[index]!),
        0,
      )
      const difference = best.scores[i]! - option.scores[i]!
      if (weightedDifference === difference) return []
      const crossing = weightedDifference / (weightedDifference - difference)
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

function describeUpsets(
  best: RankedOption,
  second: RankedOption,
  criteria: readonly Criterion[],
  margin: number,
): string[] {
  return criteria
    .map((criterion, i) => ({
      criterion,
      neededScore: margin / criterion.weight,
      maxIncrease: 5 - second.option.scores[i]!,
    }))
    .filter(({ neededScore, maxIncrease, criterion }) => criterion.weight > 0 && neededScore <= maxIncrease)
    .sort((a, b) => a.neededScore - b.neededScore)
    .slice(0, 3)
    .map(
      ({ criterion, neededScore }) =>
        `If “${clip(second.option.name, 40)}” scored ${formatNumber(round(neededScore, 2))} higher on ${criterion.name}, it would match “${clip(best.option.name, 40)}”.`,
    )
}

/** For a tie: the evidence that would decide it, heaviest criterion first. */
function describeTie(criteria: readonly Criterion[]): Section {
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

function describeNextSteps(best: Option, criteria: readonly Criterion[]): Section {
  const heaviest = [...criteria].sort((a, b) => b.weight - a.weight)[0]!
  const weakest =
    criteria[best.scores.reduce((lowestIndex, score, i) => (score < best.scores[lowestIndex]! ? i : lowestIndex), 0)]!
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
