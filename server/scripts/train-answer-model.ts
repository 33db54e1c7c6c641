import { readFileSync, writeFileSync } from 'node:fs'
import type { AnswerFeatures } from '../src/modules/verification/answer-features.ts'
import {
  type AnswerModels,
  canDecline,
  declineFeatures,
  hasSubject,
  type Kinds,
  kindFeatures,
  LANE_KINDS,
  sentencesToScore,
  subjectFeatures,
  WORD_BUCKETS,
  wordBuckets,
} from '../src/modules/verification/answer-model.ts'
import { scoreOfTrees } from '../src/modules/verification/boosted-trees.ts'
import { readTask } from '../src/modules/verification/task.ts'
import { readText } from '../src/modules/verification/text.ts'
import { withTextCache } from '../src/modules/verification/text-cache.ts'
import type { LabelledOutput } from './confusion-table.ts'
import { fitLinear, fitText } from './fit-linear.ts'
import { fitTrees, type Sample } from './fit-trees.ts'

/**
 * Fits the models of `answer-model.ts` on labelled sets and on `refusals.txt` and `answers.txt`, and writes `answer-model.json`:
 * `node launch.mjs server/scripts/train-answer-model.ts [--held-out <prefix of ids>] [set.jsonl …]`, by default on all
 * sets. What is held out takes no part, and the models are measured on it. Nothing is random, so the same lines
 * give the same weights in whatever order they stand. The scores of one model that another reads come from fits without the
 * author's own set, as they will for outputs of strangers.
 */
const data = new URL('../data/verification/', import.meta.url)
const SETS = ['development.jsonl', 'calibration.jsonl', 'ordinary.jsonl', 'written.jsonl']
const options = process.argv.slice(2)
const heldOut = options[0] === '--held-out' ? options.splice(0, 2)[1] : undefined
const paths = options.length > 0 ? options : SETS.map((name) => new URL(name, data))
const linesOf = (path: string | URL) =>
  readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
const items = paths
  .flatMap(linesOf)
  .map((line) => JSON.parse(line) as LabelledOutput)
  .sort((a, b) => (a.id < b.id ? -1 : 1))

type Pair = Pick<LabelledOutput, 'lane' | 'task' | 'output' | 'context'>
type Example = Pair & { set: string; y: 0 | 1; weight: number }

/** The author of a line: "w" of "w102", "s1" of "s1-040". */
const setOf = ({ id }: LabelledOutput) => /^[a-z]+(?:\d+(?=-))?/.exec(id)![0]
const isHeldOut = (item: LabelledOutput) => heldOut !== undefined && item.id.startsWith(heldOut)
const training = items.filter((item) => !isHeldOut(item))
const rights = training.filter(({ label }) => label === 'right')
const parse = ({ lane, task, context = [], output }: Pair) => [readTask(lane, task, context), readText(output)] as const

const FOLDS_OF_WRITTEN = 3

/** Right and refusing outputs, and the written ones under tasks of the sets. */
function decliningExamples(): Example[] {
  const refusals = linesOf(new URL('refusals.txt', data)).map((line) => line.split('\t')[1]!)
  const answers = linesOf(new URL('answers.txt', data)).map((line) => line.split('\t'))
  return [
    ...training
      .filter(({ label, visible }) => label === 'right' || (label === 'refusing' && visible))
      .map((item): Example => ({ ...item, set: setOf(item), y: item.label === 'right' ? 0 : 1, weight: 1 })),
    ...answers.map(
      ([lane, task, output], index): Example => ({
        lane: lane!,
        task: task!,
        output: output!,
        set: `written ${index % FOLDS_OF_WRITTEN}`,
        y: 0,
        weight: 1,
      }),
    ),
    ...refusals.map((text, index): Example => {
      const right = rights[(index * 37 + 11) % rights.length]!
      const next = refusals[(index + 1) % refusals.length]!
      const whole = index % 3 === 1 && !text.includes('{}') ? `${text} ${next}` : text
      const output = whole.replaceAll('{}', subjectOf(right, index))
      return { ...right, output, set: `written ${index % FOLDS_OF_WRITTEN}`, y: 1, weight: 0.5 }
    }),
  ]
}

const ORDERS = /^(?:write|give|make|tell|with|that|this|from|what|about|your|should|which|explain|short)$/

/** A few words of the task, as somebody would repeat them who does not do it. */
function subjectOf({ lane, task }: Pair, index: number): string {
  const words = readTask(lane, task, []).requestWords.filter((word) => word.length > 3 && !ORDERS.test(word))
  if (words.length < 3) return words[0] ?? 'this'
  return index % 2 === 1 ? `${words[1]} and ${words[2]}` : words.slice(0, 3).join(', ')
}

const fitRefusalTexts = (examples: readonly Example[]) => {
  const read = examples.map((example) => ({ ...example, text: readText(example.output) }))
  return {
    refusal_text: fitText(
      read.map(({ text, y, weight }) => ({ buckets: wordBuckets(text.raw), y, weight })),
      WORD_BUCKETS,
      25,
    ),
    refusal_sentence: fitText(
      read.flatMap(({ text, y, weight }) => {
        const sentences = sentencesToScore(text)
        return sentences.map((sentence) => ({
          buckets: wordBuckets(sentence),
          y,
          weight: weight / Math.sqrt(sentences.length),
        }))
      }),
      WORD_BUCKETS,
      12,
    ),
  }
}

const GROUPS_OF_SETS = 8

