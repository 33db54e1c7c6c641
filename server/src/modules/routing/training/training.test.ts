import { expect, test } from 'vitest'
import trained from '../../../../data/routing/model.json' with { type: 'json' }
import { createRouter, type RouterModel, versionOf } from '../model.ts'
import { exactExp } from '../softmax.ts'
import { composeTraining, fiveGrams, readRoutingData } from './compose.ts'
import { evaluate, keywordBaseline } from './evaluate.ts'
import { fit, quantise } from './fit.ts'

const data = readRoutingData(new URL('../../../../data/routing/', import.meta.url))
const router = createRouter(trained as RouterModel)

test('the committed model is right on at least 92 % of tasks from families it has never seen', () => {
  const result = evaluate(router, data.validation)
  expect(result.tasks).toBeGreaterThan(350)
  expect(result.accuracy).toBeGreaterThanOrEqual(0.92)
  for (const { recall } of result.perLane) expect(recall).toBeGreaterThanOrEqual(0.85)
})

test('its confidence is honest: the calibration error is at most 0.05', () => {
  expect(evaluate(router, data.validation).calibrationError).toBeLessThanOrEqual(0.05)
})

test('it beats routing by keyword by far', () => {
  const right = data.validation.filter(({ lane, task }) => keywordBaseline(task) === lane).length
  expect(evaluate(router, data.validation).accuracy).toBeGreaterThan(right / data.validation.length + 0.3)
})

test('the two sides of the split share no family and no run of five words', () => {
  const families = new Set([...data.families, ...data.tasks].map((row) => row.family))
  expect(data.validation.filter((row) => families.has(row.family))).toEqual([])
  const seen = fiveGrams(composeTraining(data).map((example) => example.text))
  expect([...fiveGrams(data.validation.map((row) => row.task))].filter((gram) => seen.has(gram))).toEqual([])
})

test('the version names the weights', () => {
  const { routing_version, trained: _, ...model } = trained as RouterModel
  expect(versionOf(model)).toBe(routing_version)
  expect(versionOf({ ...model, temperature_milli: model.temperature_milli + 1 })).not.toBe(routing_version)
})

test('training is repeatable and learns what it is shown', () => {
  const some = data.tasks.filter((_, at) => at % 8 === 0)
  const examples = composeTraining({
    ...data,
    phrasings: [],
    lexicon: [],
    ambiguous: [],
    tasks: some,
  })
  const lanes = [...new Set(data.tasks.map((task) => task.lane))].sort()
  const train = () => quantise(fit(examples, lanes), 0.5, 0.4)
  const first = train()
  expect(train()).toEqual(first)
  const small = createRouter({ ...first, trained: { tasks: 0, validation_accuracy: 0, calibration_error: 0 } })
  expect(evaluate(small, some).topAccuracy).toBeGreaterThan(0.95)
})

test('the exponential of basic operations is the exponential', () => {
  for (const x of [-700, -20.5, -1, -1e-9, 0, 0.3, 1, 12.25, 600]) expect(exactExp(x) / Math.exp(x)).toBeCloseTo(1, 12)
  expect(exactExp(-1e9)).toBe(0)
})
