import { readFileSync } from 'node:fs'

/**
 * Builds the training set from the authored data: phrasings by lane, topics by family, terms by lane, and whole tasks. A
 * seeded random generator composes them, so the same files always give the same set.
 */
export type Example = {
  text: string
  /** Undefined for a text that belongs to no lane, so that the router learns to be unsure of it. */
  lane: string | undefined
  family: string
  weight: number
  /** True for an authored task, false for a composed one. Only authored tasks are used for calibration. */
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
/** Number of examples made of nonsense words, so that the shape of a text alone does not choose a lane. */
const GIBBERISH_COUNT = 400

const TERM_TEMPLATES = [
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

/** A seeded pseudo-random generator (xorshift32). */
export function createRandom(seed: number) {
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

type Random = ReturnType<typeof createRandom>

export function composeTraining(data: RoutingData, seed = 20_261_116): Example[] {
  const random = createRandom(seed)
  const composer = createComposer(data, random)
  const examples: Example[] = []
  for (const { lane, phrasing } of data.phrasings) {
    for (let i = 0; i < PER_PHRASING; i++) {
      const family = random.pick(data.families)
      examples.push({
        text: composer.addVariation(composer.expand(phrasing, family), family),
        lane,
        family: family.family,
        weight: 1,
        authored: false,
      })
    }
  }
  const lanes = new Set(data.lexicon.map((entry) => entry.lane)).size
  for (const { lane, term } of data.lexicon) {
    const terms = data.lexicon.filter((entry) => entry.lane === lane)
    // Lanes with more terms would otherwise attract short texts.
    const balance = data.lexicon.length / lanes / terms.length
    for (let i = 0; i < PER_TERM; i++) {
      const family = random.pick(data.families)
      const template = random
        .pick(TERM_TEMPLATES)
        .replaceAll('{term}', term)
        .replaceAll('{other}', random.pick(terms).term)
      examples.push({
        text: composer.expand(template, family),
        lane,
        family: family.family,
        weight: 0.7 * balance,
        authored: false,
      })
    }
  }
  for (const { lane, family, task } of data.tasks) {
    const taskFamily = data.families.find((candidate) => candidate.family === family)!
    examples.push({ text: task, lane, family, weight: 3, authored: true })
    for (let i = 1; i < PER_AUTHORED; i++)
      examples.push({ text: composer.addVariation(task, taskFamily), lane, family, weight: 1, authored: false })
  }
  for (const { task } of data.ambiguous) {
    for (let i = 0; i < PER_AMBIGUOUS; i++) {
      const family = random.pick(data.families)
      examples.push({
        text: composer.expand(task, family),
        lane: undefined,
        family: family.family,
        weight: AMBIGUOUS_WEIGHT,
        authored: false,
      })
    }
  }
  for (let i = 0; i < GIBBERISH_COUNT; i++) {
    const text = Array.from({ length: 1 + random.below(4) }, () => randomWord(random)).join(' ')
    examples.push({
      text,
      lane: undefined,
      family: random.pick(data.families).family,
      weight: AMBIGUOUS_WEIGHT,
      authored: false,
    })
  }
  const forbidden = fiveGrams(data.validation.map((row) => row.task))
  return examples.filter((example) => ![...fiveGrams([example.text])].some((gram) => forbidden.has(gram)))
}

function createComposer(data: RoutingData, random: Random) {
  const material = (kind: string) => data.material.filter((piece) => piece.kind === kind).map((piece) => piece.text)
  const pieces = { code: material('code'), complaint: material('complaint'), prose: material('prose') }
  const injections = data.injections
    .filter((injection) => injection.split === 'train')
    .map((injection) => injection.text)

  const numbers = () =>
    Array.from({ length: 3 + random.below(7) }, () => number()).join(random.pick([', ', ' ', ' / ', '; ']))
  const number = () =>
    random.pick([
      String(1 + random.below(99)),
      String(100 + random.below(9000)),
      `${1 + random.below(40)}.${random.below(10)}`,
      `${1 + random.below(90)}%`,
      `$${1 + random.below(900)}`,
      `${1 + random.below(90)}k`,
    ])
  const csv = () => {
    const head = random.pick([
      'month,revenue,cost',
      'region,units,price',
      'date,visits,orders',
      'name,score,age',
      'product,q1,q2,q3',
    ])
    const columns = head.split(',').length
    const rows = Array.from({ length: 3 + random.below(4) }, (_, i) =>
      [
        random.pick(['Jan', 'north', 'A', '2024-01', 'alpha', 'Q1']) + i,
        ...Array.from({ length: columns - 1 }, () => String(random.below(500))),
      ].join(','),
    )
    return `\n${[head, ...rows].join('\n')}\n`
  }

  const fillSlot = (name: string, family: Family): string => {
    switch (name) {
      case 'topic':
      case 'topic2':
        return random.pick(family.topics)
      case 'org':
        return random.pick(family.orgs)
      case 'product':
      case 'product2':
        return random.pick(family.products)
      case 'person':
        return random.pick(PEOPLE)
      case 'num':
      case 'num2':
        return number()
      case 'money':
        return `$${10 + random.below(500)}k`
      case 'nums':
        return numbers()
      case 'csv':
        return csv()
      case 'code':
        return `${random.pick(['', '\n'])}${random.pick(pieces.code)}`
      case 'complaint':
      case 'complaint2':
        return fill(random.pick(pieces.complaint), family)
      case 'text':
        return `${random.pick(['', '\n\n', '"'])}${random.pick(pieces.prose)}`
      case 'err':
        return random.pick(ERRORS)
      default:
        return `{${name}}`
    }
  }
  const fill = (text: string, family: Family): string =>
    text.replace(/\{(\w+)\}/g, (_, name: string) => fillSlot(name, family))

  /** Expands `(a|b)` to one of them, `[a|b]` to one of them or nothing, and `{topic}` to a topic of the family. */
  const expand = (phrasing: string, family: Family): string =>
    fill(expandAlternatives(phrasing, random), family).replace(/ {2,}/g, ' ').trim()

  /** Adds what real tasks have: politeness, lower case, further wishes, pasted text, and attempts to instruct the router. */
  const addVariation = (text: string, family: Family): string => {
    let variedText = `${random.pick(PREFIXES)}${text}`
    if (variedText.length < 400) variedText += fill(random.pick(SUFFIXES), family)
    if (random.below(4) === 0) variedText = variedText.toLowerCase()
    if (random.below(7) === 0)
      variedText =
        random.below(2) === 0 ? `${variedText} ${random.pick(injections)}` : `${random.pick(injections)} ${variedText}`
    if (random.below(14) === 0) variedText = `${variedText}\n\n${random.pick(pieces.prose)}`
    return variedText
  }
  return { expand, addVariation }
}

const randomWord = (random: Random) =>
  Array.from(
    { length: 2 + random.below(3) },
    () => random.pick([...'bcdfghklmnprstvwz']) + random.pick([...'aeiouy']),
  ).join('')

function expandAlternatives(text: string, random: Random): string {
  let result = ''
  for (let i = 0; i < text.length; i++) {
    const open = text[i]!
    const close = open === '(' ? ')' : open === '[' ? ']' : ''
    if (!close) {
      result += open
      continue
    }
    const end = findClosing(text, i, open, close)
    if (end < 0) {
      result += open
      continue
    }
    const choices = splitTopLevel(text.slice(i + 1, end))
    if (open === '(' && choices.length === 1) result += `(${expandAlternatives(choices[0]!, random)})`
    else if (open === '(' || random.below(2) === 0) result += expandAlternatives(random.pick(choices), random)
    i = end
  }
  return result
}

function findClosing(text: string, start: number, open: string, close: string): number {
  let depth = 0
  for (let i = start; i < text.length; i++) {
    if (text[i] === open) depth++
    else if (text[i] === close && --depth === 0) return i
  }
  return -1
}

function splitTopLevel(text: string): string[] {
  const parts: string[] = []
  let depth = 0
  let start = 0
  for (let i = 0; i < text.length; i++) {
    if (text[i] === '(' || text[i] === '[') depth++
    else if (text[i] === ')' || text[i] === ']') depth--
    else if (text[i] === '|' && depth === 0) {
      parts.push(text.slice(start, i))
      start = i + 1
    }
  }
  return [...parts, text.slice(start)]
}

/** Every sequence of five words in the texts. Training and validation may not share one. */
export function fiveGrams(texts: readonly string[]): Set<string> {
  const grams = new Set<string>()
  for (const text of texts) {
    const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
    for (let i = 0; i + 5 <= words.length; i++) grams.add(words.slice(i, i + 5).join(' '))
  }
  return grams
}
