import { readFileSync, writeFileSync } from 'node:fs'
import { answerFeatures, registerFeatures } from '../src/modules/verification/answer-features.ts'
import {
  type AnswerModels,
  canDecline,
  type LinearModel,
  meaningOf,
  scoreOf,
  WORD_BUCKETS,
  wantsNoEssay,
  wordBuckets,
} from '../src/modules/verification/answer-model.ts'
import { readTask } from '../src/modules/verification/task.ts'
import { readText } from '../src/modules/verification/text.ts'
import type { LabelledOutput } from './confusion-table.ts'

/**
 * Fits the models of `answer-model.ts` on the development set and on `refusals.txt` and `answers.txt`, and writes
 * `answer-model.json`. With `--held-out <prefix of ids>` it fits without those outputs, writes nothing and prints how the
 * models do on them. Nothing is random, so the same data give the same weights.
 */
const data = new URL('../data/verification/', import.meta.url)
const read = (name: string) => readFileSync(new URL(name, data), 'utf8').split('\n').filter(Boolean)
const items = read('development.jsonl').map((line) => JSON.parse(line) as LabelledOutput)
const [, heldOut] = process.argv.slice(2)
const training = items.filter(({ id }) => heldOut === undefined || !id.startsWith(heldOut))
const test = items.filter((item) => !training.includes(item))

type Example = {
  features: Record<string, number>
  words: Map<number, number>
  meaning: Float64Array
  y: 0 | 1
  weight: number
}
type Pair = Pick<LabelledOutput, 'lane' | 'task' | 'output' | 'context'>

const NAMES = [
  'figures',
  'has_code',
  'lists',
  'shared_of_task',
  'shared_of_output',
  'names_used',
  'numbers_used',
  'names_unused',
  'numbers_unused',
  'questions',
  'elsewhere',
  'short',
  'near_output',
  'near_task',
  'english',
  'code_missing',
  'result_missing',
  'size',
  'persons',
]

const parse = ({ lane, task, context = [], output }: Pair) => [readTask(lane, task, context), readText(output)] as const

function decliningExample(pair: Pair, y: 0 | 1, weight: number): Example {
  const [task, output] = parse(pair)
  const features = answerFeatures(task, output)
  return {
    features: Object.fromEntries(NAMES.map((name) => [name, features[name]!])),
    words: wordBuckets(output.raw),
    meaning: features.english ? meaningOf(output) : new Float64Array(meaningOf(output).length),
    y,
    weight,
  }
}

const isEligible = (pair: Pair) => canDecline(...parse(pair))
const ofLabel = (set: readonly LabelledOutput[], label: string) => set.filter((item) => item.label === label)

function decliningExamples(): Example[] {
  const right = ofLabel(training, 'right').filter(isEligible)
  const refusing = ofLabel(training, 'refusing').filter(isEligible)
  const written = read('refusals.txt')
    .filter((line) => !line.startsWith('#'))
    .map((line) => line.split('\t')[1]!)
  const answers = read('answers.txt')
    .filter((line) => !line.startsWith('#'))
    .map((line) => line.split('\t'))
  return [
    ...right.map((item) => decliningExample(item, 0, 1)),
    ...refusing.map((item) => decliningExample(item, 1, 1)),
    ...answers.map(([lane, task, output]) => decliningExample({ lane: lane!, task: task!, output: output! }, 0, 1)),
    // Each refusal stands under tasks of the set, which it could be an answer to.
    ...written.map((text, index) => {
      const { lane, task, context } = right[(index * 37) % right.length]!
      const output = index % 3 === 1 ? `${text} ${written[(index + 1) % written.length]}` : text
      return decliningExample({ lane, task, output, ...(context && { context }) }, 1, 0.5)
    }),
  ]
}

