import { expect, test } from 'vitest'
import trainedModel from '../../data/routing/model.json' with { type: 'json' }
import { computeVersion, createRouter, type RouterModel } from '../../src/modules/routing/model.ts'
import { exactExp } from '../../src/modules/routing/softmax.ts'
import { composeTraining, createRandom, fiveGrams, misspell, readRoutingData } from './compose-examples.ts'
import { evaluate, evaluateKeywords } from './evaluate.ts'
import { fitWeights, quantiseWeights } from './fit-weights.ts'

const data = readRoutingData(new URL('../../data/routing/', import.meta.url))
const router = createRouter(trainedModel as RouterModel)
const strangers = evaluate(router, data.strangers)
const families = evaluate(router, data.validation)

test('of the tasks that strangers wrote, at least 92 % are routed correctly and no kind below 80 %', () => {
  expect(strangers.tasks).toBeGreaterThan(450)
  expect(strangers.accuracy).toBeGreaterThanOrEqual(0.92)
  expect(strangers.perKind.map(({ kind }) => kind)).toEqual([
    'agents',
    'injections',
    'languages',
    'long',
    'pasted',
    'plain',
    'terse',
    'traps',
    'typos',
  ])
  for (const { kind, tasks, accuracy } of strangers.perKind) {
    expect([kind, tasks >= 50]).toEqual([kind, true])
    expect([kind, accuracy >= 0.8]).toEqual([kind, true])
  }
  expect(new Set(data.strangers.map(({ lang }) => lang)).size).toBeGreaterThanOrEqual(14)
})

test('the committed model routes at least 92 % of tasks from unseen families correctly', () => {
  expect(families.tasks).toBeGreaterThan(350)
  expect(families.accuracy).toBeGreaterThanOrEqual(0.92)
  for (const { recall } of families.perLane) expect(recall).toBeGreaterThanOrEqual(0.85)
})

test('the confidence is calibrated: the calibration error is at most 0.05 on both sets', () => {
  expect(strangers.calibrationError).toBeLessThanOrEqual(0.05)
  expect(families.calibrationError).toBeLessThanOrEqual(0.05)
})

test('the accuracy is at least 30 points above keyword routing', () => {
  expect(families.accuracy).toBeGreaterThan(evaluateKeywords(data.validation).accuracy + 0.3)
  expect(strangers.accuracy).toBeGreaterThan(evaluateKeywords(data.strangers).accuracy + 0.3)
})

test('training and validation share no family and no sequence of five words', () => {
  const trainingFamilies = new Set([...data.families, ...data.tasks].map((row) => row.family))
  expect(data.validation.filter((row) => trainingFamilies.has(row.family))).toEqual([])
  const trainingGrams = fiveGrams(composeTraining(data).map((example) => example.text))
  const validationTasks = [...data.validation, ...data.strangers].map((row) => row.task)
  expect([...fiveGrams(validationTasks)].filter((gram) => trainingGrams.has(gram))).toEqual([])
})

test('the version is a hash of the weights', () => {
  const { routing_version, trained: _, ...model } = trainedModel as RouterModel
  expect(computeVersion(model)).toBe(routing_version)
  expect(computeVersion({ ...model, temperature_milli: model.temperature_milli + 1 })).not.toBe(routing_version)
})

test('training is deterministic and fits its training set', () => {
  const subset = data.tasks.filter((_, i) => i % 8 === 0)
  const examples = composeTraining({
    ...data,
    phrasings: [],
    lexicon: [],
    ambiguous: [],
    traps: [],
    languages: [],
    training: [],
    tasks: subset,
  })
  const lanes = [...new Set(data.tasks.map((task) => task.lane))].concat('default').sort()
  const train = () => quantiseWeights(fitWeights(examples, lanes), 0.5, 0.2)
  const firstModel = train()
  expect(train()).toEqual(firstModel)
  const subsetRouter = createRouter({
    ...firstModel,
    trained: { tasks: 0, validation_accuracy: 0, calibration_error: 0 },
  })
  expect(evaluate(subsetRouter, subset).accuracy).toBeGreaterThan(0.95)
})

test('a misspelt text keeps its words in order and is the same for the same seed', () => {
  const text = 'Please summarise the quarterly report for my manager'
  const misspelt = Array.from({ length: 20 }, (_, i) => misspell(text, createRandom(i + 1)))
  expect(misspelt).toEqual(Array.from({ length: 20 }, (_, i) => misspell(text, createRandom(i + 1))))
  expect(misspelt.some((variant) => variant !== text)).toBe(true)
})

test('exactExp agrees with Math.exp', () => {
  for (const x of [-700, -20.5, -1, -1e-9, 0, 0.3, 1, 12.25, 600]) expect(exactExp(x) / Math.exp(x)).toBeCloseTo(1, 12)
  expect(exactExp(-1e9)).toBe(0)
})
