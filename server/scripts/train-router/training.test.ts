import { expect, test } from 'vitest'
import trainedModel from '../../data/routing/model.json' with { type: 'json' }
import { computeVersion, createRouter, type RouterModel } from '../../src/modules/routing/model.ts'
import { exactExp } from '../../src/modules/routing/softmax.ts'
import { composeTraining, fiveGrams, readRoutingData } from './compose-examples.ts'
import { evaluate, keywordBaseline } from './evaluate.ts'
import { fitWeights, quantiseWeights } from './fit-weights.ts'

const data = readRoutingData(new URL('../../data/routing/', import.meta.url))
const router = createRouter(trainedModel as RouterModel)

test('the committed model routes at least 92 % of tasks from unseen families correctly', () => {
  const result = evaluate(router, data.validation)
  expect(result.tasks).toBeGreaterThan(350)
  expect(result.accuracy).toBeGreaterThanOrEqual(0.92)
  for (const { recall } of result.perLane) expect(recall).toBeGreaterThanOrEqual(0.85)
})

test('the confidence is calibrated: the calibration error is at most 0.05', () => {
  expect(evaluate(router, data.validation).calibrationError).toBeLessThanOrEqual(0.05)
})

test('the accuracy is at least 30 points above keyword routing', () => {
  const correct = data.validation.filter(({ lane, task }) => keywordBaseline(task) === lane).length
  expect(evaluate(router, data.validation).accuracy).toBeGreaterThan(correct / data.validation.length + 0.3)
})

test('training and validation share no family and no sequence of five words', () => {
  const families = new Set([...data.families, ...data.tasks].map((row) => row.family))
  expect(data.validation.filter((row) => families.has(row.family))).toEqual([])
  const trainingGrams = fiveGrams(composeTraining(data).map((example) => example.text))
  expect([...fiveGrams(data.validation.map((row) => row.task))].filter((gram) => trainingGrams.has(gram))).toEqual([])
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
    tasks: subset,
  })
  const lanes = [...new Set(data.tasks.map((task) => task.lane))].sort()
  const train = () => quantiseWeights(fitWeights(examples, lanes), 0.5, 0.4)
  const firstModel = train()
  expect(train()).toEqual(firstModel)
  const subsetRouter = createRouter({
    ...firstModel,
    trained: { tasks: 0, validation_accuracy: 0, calibration_error: 0 },
  })
  expect(evaluate(subsetRouter, subset).topAccuracy).toBeGreaterThan(0.95)
})

test('exactExp agrees with Math.exp', () => {
  for (const x of [-700, -20.5, -1, -1e-9, 0, 0.3, 1, 12.25, 600]) expect(exactExp(x) / Math.exp(x)).toBeCloseTo(1, 12)
  expect(exactExp(-1e9)).toBe(0)
})
