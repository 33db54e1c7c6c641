import { type BoostedTrees, type Tree, valueOfTree } from '../src/modules/verification/boosted-trees.ts'

export type Sample = { features: Readonly<Record<string, number>>; y: 0 | 1; weight: number }
type Options = { trees: number; depth: number }

const RATE = 0.1
const RIDGE = 3
const LEAST_WEIGHT = 1.5
const LEAST_SAMPLES = 20
const BINS = 24

const round = (value: number) => Math.round(value * 10_000) / 10_000

/** Gradient boosting of the logistic loss over features in bins. Nothing in it is random. */
export function fitTrees(samples: readonly Sample[], { trees: count, depth }: Options): BoostedTrees {
  const names = Object.keys(samples[0]!.features)
  const rows = samples.map(({ features }) => names.map((name) => features[name]!))
  const edges = names.map((_, feature) => edgesOf(rows.map((row) => row[feature]!)))
  const bins = names.map((_, feature) =>
    Uint8Array.from(rows, (row) => edges[feature]!.filter((edge) => row[feature]! >= edge).length),
  )
  const total = samples.reduce((sum, { weight }) => sum + weight, 0)
  const positive = samples.reduce((sum, { weight, y }) => sum + weight * y, 0)
  const base = round(Math.log(positive / (total - positive)))
  const scores = new Float64Array(samples.length).fill(base)
  const gradients = new Float64Array(samples.length)
  const curvatures = new Float64Array(samples.length)

  const grow = (members: readonly number[], levels: number): Tree => {
    let [gradient, curvature] = [0, 0]
    for (const member of members) {
      gradient += gradients[member]!
      curvature += curvatures[member]!
    }
    const leaf = round((-gradient / (curvature + RIDGE)) * RATE)
    if (levels === 0 || members.length < LEAST_SAMPLES) return leaf
    let best = { gain: 0.001, feature: -1, bin: -1 }
    names.forEach((_, feature) => {
      const size = edges[feature]!.length
      const [sums, weights] = [new Float64Array(size + 1), new Float64Array(size + 1)]
      for (const member of members) {
        sums[bins[feature]![member]!]! += gradients[member]!
        weights[bins[feature]![member]!]! += curvatures[member]!
      }
      let [left, leftWeight] = [0, 0]
      for (let bin = 0; bin < size; bin++) {
        left += sums[bin]!
        leftWeight += weights[bin]!
        const rightWeight = curvature - leftWeight
        if (leftWeight < LEAST_WEIGHT || rightWeight < LEAST_WEIGHT) continue
        const gain =
          left ** 2 / (leftWeight + RIDGE) +
          (gradient - left) ** 2 / (rightWeight + RIDGE) -
          gradient ** 2 / (curvature + RIDGE)
        if (gain > best.gain) best = { gain, feature, bin }
      }
    })
    if (best.feature < 0) return leaf
    const isBelow = (member: number) => bins[best.feature]![member]! <= best.bin
    return [
      best.feature,
      edges[best.feature]![best.bin]!,
      grow(members.filter(isBelow), levels - 1),
      grow(
        members.filter((member) => !isBelow(member)),
        levels - 1,
      ),
    ]
  }

  const trees: Tree[] = []
  const everyone = samples.map((_, index) => index)
  for (let round = 0; round < count; round++) {
    samples.forEach(({ y, weight }, i) => {
      const chance = 1 / (1 + Math.exp(-scores[i]!))
      gradients[i] = (chance - y) * weight
      curvatures[i] = Math.max(0.000_001, chance * (1 - chance)) * weight
    })
    const tree = grow(everyone, depth)
    trees.push(tree)
    rows.forEach((row, i) => {
      scores[i]! += valueOfTree(tree, row)
    })
  }
  return { names, base, trees }
}

/** The values halfway between neighbours at equal shares of the samples. */
function edgesOf(values: number[]): number[] {
  const sorted = Float64Array.from(values).sort()
  const edges = new Set<number>()
  for (let bin = 1; bin < BINS; bin++) {
    const value = sorted[Math.floor((sorted.length * bin) / BINS)]!
    const first = sorted.indexOf(value)
    if (first > 0) edges.add(round((sorted[first - 1]! + value) / 2))
  }
  return [...edges].sort((a, b) => a - b)
}