function registerExamples(): Example[] {
  const example = (item: LabelledOutput): Example => {
    const output = readText(item.output)
    const isEssay = item.label === 'off_subject' || item.lane === 'researcher-v2'
    return {
      features: { ...registerFeatures(output) },
      words: new Map(),
      meaning: new Float64Array(),
      y: isEssay ? 1 : 0,
      weight: 1,
    }
  }
  return [...ofLabel(training, 'right'), ...ofLabel(training, 'off_subject')]
    .filter((item) => answerFeatures(...parse(item)).english === 1)
    .map(example)
}

/** Logistic regression by gradient descent from zero. */
function fit(examples: readonly Example[], { rounds, decay, rate }: { rounds: number; decay: number; rate: number }) {
  const names = Object.keys(examples[0]!.features)
  const size = examples[0]!.meaning.length
  const weights = new Float64Array(names.length)
  const words = new Float64Array(WORD_BUCKETS)
  const meaning = new Float64Array(size)
  let bias = 0
  const total = examples.reduce((sum, { weight }) => sum + weight, 0)
  const rows = examples.map((example) => ({ ...example, row: names.map((name) => example.features[name]!) }))
  for (let round = 0; round < rounds; round++) {
    const gradients = [new Float64Array(names.length), new Float64Array(WORD_BUCKETS), new Float64Array(size)] as const
    let biasGradient = 0
    for (const { row, words: buckets, meaning: vector, y, weight } of rows) {
      let z = bias
      for (let i = 0; i < row.length; i++) z += weights[i]! * row[i]!
      for (const [bucket, count] of buckets) z += words[bucket]! * count
      for (let i = 0; i < size; i++) z += meaning[i]! * vector[i]!
      const error = ((1 / (1 + Math.exp(-z)) - y) * weight) / total
      biasGradient += error
      for (let i = 0; i < row.length; i++) gradients[0][i]! += error * row[i]!
      for (const [bucket, count] of buckets) gradients[1][bucket]! += error * count
      for (let i = 0; i < size; i++) gradients[2][i]! += error * vector[i]!
    }
    bias -= rate * biasGradient
    weights.forEach((weight, i) => {
      weights[i]! -= rate * (gradients[0][i]! + decay * weight)
    })
    words.forEach((weight, i) => {
      words[i]! -= 2 * rate * (gradients[1][i]! + decay * weight)
    })
    meaning.forEach((weight, i) => {
      meaning[i]! -= rate * (gradients[2][i]! + decay * weight)
    })
  }
  const round = (value: number) => Math.round(value * 1_000) / 1_000
  return {
    bias: round(bias),
    weights: Object.fromEntries(names.map((name, i) => [name, round(weights[i]!)])),
    ...(words.some((value) => value !== 0) && { words: [...words].map(round) }),
    ...(size > 0 && { meaning: [...meaning].map(round) }),
  } satisfies LinearModel
}

const models: AnswerModels = {
  declines: fit(decliningExamples(), { rounds: 400, decay: 0.0005, rate: 1.5 }),
  register: fit(registerExamples(), { rounds: 800, decay: 0.004, rate: 1 }),
}

if (heldOut === undefined) {
  const text = JSON.stringify({ made_by: 'server/scripts/train-answer-model.ts', ...models })
  writeFileSync(new URL('answer-model.json', data), `${text}\n`)
  console.log(`${text.length} bytes`)
} else {
  for (const [kind, label, applies] of [
    ['declines', 'refusing', canDecline],
    ['register', 'off_subject', wantsNoEssay],
  ] as const)
    for (const threshold of [0, 0.5, 1, 1.5]) {
      const count = (set: readonly LabelledOutput[]) => {
        const scored = set.map(parse).filter(([task, output]) => applies(task, output))
        return `${scored.filter(([task, output]) => scoreOf(models[kind], task, output, kind) > threshold).length}/${scored.length}`
      }
      console.log(kind, threshold, 'right', count(ofLabel(test, 'right')), label, count(ofLabel(test, label)))
    }
}
