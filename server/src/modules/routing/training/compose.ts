import { readFileSync } from 'node:fs'

/**
 * Builds the training set out of what people wrote: phrasings for each lane, topics by family, words that belong to a
 * lane, and whole tasks. Composition is driven by a seeded generator, so the same files always give the same set.
 */
export type Example = {
  text: string
  /** Undefined for a task that belongs to no lane: the router should be unsure of it. */
  lane: string | undefined
  family: string
  weight: number
  /** A whole task as a person would send it, not a composed one. Only these are used to calibrate. */
  authored: boolean
}

export type Family = { family: string; topics: string[]; orgs: string[]; products: string[] }
export type AuthoredTask = { lane: string; family: string; task: string }

export type RoutingData = {
  families: Family[]
  phrasings: { lane: string; phrasing: string }[]
  lexicon: { lane: string; term: string }[]
  material: { kind: 'code' | 'complaint' | 'prose'; text: string }[]
  tasks: AuthoredTask[]
  validation: AuthoredTask[]
  ambiguous: { task: string }[]
  injections: { split: 'train' | 'test'; text: string }[]
}

export function readRoutingData(folder: URL): RoutingData {
  const lines = <T>(name: string) =>
    readFileSync(new URL(`${name}.jsonl`, folder), 'utf8')
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as T)
  return {
    families: lines('families'),
    phrasings: lines('phrasings'),
    lexicon: lines('lexicon'),
    material: lines('material'),
    tasks: lines('tasks'),
    validation: lines('validation'),
    ambiguous: lines('ambiguous'),
    injections: lines('injections'),
  }
}

const PER_PHRASING = 26
const PER_TERM = 3
const PER_AUTHORED = 3
const PER_AMBIGUOUS = 5
const AMBIGUOUS_WEIGHT = 1.5
/** Words that are none: what a text looks like from afar must not be enough to choose a lane. */
const GIBBERISH = 400

const CARRIERS = [
  '{term}',
  '{term} for {topic}',
  'i need {term}',
  '{term} about {topic}',
  'help with {term}',
  '{topic}: {term}',
  '{term} please',
  '{term}, {org}',
  'can you do {term} for {org}',
  '{term} and {other}',
  '{term} {other}',
]
const PREFIXES = [
  '',
  '',
  '',
  '',
  '',
  'please ',
  'can you ',
  'could you ',
  'I need you to ',
  'hey, ',
  'Task: ',
  'quick one: ',
  'Hi! ',
  'I would like you to ',
  'we need to ',
  'help me ',
]
const SUFFIXES = [
  '',
  '',
  '',
  '',
  '',
  '',
  ' Keep it short.',
  ' Thanks!',
  ' Be concise.',
  ' It is for {org}.',
  ' I need it by tomorrow.',
  ' Answer in English.',
  ' Return it as JSON.',
  ' Use bullet points.',
  ' No more than 200 words.',
  ' My audience is {person}.',
  ' Be thorough.',
  ' Make it good.',
  ' Please be quick, it is urgent.',
  ' in the context of {topic}',
  ' We work on {topic}.',
  ' Budget is tight.',
]
const PEOPLE = [
  'my boss',
  'my landlord',
  'a new client',
  'our investors',
  'the team',
  'my professor',
  'a colleague',
  'my neighbour',
  'the mayor',
  'a supplier',
  'my grandmother',
  'the school',
  'our donors',
  'a recruiter',
  'my sister',
]
const ERRORS = [
  'exit code 1',
  'ENOENT',
  'permission denied',
  'unable to resolve dependency tree',
  'connection refused',
  'no such file or directory',
  'out of memory',
]

/** A small generator with a fixed sequence for a seed (xorshift32). */
export function createChance(seed: number) {
  let state = seed >>> 0 || 1
  const next = () => {
    state ^= state << 13
    state >>>= 0
    state ^= state >>> 17
    state ^= state << 5
    state >>>= 0
    return state
  }
  return {
    next,
    below: (limit: number) => next() % limit,
    pick: <T>(items: readonly T[]): T => items[next() % items.length]!,
  }
}

