/**
 * Trains the router from `server/data/routing` and writes `model.json` beside the data.
 *
 *   node launch.mjs server/scripts/train-router.ts              train, calibrate, write the model, print the report
 *   node launch.mjs server/scripts/train-router.ts --evaluate   only measure the committed model on the validation split
 *   node launch.mjs server/scripts/train-router.ts --check      train again and fail if the model would differ
 *   node launch.mjs server/scripts/train-router.ts --mistakes   as without, and list what the held-out families got wrong
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { createRouter, type Router, type RouterModel } from '../src/modules/routing/model.ts'
import { softmax } from '../src/modules/routing/softmax.ts'
import {
  composeTraining,
  type Example,
  fiveGrams,
  type RoutingData,
  readRoutingData,
} from '../src/modules/routing/training/compose.ts'
import { type Evaluation, evaluate, keywordBaseline, summarise } from '../src/modules/routing/training/evaluate.ts'
import { fit, quantise } from '../src/modules/routing/training/fit.ts'

const FOLDER = new URL('../data/routing/', import.meta.url)
const MODEL = new URL('model.json', FOLDER)
const FOLDS = 4
const THRESHOLD = 0.45
const LANES = ['analyst-v1', 'coder-v1', 'comedian-v1', 'researcher-v2', 'strategist-v1', 'support-v1', 'writer-v1']
const WANTED_ACCURACY = 0.92
const WANTED_CALIBRATION = 0.05

const NOT_MEASURED = { tasks: 0, validation_accuracy: 0, calibration_error: 0 }
// Held-out families still share their phrasings with the rest, so strangers' words are harder than they are: a
// temperature below this would promise more than it keeps.
const TEMPERATURES = Array.from({ length: 60 }, (_, at) => (30 + at * 2) / 100)

const data = readRoutingData(FOLDER)
const mode = process.argv[2]

if (mode === '--evaluate') {
  const model = JSON.parse(readFileSync(MODEL, 'utf8')) as RouterModel
  report(model, data)
} else {
  const started = performance.now()
  const model = train(data)
  console.log(`trained in ${((performance.now() - started) / 1000).toFixed(1)} s`)
  const text = `${JSON.stringify(model, null, 1)}\n`
  if (mode === '--check') {
    if (text !== readFileSync(MODEL, 'utf8')) fail('Training again gives another model than the committed one.')
    console.log('the committed model is what the committed data gives')
  } else {
    writeFileSync(MODEL, text)
  }
  report(model, data)
}

function train(from: RoutingData): RouterModel {
  const examples = composeTraining(from)
  const temperature = calibrate(examples)
  const quantised = quantise(fit(examples, LANES), temperature, THRESHOLD)
  const result = evaluate(createRouter({ ...quantised, trained: NOT_MEASURED }), from.validation)
  return {
    ...quantised,
    trained: {
      tasks: examples.length,
      validation_accuracy: round(result.accuracy),
      calibration_error: round(result.calibrationError),
    },
  }
}

/**
 * The temperature that makes confidence honest, found on families each fold has not seen. The validation split plays
 * no part: it would flatter itself.
 */
function calibrate(examples: readonly Example[]): number {
  const families = [...new Set(examples.map((example) => example.family))].sort()
  const foldOf = (family: string) => families.indexOf(family) % FOLDS
  const held: { example: Example; logits: number[] }[] = []
  for (let fold = 0; fold < FOLDS; fold++) {
    const seen = examples.filter((example) => foldOf(example.family) !== fold)
    const router = createRouter({ ...quantise(fit(seen, LANES), 1, THRESHOLD), trained: NOT_MEASURED })
    for (const example of examples) {
      if (example.authored && foldOf(example.family) === fold)
        held.push({ example, logits: router.logits(example.text) })
    }
  }
  const losses = TEMPERATURES.map((temperature) => held.reduce((sum, row) => sum + quadraticLoss(row, temperature), 0))
  const temperature = TEMPERATURES[losses.indexOf(Math.min(...losses))]!
  const missed = held.filter(({ example, logits }) => LANES[logits.indexOf(Math.max(...logits))] !== example.lane)
  console.log(
    `held-out families: ${held.length - missed.length} of ${held.length} right (${percent(1 - missed.length / held.length)}), temperature ${temperature}`,
  )
  if (mode === '--mistakes') {
    for (const { example, logits } of missed)
      console.log(
        `  ${example.lane} → ${LANES[logits.indexOf(Math.max(...logits))]}: ${example.text.slice(0, 120).replaceAll('\n', ' ')}`,
      )
  }
  return temperature
}

