import { Session } from 'node:inspector'

/**
 * Counts the work of reading a text in steps: how often each block of our code and of the parsers runs, and the
 * characters or items that built-in functions go through. A search by a regular expression counts as the characters it goes over; that none of them is
 * slower than that is shown for each one by itself.
 */
export function createStepCounter(isCounted: (url: string) => boolean) {
  const session = new Session()
  session.connect()
  const post = <T>(method: string, parameters = {}): T => {
    let answer: T | undefined
    session.post(method, parameters, (error, result) => {
      if (error) throw error
      answer = result as T
    })
    return answer!
  }
  post('Profiler.enable')
  // Before the readers are loaded: code compiled earlier is counted by function and not by block.
  post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })

  type Coverage = { result: { url: string; functions: { ranges: { count: number }[] }[] }[] }
  const takeBlocks = () =>
    post<Coverage>('Profiler.takePreciseCoverage').result.reduce(
      (sum, script) =>
        isCounted(script.url)
          ? sum +
            script.functions.reduce((total, { ranges }) => total + ranges.reduce((n, { count }) => n + count, 0), 0)
          : sum,
      0,
    )

  return {
    async count(read: () => unknown): Promise<number> {
      takeBlocks()
      const builtIns = patchBuiltIns()
      try {
        await read()
      } finally {
        builtIns.restore()
      }
      return builtIns.steps() + takeBlocks()
    },
    close: () => session.disconnect(),
  }
}

/** Every pattern that was used while steps were counted. */
export const usedPatterns = new Map<string, { source: string; flags: string }>()
const seenPatterns = new WeakSet<RegExp>()

// biome-ignore lint/suspicious/noExplicitAny: built-in functions of any signature are wrapped.
type Method = (...values: any[]) => any

/** Replaces built-in functions that go through a whole text or list by ones that count. */
function patchBuiltIns() {
  let steps = 0
  const restores: (() => void)[] = []
  const patch = (target: object, name: string, cost: (self: never, result: never, values: never[]) => number) => {
    const original = (target as Record<string, Method>)[name]!
    ;(target as Record<string, Method>)[name] = function (this: unknown, ...values: unknown[]) {
      const result = original.apply(this, values)
      steps += 1 + cost(this as never, result as never, values as never[])
      return result
    }
    restores.push(() => {
      ;(target as Record<string, Method>)[name] = original
    })
  }
  const distance = (self: { length: number }, result: number, values: number[]) =>
    result >= 0 ? Math.abs(result - (values[1] ?? 0)) : self.length
  const ownLength = (self: { length: number }) => self.length
  const resultLength = (_self: unknown, result: { length: number } | undefined) => result?.length ?? 0
  for (const type of [String.prototype, Array.prototype] as object[]) {
    patch(type, 'indexOf', distance)
    patch(type, 'lastIndexOf', (self: { length: number }, result: number) =>
      result >= 0 ? self.length - result : self.length,
    )
    patch(type, 'includes', ownLength)
    patch(type, 'concat', resultLength)
  }
  for (const name of ['toLowerCase', 'toUpperCase', 'normalize', 'replaceAll', 'isWellFormed'])
    patch(String.prototype, name, ownLength)
  for (const name of ['trim', 'trimStart', 'trimEnd'])
    patch(String.prototype, name, (self: string, result: string) => self.length - result.length)
  for (const name of ['join', 'slice', 'splice', 'flat', 'with']) patch(Array.prototype, name, resultLength)
  patch(String.prototype, 'split', (self: string, _result: string[], values: unknown[]) =>
    typeof values[0] === 'string' ? self.length : 0,
  )
  patch(JSON, 'parse', (_self: unknown, _result: unknown, values: string[]) => values[0]!.length)
  patch(JSON, 'stringify', resultLength)

  const exec = RegExp.prototype.exec
  RegExp.prototype.exec = function (this: RegExp, text: string) {
    const from = this.global || this.sticky ? this.lastIndex : 0
    const result = exec.call(this, text)
    steps += 1 + (result ? result.index + result[0].length - from : this.sticky ? 0 : String(text).length - from)
    if (!seenPatterns.has(this)) {
      seenPatterns.add(this)
      usedPatterns.set(`/${this.source}/${this.flags}`, this)
    }
    return result
  }
  restores.push(() => {
    RegExp.prototype.exec = exec
  })
  return {
    steps: () => steps,
    restore() {
      for (const restore of restores.reverse()) restore()
    },
  }
}