type Chance = ReturnType<typeof createChance>

export function composeTraining(data: RoutingData, seed = 20_261_116): Example[] {
  const chance = createChance(seed)
  const composer = createComposer(data, chance)
  const examples: Example[] = []
  for (const { lane, phrasing } of data.phrasings) {
    for (let at = 0; at < PER_PHRASING; at++) {
      const family = chance.pick(data.families)
      examples.push({
        text: composer.dress(composer.expand(phrasing, family), family),
        lane,
        family: family.family,
        weight: 1,
        authored: false,
      })
    }
  }
  const lanes = new Set(data.lexicon.map((entry) => entry.lane)).size
  for (const { lane, term } of data.lexicon) {
    const terms = data.lexicon.filter((other) => other.lane === lane)
    // Some lanes have many more words of their own; that must not make a short text theirs.
    const balance = data.lexicon.length / lanes / terms.length
    for (let at = 0; at < PER_TERM; at++) {
      const family = chance.pick(data.families)
      const carrier = chance.pick(CARRIERS).replaceAll('{term}', term).replaceAll('{other}', chance.pick(terms).term)
      examples.push({
        text: composer.expand(carrier, family),
        lane,
        family: family.family,
        weight: 0.7 * balance,
        authored: false,
      })
    }
  }
  for (const { lane, family, task } of data.tasks) {
    const own = data.families.find((candidate) => candidate.family === family)!
    examples.push({ text: task, lane, family, weight: 3, authored: true })
    for (let at = 1; at < PER_AUTHORED; at++)
      examples.push({ text: composer.dress(task, own), lane, family, weight: 1, authored: false })
  }
  for (const { task } of data.ambiguous) {
    for (let at = 0; at < PER_AMBIGUOUS; at++) {
      const family = chance.pick(data.families)
      examples.push({
        text: composer.expand(task, family),
        lane: undefined,
        family: family.family,
        weight: AMBIGUOUS_WEIGHT,
        authored: false,
      })
    }
  }
  for (let at = 0; at < GIBBERISH; at++) {
    const text = Array.from({ length: 1 + chance.below(4) }, () => nonsense(chance)).join(' ')
    examples.push({
      text,
      lane: undefined,
      family: chance.pick(data.families).family,
      weight: AMBIGUOUS_WEIGHT,
      authored: false,
    })
  }
  const forbidden = fiveGrams(data.validation.map((row) => row.task))
  return examples.filter((example) => ![...fiveGrams([example.text])].some((gram) => forbidden.has(gram)))
}

