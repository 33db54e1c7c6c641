/** Random choices that depend on a seed and the index of a request only, so that a request can be made again. */
export type Random = ReturnType<typeof createRandom>

export function createRandom(seed: number, index: number) {
  // Two rounds of mixing, so that neighbouring indexes share nothing.
  let state = mix(mix(seed ^ 0x9e3779b9) ^ Math.imul(index + 1, 0x85ebca6b))
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    return (mix(state) >>> 0) / 0x1_0000_0000
  }
  const below = (limit: number) => Math.floor(next() * limit)
  return {
    next,
    below,
    chance: (probability: number) => next() < probability,
    pick: <T>(values: readonly T[]): T => values[below(values.length)]!,
  }
}

function mix(value: number): number {
  let mixed = value | 0
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad)
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
  return mixed ^ (mixed >>> 15)
}