/** For each group of sets what is fitted on the others. */
function outOfFold<Model, Result>(
  examples: readonly Example[],
  fit: (others: readonly Example[]) => Model,
  use: (model: Model, example: Example) => Result[],
): Result[] {
  const sets = [...new Set(examples.map(({ set }) => set))].sort()
  const groupOf = new Map(sets.map((set, index) => [set, index % GROUPS_OF_SETS] as const))
  return Array.from({ length: GROUPS_OF_SETS }, (_, group) => group).flatMap((group) => {
    const [own, others] = partition(examples, ({ set }) => groupOf.get(set) === group)
    const model = fit(others)
    return own.flatMap((example) => withTextCache(() => use(model, example)))
  })
}

function partition<Item>(items: readonly Item[], isFirst: (item: Item) => boolean): [Item[], Item[]] {
  return [items.filter(isFirst), items.filter((item) => !isFirst(item))]
}

const manners = new Map<string, AnswerFeatures>()

/** The features of an output's kind, which each group's fit reads again. */
function mannerOf(output: string): AnswerFeatures {
  const manner = manners.get(output) ?? kindFeatures(readText(output))
  manners.set(output, manner)
  return manner
}

function fitDeclining(): Pick<AnswerModels, 'refusal_text' | 'refusal_sentence' | 'declines'> {
  const examples = decliningExamples()
  const samples = outOfFold(examples, fitRefusalTexts, (models, example): Sample[] => {
    const [task, output] = parse(example)
    if (!canDecline(task, output)) return []
    return [{ features: declineFeatures(models, task, output), y: example.y, weight: example.weight }]
  })
  return { ...fitRefusalTexts(examples), declines: fitTrees(samples, { trees: 120, depth: 2 }) }
}

/** Right outputs, those about something else, and right ones under other tasks of the same author and language. */
function subjectExamples(): Example[] {
  const languages = new Map(
    rights.map((item) => [item, readTask(item.lane, item.task, []).language?.language ?? 'en'] as const),
  )
  const labelled = training
    .filter(({ label, visible }) => label === 'right' || (label === 'off_subject' && visible))
    .map(
      (item): Example => ({
        ...item,
        set: setOf(item),
        y: item.label === 'right' ? 0 : 1,
        weight: item.label === 'right' ? 1 : 4,
      }),
    )
  const exchanged = rights.flatMap((right, index) => {
    const others = rights.filter(
      (other) => other !== right && setOf(other) === setOf(right) && languages.get(other) === languages.get(right),
    )
    const [same, different] = [
      others.filter(({ lane }) => lane === right.lane),
      others.filter(({ lane }) => lane !== right.lane),
    ]
    return [same, same, different, different].flatMap((tasks, place): Example[] => {
      const other = tasks[(index * 7 + place * 13) % Math.max(1, tasks.length)]
      if (!other) return []
      const { lane, task, context } = other
      return [{ lane, task, output: right.output, ...(context && { context }), set: setOf(right), y: 1, weight: 0.04 }]
    })
  })
  return [...labelled, ...exchanged]
}

function fitKinds(examples: readonly Example[]): Kinds {
  const labelled = examples
    .filter(({ weight }) => weight >= 1)
    .map((example) => ({
      ...example,
      features: mannerOf(example.output),
    }))
  const kindOf = (isKind: (example: Example) => boolean, weight: number) =>
    fitLinear(
      labelled.map((example) => ({
        features: example.features,
        y: isKind(example) ? 1 : 0,
        weight: example.y === 1 ? weight : 1,
      })),
    )
  return {
    ...Object.fromEntries(
      LANE_KINDS.map((kind) => [kind, kindOf(({ lane, y }) => y === 0 && lane.startsWith(kind), 2)]),
    ),
    essay: kindOf(({ lane, y }) => y === 1 || lane.startsWith('researcher'), 1),
  }
}

function fitSubject(): Pick<AnswerModels, 'kinds' | 'topic'> {
  const examples = subjectExamples()
  const samples = outOfFold(examples, fitKinds, (kinds, example): Sample[] => {
    const [task, output] = parse(example)
    if (!hasSubject(task, output)) return []
    return [{ features: subjectFeatures(kinds, task, output), y: example.y, weight: example.weight }]
  })
  return { kinds: fitKinds(examples), topic: fitTrees(samples, { trees: 200, depth: 2 }) }
}

const models: AnswerModels = { ...fitDeclining(), ...fitSubject() }

const text = JSON.stringify({ made_by: 'server/scripts/train-answer-model.ts', ...models })
if (heldOut === undefined) {
  writeFileSync(new URL('answer-model.json', data), `${text}\n`)
  console.log(`${text.length} bytes`)
} else {
  const test = items.filter(isHeldOut)
  const scored = (label: string, score: (pair: Pair) => number) =>
    test.filter((item) => item.label === label && (label === 'right' || item.visible)).map(score)
  const declining = (pair: Pair) => {
    const [task, output] = parse(pair)
    return canDecline(task, output) ? scoreOfTrees(models.declines, declineFeatures(models, task, output)) : -9
  }
  const elsewhere = (pair: Pair) => {
    const [task, output] = parse(pair)
    return hasSubject(task, output) ? scoreOfTrees(models.topic, subjectFeatures(models.kinds, task, output)) : -9
  }
  for (const [label, score] of [
    ['refusing', declining],
    ['off_subject', elsewhere],
  ] as const) {
    const [right, bad] = [scored('right', score), scored(label, score)]
    for (const threshold of [0.5, 1, 1.5, 2, 2.5, 3]) {
      const over = (scores: readonly number[]) =>
        `${scores.filter((value) => value > threshold).length}/${scores.length}`
      console.log(label, threshold, 'right', over(right), label, over(bad))
    }
  }
}
