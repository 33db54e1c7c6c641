import { type Brief, extractTopic } from './brief.ts'
import { type Criterion, type Decision, type Option, readDecision } from './decision.ts'
import type { Report, Section } from './report.ts'
import { capitalise, clip, formatNumber, formatPercent, round, splitSentences } from './text.ts'

const METHOD =
  'Offline strategist: a weighted matrix over the options and criteria in your task, arithmetic only, no language model.'

/** An options × criteria matrix with weights, a ranking, and how far a weight must change to change the result. */
export function evaluateOptions(brief: Brief): Report {
  const decision = readDecision(brief)
  if (decision.origin === 'none') return reportUndecided(brief, decision)
  const { options, criteria } = decision
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
      { heading: 'Where the scores come from', lines: describeScoreOrigin(decision) },
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

function describeScoreOrigin({ origin, options, statesCriteria, unscored }: Decision): string[] {
  const criteriaLine = statesCriteria
    ? []
    : [
        'You state no criteria: those that your evidence speaks of are weighted equally. Name yours, with weights, to change that.',
      ]
  const unscoredLine =
    unscored.length > 0
      ? [`Left out, because the task says too little about it: ${unscored.map(({ name }) => name).join(', ')}.`]
      : []
  if (origin === 'given')
    return ['The scores and weights are yours; larger scales were brought to 0–5.', ...criteriaLine]
  const evidence = options.flatMap((option) => option.evidence.map((line) => `${clip(option.name, 40)}: ${line}`))
  return [
    ...criteriaLine,
    ...unscoredLine,
    ...evidence.slice(0, 10),
    'An amount or a duration scores 5 for the best option and less in proportion; a word for or against is one point from 3.',
  ]
}

/** Without anything that tells the options apart there are no scores to show: what is missing is named instead. */
function reportUndecided(brief: Brief, { options, unscored, statesCriteria }: Decision): Report {
  const names = options.map(({ name }) => `“${clip(name, 50)}”`)
  const criteria = unscored.map(({ name, weight }) => `${name} (${formatPercent(weight)})`)
  const topic = clip(splitSentences(extractTopic(brief, 200))[0]?.text ?? brief.task, 70)
  const summary =
    options.length === 0
      ? `The task names no options to compare${statesCriteria ? '' : ' and no criteria'}. Three always stand open: do “${topic}” in full, try it small first, or wait.`
      : statesCriteria
        ? `${joinNames(names)} are to be weighed by ${joinNames(criteria)}, and the task says nothing about how they do on ${criteria.length === 1 ? 'it' : 'them'}: nothing in it decides.`
        : `The task states no criteria for ${joinNames(names)} and nothing for or against either, so nothing in it ranks them.`
  return {
    lane: 'strategist',
    title: `Decision: ${topic}`,
    summary,
    sections: [
      options.length === 0
        ? {
            heading: 'When each fits',
            lines: [
              'In full: when waiting costs more than being wrong, and it can be undone.',
              'Small first: when one cheap trial would show what nobody knows yet.',
              'Wait: when something you will soon learn decides it anyway.',
            ],
          }
        : {
            heading: 'If it must be decided today',
            lines: [`Take the one that is cheaper to undo, and write down what would make you change it.`],
          },
      {
        heading: 'What would settle it',
        lines: [
          ...(statesCriteria
            ? unscored.map(({ name }) => `${capitalise(name)}: a figure or a sentence for each option.`)
            : [
                'Criteria with weights, for example cost, speed and risk.',
                'A figure or a sentence for each option on each of them.',
              ]),
          'Or scores, such as “A cost 4, speed 2; B cost 3, speed 5”: then a weighted matrix decides.',
        ],
      },
    ],
    method: METHOD,
  }
}

const joinNames = (names: readonly string[]) =>
  names.length < 2 ? (names[0] ?? '') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`

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
      `First: write down what success on ${heaviest.name} means for “${clip(best.name, 50)}”, as a number with a date; name one owner.`,
      `Then: run the smallest version that can fail, and measure ${weakest.name} first, because it is the weak spot.`,
      'Last: scale, change or stop, by the number written down at the start.',
      `Review the matrix whenever a score moves by a whole point.`,
    ],
  }
}
