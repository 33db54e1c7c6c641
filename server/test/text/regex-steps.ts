/**
 * Counts the steps of a backtracking search by a regular expression: one for every character compared and every way
 * tried. The engine does not tell how much it backtracked, and time says little on a busy machine.
 */
export type CountedPattern = (text: string, from: number) => { steps: number; start: number; end: number } | undefined

type Continue = (at: number) => boolean
type Matcher = (at: number, then: Continue) => boolean
type Node = {
  match: Matcher
  /** How many characters it takes, when that is always the same. */
  width: number | undefined
  /** Whether a character may be its first; undefined when it may match nothing. */
  first: ((at: number) => boolean) | undefined
  /** A node that takes exactly one character can be repeated without recursion. */
  single?: (at: number) => number
}

class TooManySteps extends Error {}

const nativeExec = RegExp.prototype.exec

/** Compiles a pattern; the search gives up after `maxSteps`. */
export function compilePattern(source: string, flags: string, maxSteps: number) {
  const unicode = flags.includes('u') || flags.includes('v')
  const ignoreCase = flags.includes('i')
  const multiline = flags.includes('m')
  const atomFlags = `${unicode ? 'u' : ''}${ignoreCase ? 'i' : ''}${flags.includes('s') ? 's' : ''}`
  let text = ''
  let steps = 0
  let captures: [number, number][] = []
  let groups = 0
  let position = 0

  const step = () => {
    steps += 1
    if (steps > maxSteps) throw new TooManySteps()
  }

  /** The length of the character at a place: surrogate pairs are one character in a pattern with the flag u. */
  const lengthAt = (at: number) => (unicode && (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1)

  const atomCache = new Map<string, Node>()
  const atom = (atomSource: string): Node => {
    const cached = atomCache.get(atomSource)
    if (cached) return cached
    const pattern = new RegExp(`^(?:${atomSource})$`, atomFlags)
    const verdicts = new Uint8Array(0x10000)
    const accepts = (at: number) => {
      if (lengthAt(at) === 2) return nativeExec.call(pattern, text.slice(at, at + 2)) !== null
      const code = text.charCodeAt(at)
      verdicts[code] ||= nativeExec.call(pattern, text[at]!) ? 1 : 2
      return verdicts[code] === 1
    }
    const single = (at: number) => {
      step()
      return at < text.length && accepts(at) ? at + lengthAt(at) : -1
    }
    const node: Node = {
      single,
      width: unicode ? undefined : 1,
      first: (at) => at < text.length && accepts(at),
      match: (at, then) => {
        const end = single(at)
        return end >= 0 && then(end)
      },
    }
    atomCache.set(atomSource, node)
    return node
  }

  const assertion = (holds: (at: number) => boolean): Node => ({
    width: 0,
    first: undefined,
    match: (at, then) => {
      step()
      return holds(at) && then(at)
    },
  })

  const isWord = (at: number) => at >= 0 && at < text.length && /\w/.test(text[at]!)
  const isLineBreak = (at: number) => text[at] === '\n' || text[at] === '\r'

  const alternation = (): Node => {
    const options = [sequence()]
    while (source[position] === '|') {
      position += 1
      options.push(sequence())
    }
    if (options.length === 1) return options[0]!
    const firsts = options.map((option) => option.first)
    return {
      width: options.every((option) => option.width === options[0]!.width) ? options[0]!.width : undefined,
      first: firsts.includes(undefined) ? undefined : (at) => firsts.some((first) => first!(at)),
      match: (at, then) => {
        for (const option of options) {
          // The engine looks one character ahead before it tries a way.
          if (option.first && !option.first(at)) step()
          else if (option.match(at, then)) return true
        }
        return false
      },
    }
  }

  const sequence = (): Node => {
    const nodes: Node[] = []
    while (position < source.length && source[position] !== '|' && source[position] !== ')') nodes.push(term())
    if (nodes.length === 1) return nodes[0]!
    const leading = nodes.find((node) => node.width !== 0)
    const run =
      (index: number, then: Continue): Continue =>
      (at) =>
        index === nodes.length ? then(at) : nodes[index]!.match(at, run(index + 1, then))
    return {
      width: nodes.some((node) => node.width === undefined)
        ? undefined
        : nodes.reduce((sum, node) => sum + node.width!, 0),
      first: leading?.first,
      match: (at, then) => run(0, then)(at),
    }
  }

  const term = (): Node => {
    const node = factor()
    const quantifier = /^(?:[*+?]|\{(\d+)(,(\d*))?\})(\??)/.exec(source.slice(position))
    if (!quantifier) return node
    position += quantifier[0].length
    const sign = quantifier[0][0]
    const min = sign === '+' ? 1 : sign === '{' ? Number(quantifier[1]) : 0
    const max =
      sign === '?'
        ? 1
        : sign !== '{'
          ? Number.POSITIVE_INFINITY
          : quantifier[2] === undefined
            ? min
            : quantifier[3]
              ? Number(quantifier[3])
              : Number.POSITIVE_INFINITY
    return repeat(node, min, max, quantifier[4] === '?')
  }

  const repeat = (node: Node, min: number, max: number, lazy: boolean): Node => {
    const base = {
      width: min === max && node.width !== undefined ? min * node.width : undefined,
      first: min > 0 ? node.first : undefined,
    }
    if (node.single && !lazy) {
      return {
        ...base,
        match: (at, then) => {
          const ends = [at]
          for (let end = at; ends.length <= max; ends.push(end)) {
            end = node.single!(end)
            if (end < 0) break
          }
          for (let count = ends.length - 1; count >= min; count--) {
            step()
            if (then(ends[count]!)) return true
          }
          return false
        },
      }
    }
    const more = (at: number, count: number, then: Continue): boolean => {
      step()
      const again = () =>
        count < max && node.match(at, (end) => (end > at || count < min) && more(end, count + 1, then))
      if (count < min) return again()
      return lazy ? then(at) || again() : again() || then(at)
    }
    return { ...base, match: (at, then) => more(at, 0, then) }
  }

  const factor = (): Node => {
    const character = source[position]!
    if (character === '^' || character === '$') {
      position += 1
      return character === '^'
        ? assertion((at) => at === 0 || (multiline && isLineBreak(at - 1)))
        : assertion((at) => at === text.length || (multiline && isLineBreak(at)))
    }
    if (character === '(') return group()
    if (character === '[') {
      let end = position + 1
      while (source[end] !== ']') end += source[end] === '\\' ? 2 : 1
      return takeAtom(end + 1 - position)
    }
    if (character !== '\\') return takeAtom(unicode && source.codePointAt(position)! > 0xffff ? 2 : 1)
    const next = source[position + 1]!
    if (next === 'b' || next === 'B') {
      position += 2
      return assertion((at) => (isWord(at - 1) !== isWord(at)) === (next === 'b'))
    }
    if (/[1-9]/.test(next)) {
      position += 2
      return backreference(Number(next))
    }
    const escaped = /^\\(?:u\{[0-9a-f]+\}|u[0-9a-f]{4}|x[0-9a-f]{2}|[pP]\{[^}]*\}|c[a-z]|[\s\S])/i.exec(
      source.slice(position),
    )!
    return takeAtom(escaped[0].length)
  }

  const takeAtom = (length: number): Node => {
    const atomSource = source.slice(position, position + length)
    position += length
    return atom(atomSource)
  }

  const backreference = (index: number): Node => ({
    width: undefined,
    first: undefined,
    match: (at, then) => {
      const [from, to] = captures[index] ?? [0, 0]
      const captured = text.slice(from, to)
      const candidate = text.slice(at, at + captured.length)
      steps += captured.length
      step()
      const equal = ignoreCase ? captured.toLowerCase() === candidate.toLowerCase() : captured === candidate
      return equal && then(at + captured.length)
    },
  })

  const group = (): Node => {
    const opening = /^\((?:\?(?:[:=!]|<[=!]|<\w+>))?/.exec(source.slice(position))![0]
    position += opening.length
    const isCapture = opening === '(' || /<\w/.test(opening)
    if (isCapture) groups += 1
    const index = isCapture ? groups : 0
    const body = alternation()
    position += 1
    if (opening === '(?:') return body
    if (isCapture)
      return {
        ...body,
        match: (at, then) =>
          body.match(at, (end) => {
            const previous = captures[index]
            captures[index] = [at, end]
            if (then(end)) return true
            captures[index] = previous!
            return false
          }),
      }
    const isNegative = opening.endsWith('!')
    if (!opening.startsWith('(?<')) return assertion((at) => body.match(at, () => true) !== isNegative)
    // Patterns that look back do so over a few characters only.
    const widths = body.width === undefined ? Array.from({ length: 20 }, (_, i) => i) : [body.width]
    return assertion(
      (at) => widths.some((width) => at >= width && body.match(at - width, (end) => end === at)) !== isNegative,
    )
  }

  const pattern = alternation()
  if (position < source.length) throw new Error(`/${source}/ could not be read at ${position}.`)

  /** Searches from a place. A search that gives up has made `maxSteps` steps. */
  return (searchedText: string, from: number, sticky: boolean): { steps: number; start: number; end: number } => {
    text = searchedText
    steps = 0
    captures = []
    try {
      for (let start = from; start <= text.length; start++) {
        let end = -1
        if (pattern.first && !pattern.first(start)) step()
        else if (
          pattern.match(start, (at) => {
            end = at
            return true
          })
        )
          return { steps, start, end }
        if (sticky) break
        // Like the engine, a pattern that begins with ^ is tried once.
        if (!multiline && source[0] === '^' && !source.includes('|')) break
      }
    } catch (error) {
      if (!(error instanceof TooManySteps) && !(error instanceof RangeError)) throw error
      return { steps: maxSteps, start: -1, end: -1 }
    }
    return { steps, start: -1, end: -1 }
  }
}
