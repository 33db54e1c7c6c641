/**
 * Trains the router from `server/data/routing` and writes `model.json` beside the data.
 *
 *   node launch.mjs server/scripts/train-router.ts              train, calibrate, write the model, print the report
 *   node launch.mjs server/scripts/train-router.ts --evaluate   only measure the committed model on the validation split
 *   node launch.mjs server/scripts/train-router.ts --check      train again and fail if the model would differ
 *   node launch.mjs server/scripts/train-router.ts --mistakes   train, and list the misrouted tasks of held-out families
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
} from './train-router/compose-examples.ts'
import { type Evaluation, evaluate, keywordBaseline, summarise } from './train-router/evaluate.ts'
import { fitWeights, quantiseWeights } from './train-router/fit-weights.ts'

const DATA_FOLDER = new URL('../data/routing/', import.meta.url)
const MODEL_FILE = new URL('model.json', DATA_FOLDER)
const FOLDS = 4
const THRESHOLD = 0.45
const LANES = ['analyst-v1', 'coder-v1', 'comedian-v1', 'researcher-v2', 'strategist-v1', 'support-v1', 'writer-v1']
const MIN_ACCURACY = 0.92
const MAX_CALIBRATION_ERROR = 0.05

const NOT_MEASURED = { tasks: 0, validation_accuracy: 0, calibration_error: 0 }
// Held-out families still share phrasings with the training families, so real tasks are harder: a temperature below
// this range would be overconfident.
const TEMPERATURES = Array.from({ length: 60 }, (_, index) => (30 + index * 2) / 100)

const data = readRoutingData(DATA_FOLDER)
const mode = process.argv[2]

if (mode === '--evaluate') {
  const model = JSON.parse(readFileSync(MODEL_FILE, 'utf8')) as RouterModel
  report(model, data)
} else {
  const startedAt = performance.now()
  const model = train(data)
  console.log(`trained in ${((performance.now() - startedAt) / 1000).toFixed(1)} s`)
  const text = `${JSON.stringify(model, null, 1)}\n`
  if (mode === '--check') {
    if (text !== readFileSync(MODEL_FILE, 'utf8'))
      fail('Training again gives a different model from the committed one.')
    console.log('the committed model matches the committed data')
  } else {
    writeFileSync(MODEL_FILE, text)
  }
  report(model, data)
}

function train(routingData: RoutingData): RouterModel {
  const examples = composeTraining(routingData)
  const temperature = calibrate(examples)
  const quantised = quantiseWeights(fitWeights(examples, LANES), temperature, THRESHOLD)
  const result = evaluate(createRouter({ ...quantised, trained: NOT_MEASURED }), routingData.validation)
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
 * Finds the temperature that calibrates confidence, on families each fold was not trained on. The validation split is
 * not used, because calibrating on it would bias its own result.
 */
function calibrate(examples: readonly Example[]): number {
  const families = [...new Set(examples.map((example) => example.family))].sort()
  const foldOf = (family: string) => families.indexOf(family) % FOLDS
  const heldOut: { example: Example; logits: number[] }[] = []
  for (let fold = 0; fold < FOLDS; fold++) {
    const trainingExamples = examples.filter((example) => foldOf(example.family) !== fold)
    const router = createRouter({
      ...quantiseWeights(fitWeights(trainingExamples, LANES), 1, THRESHOLD),
      trained: NOT_MEASURED,
    })
    for (const example of examples) {
      if (example.authored && foldOf(example.family) === fold)
        heldOut.push({ example, logits: router.logits(example.text) })
    }
  }
  const losses = TEMPERATURES.map((temperature) =>
    heldOut.reduce((sum, row) => sum + quadraticLoss(row, temperature), 0),
  )
  const temperature = TEMPERATURES[losses.indexOf(Math.min(...losses))]!
  const mistakes = heldOut.filter(({ example, logits }) => LANES[logits.indexOf(Math.max(...logits))] !== example.lane)
  console.log(
    `held-out families: ${heldOut.length - mistakes.length} of ${heldOut.length} right (${formatPercent(1 - mistakes.length / heldOut.length)}), temperature ${temperature}`,
  )
  if (mode === '--mistakes') {
    for (const { example, logits } of mistakes)
      console.log(
        `  ${example.lane} → ${LANES[logits.indexOf(Math.max(...logits))]}: ${example.text.slice(0, 120).replaceAll('\n', ' ')}`,
      )
  }
  return temperature
}