function createComposer(data: RoutingData, chance: Chance) {
  const material = (kind: string) => data.material.filter((piece) => piece.kind === kind).map((piece) => piece.text)
  const pieces = { code: material('code'), complaint: material('complaint'), prose: material('prose') }
  const injections = data.injections
    .filter((injection) => injection.split === 'train')
    .map((injection) => injection.text)

  const numbers = () =>
    Array.from({ length: 3 + chance.below(7) }, () => number()).join(chance.pick([', ', ' ', ' / ', '; ']))
  const number = () =>
    chance.pick([
      String(1 + chance.below(99)),
      String(100 + chance.below(9000)),
      `${1 + chance.below(40)}.${chance.below(10)}`,
      `${1 + chance.below(90)}%`,
      `$${1 + chance.below(900)}`,
      `${1 + chance.below(90)}k`,
    ])
  const csv = () => {
    const head = chance.pick([
      'month,revenue,cost',
      'region,units,price',
      'date,visits,orders',
      'name,score,age',
      'product,q1,q2,q3',
    ])
    const columns = head.split(',').length
    const rows = Array.from({ length: 3 + chance.below(4) }, (_, at) =>
      [
        chance.pick(['Jan', 'north', 'A', '2024-01', 'alpha', 'Q1']) + at,
        ...Array.from({ length: columns - 1 }, () => String(chance.below(500))),
      ].join(','),
    )
    return `\n${[head, ...rows].join('\n')}\n`
  }

  const slot = (name: string, family: Family): string => {
    switch (name) {
      case 'topic':
      case 'topic2':
        return chance.pick(family.topics)
      case 'org':
        return chance.pick(family.orgs)
      case 'product':
      case 'product2':
        return chance.pick(family.products)
      case 'person':
        return chance.pick(PEOPLE)
      case 'num':
      case 'num2':
        return number()
      case 'money':
        return `$${10 + chance.below(500)}k`
      case 'nums':
        return numbers()
      case 'csv':
        return csv()
      case 'code':
        return `${chance.pick(['', '\n'])}${chance.pick(pieces.code)}`
      case 'complaint':
      case 'complaint2':
        return fill(chance.pick(pieces.complaint), family)
      case 'text':
        return `${chance.pick(['', '\n\n', '"'])}${chance.pick(pieces.prose)}`
      case 'err':
        return chance.pick(ERRORS)
      default:
        return `{${name}}`
    }
  }
  const fill = (text: string, family: Family): string =>
    text.replace(/\{(\w+)\}/g, (_, name: string) => slot(name, family))

  /** `(a|b)` is one of them, `[a|b]` one of them or nothing, `{topic}` a word of the family. */
  const expand = (phrasing: string, family: Family): string =>
    fill(alternate(phrasing, chance), family).replace(/ {2,}/g, ' ').trim()

  /** People are polite, terse, careless with capitals, add wishes, and sometimes try to talk to the router. */
  const dress = (text: string, family: Family): string => {
    let dressed = `${chance.pick(PREFIXES)}${text}`
    if (dressed.length < 400) dressed += fill(chance.pick(SUFFIXES), family)
    if (chance.below(4) === 0) dressed = dressed.toLowerCase()
    if (chance.below(7) === 0)
      dressed =
        chance.below(2) === 0 ? `${dressed} ${chance.pick(injections)}` : `${chance.pick(injections)} ${dressed}`
    if (chance.below(14) === 0) dressed = `${dressed}\n\n${chance.pick(pieces.prose)}`
    return dressed
  }
  return { expand, dress }
}

const nonsense = (chance: Chance) =>
  Array.from(
    { length: 2 + chance.below(3) },
    () => chance.pick([...'bcdfghklmnprstvwz']) + chance.pick([...'aeiouy']),
  ).join('')

function alternate(text: string, chance: Chance): string {
  let out = ''
  for (let at = 0; at < text.length; at++) {
    const open = text[at]!
    const close = open === '(' ? ')' : open === '[' ? ']' : ''
    if (!close) {
      out += open
      continue
    }
    const end = closing(text, at, open, close)
    if (end < 0) {
      out += open
      continue
    }
    const choices = splitTop(text.slice(at + 1, end))
    if (open === '(' && choices.length === 1) out += `(${alternate(choices[0]!, chance)})`
    else if (open === '(' || chance.below(2) === 0) out += alternate(chance.pick(choices), chance)
    at = end
  }
  return out
}

function closing(text: string, start: number, open: string, close: string): number {
  let depth = 0
  for (let at = start; at < text.length; at++) {
    if (text[at] === open) depth++
    else if (text[at] === close && --depth === 0) return at
  }
  return -1
}

function splitTop(text: string): string[] {
  const parts: string[] = []
  let depth = 0
  let start = 0
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '(' || text[at] === '[') depth++
    else if (text[at] === ')' || text[at] === ']') depth--
    else if (text[at] === '|' && depth === 0) {
      parts.push(text.slice(start, at))
      start = at + 1
    }
  }
  return [...parts, text.slice(start)]
}

/** Every run of five words of the texts. The two sides of the split may not share one. */
export function fiveGrams(texts: readonly string[]): Set<string> {
  const grams = new Set<string>()
  for (const text of texts) {
    const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
    for (let at = 0; at + 5 <= words.length; at++) grams.add(words.slice(at, at + 5).join(' '))
  }
  return grams
}
