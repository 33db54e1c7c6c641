export type Random = ReturnType<typeof createRandom>

/** Numbers that a seed decides (mulberry32). */
export function createRandom(seed: number) {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const integer = (below: number) => Math.floor(next() * below)
  return {
    integer,
    pick: <T>(list: readonly T[]): T => list[integer(list.length)]!,
    shuffle<T>(list: readonly T[]): T[] {
      const copy = [...list]
      for (let index = copy.length - 1; index > 0; index -= 1) {
        const other = integer(index + 1)
        ;[copy[index], copy[other]] = [copy[other]!, copy[index]!]
      }
      return copy
    },
  }
}