/** The Brier score: minimal when the predicted probabilities are the true ones, and it needs no logarithm. */
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

function report(model: RouterModel, routingData: RoutingData): void {
  const trainGrams = fiveGrams(composeTraining(routingData).map((example) => example.text))
  const sharedGrams = [...fiveGrams(routingData.validation.map((row) => row.task))].filter((gram) =>
    trainGrams.has(gram),
  )
  const trainFamilies = new Set([...routingData.families, ...routingData.tasks].map((row) => row.family))
  const sharedFamilies = [...new Set(routingData.validation.map((row) => row.family))].filter((family) =>
    trainFamilies.has(family),
  )
  const result = evaluate(createRouter(model), routingData.validation)
  const baseline = summarise(
    routingData.validation.map(({ lane, task }) => ({
      lane,
      task,
      predicted: keywordBaseline(task),
      decided: keywordBaseline(task),
      confidence: 1,
    })),
  )
  console.log(`routing_version ${model.routing_version}, trained on ${model.trained.tasks} tasks`)
  console.log(
    `split: ${trainFamilies.size} training families, ${new Set(routingData.validation.map((row) => row.family)).size} validation families, ${sharedFamilies.length} shared; five-word runs shared: ${sharedGrams.length}`,
  )
  printRows(result, baseline)
  console.log(
    `a decision takes ${measureMicroseconds(createRouter(model), routingData.validation).toFixed(1)} µs (median)`,
  )
  for (const mistake of result.mistakes)
    console.log(
      `  ${mistake.lane} → ${mistake.decided} (${mistake.predicted} ${mistake.confidence}): ${mistake.task.slice(0, 110).replaceAll('\n', ' ')}`,
    )
  if (sharedGrams.length > 0 || sharedFamilies.length > 0)
    fail('The training and validation splits share text or families.')
  if (result.accuracy < MIN_ACCURACY) fail(`Accuracy is below ${formatPercent(MIN_ACCURACY)}.`)
  if (result.calibrationError > MAX_CALIBRATION_ERROR) fail(`Calibration error is above ${MAX_CALIBRATION_ERROR}.`)
}

/** The median over all validation tasks, after a warm-up. */
function measureMicroseconds(router: Router, tasks: readonly { task: string }[]): number {
  const times: number[] = []
  for (let round = 0; round < 20; round++) {
    for (const { task } of tasks) {
      const startedAt = performance.now()
      router.predict(task)
      if (round >= 10) times.push((performance.now() - startedAt) * 1000)
    }
  }
  return times.sort((a, b) => a - b)[Math.floor(times.length / 2)]!
}

function printRows(result: Evaluation, baseline: Evaluation): void {
  console.log(`validation tasks: ${result.tasks}`)
  console.log(`                      router    keyword baseline`)
  console.log(`accuracy              ${formatPercent(result.accuracy).padEnd(9)} ${formatPercent(baseline.accuracy)}`)
  console.log(
    `most likely lane      ${formatPercent(result.topAccuracy).padEnd(9)} ${formatPercent(baseline.topAccuracy)}`,
  )
  console.log(`calibration error     ${result.calibrationError.toFixed(4).padEnd(9)} –`)
  for (const { lane, recall, precision } of result.perLane) {
    const baselineRow = baseline.perLane.find((row) => row.lane === lane)!
    console.log(
      `${lane.padEnd(15)} recall ${formatPercent(recall).padEnd(7)}  ${formatPercent(baselineRow.recall).padEnd(7)}  precision ${formatPercent(precision)}`,
    )
  }
}

function formatPercent(share: number): string {
  return `${(share * 100).toFixed(1)} %`
}

function round(value: number): number {
  return Number(value.toFixed(4))
}

function fail(message: string): void {
  console.error(message)
  process.exitCode = 1
}