/** The Brier score: it is least when the stated probabilities are the true ones, and it needs no logarithm. */
function quadraticLoss(
  { example, logits }: { example: Example; logits: readonly number[] },
  temperature: number,
): number {
  const probabilities = softmax(logits.map((logit) => logit / temperature))
  return probabilities.reduce(
    (sum, probability, lane) => sum + (probability - (LANES[lane] === example.lane ? 1 : 0)) ** 2,
    0,
  )
}

function report(model: RouterModel, from: RoutingData): void {
  const trainGrams = fiveGrams(composeTraining(from).map((example) => example.text))
  const shared = [...fiveGrams(from.validation.map((row) => row.task))].filter((gram) => trainGrams.has(gram))
  const trainFamilies = new Set([...from.families, ...from.tasks].map((row) => row.family))
  const sharedFamilies = [...new Set(from.validation.map((row) => row.family))].filter((family) =>
    trainFamilies.has(family),
  )
  const result = evaluate(createRouter(model), from.validation)
  const baseline = summarise(
    from.validation.map(({ lane, task }) => ({
      lane,
      task,
      predicted: keywordBaseline(task),
      decided: keywordBaseline(task),
      confidence: 1,
    })),
  )
  console.log(`routing_version ${model.routing_version}, trained on ${model.trained.tasks} tasks`)
  console.log(
    `split: ${trainFamilies.size} training families, ${new Set(from.validation.map((row) => row.family)).size} validation families, ${sharedFamilies.length} shared; five-word runs shared: ${shared.length}`,
  )
  printRows(result, baseline)
  console.log(`a decision takes ${microsecondsOf(createRouter(model), from.validation).toFixed(1)} µs (median)`)
  for (const miss of result.mistakes)
    console.log(
      `  ${miss.lane} → ${miss.decided} (${miss.predicted} ${miss.confidence}): ${miss.task.slice(0, 110).replaceAll('\n', ' ')}`,
    )
  if (shared.length > 0 || sharedFamilies.length > 0) fail('The two sides of the split share text or families.')
  if (result.accuracy < WANTED_ACCURACY) fail(`Accuracy is below ${percent(WANTED_ACCURACY)}.`)
  if (result.calibrationError > WANTED_CALIBRATION) fail(`Calibration error is above ${WANTED_CALIBRATION}.`)
}

/** The median over all validation tasks, once the code is warm. */
function microsecondsOf(router: Router, tasks: readonly { task: string }[]): number {
  const times: number[] = []
  for (let round = 0; round < 20; round++) {
    for (const { task } of tasks) {
      const started = performance.now()
      router.read(task)
      if (round >= 10) times.push((performance.now() - started) * 1000)
    }
  }
  return times.sort((a, b) => a - b)[Math.floor(times.length / 2)]!
}

function printRows(result: Evaluation, baseline: Evaluation): void {
  console.log(`validation tasks: ${result.tasks}`)
  console.log(`                      router    keyword baseline`)
  console.log(`accuracy              ${percent(result.accuracy).padEnd(9)} ${percent(baseline.accuracy)}`)
  console.log(`most likely lane      ${percent(result.topAccuracy).padEnd(9)} ${percent(baseline.topAccuracy)}`)
  console.log(`calibration error     ${result.calibrationError.toFixed(4).padEnd(9)} –`)
  for (const { lane, recall, precision } of result.perLane) {
    const other = baseline.perLane.find((row) => row.lane === lane)!
    console.log(
      `${lane.padEnd(15)} recall ${percent(recall).padEnd(7)}  ${percent(other.recall).padEnd(7)}  precision ${percent(precision)}`,
    )
  }
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`
}

function round(value: number): number {
  return Number(value.toFixed(4))
}

function fail(message: string): void {
  console.error(message)
  process.exitCode = 1
}
