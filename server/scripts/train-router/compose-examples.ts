import { readFileSync } from 'node:fs'

/**
 * Builds the training set from the authored data: phrasings by lane, topics by family, terms by lane, and whole tasks. A
 * seeded random generator composes them, so the same files always give the same set.
 */
export type Example = {
  text: string
  lane: string
  /** The topic family, or the group of rows, that it was made from. */
  family: string
  weight: number
}

export type Family = { family: string; topics: string[]; orgs: string[]; products: string[] }
export type AuthoredTask = { lane: string; family: string; task: string }

/** A task written by somebody who has not seen the code. */
export type StrangerTask = { lane: string; kind: string; lang: string; task: string }

export type RoutingData = {
  families: Family[]
  phrasings: { lane: string; phrasing: string }[]
  lexicon: { lane: string; term: string }[]
  material: {
    kind: 'code' | 'complaint' | 'prose' | 'log' | 'table' | 'mail' | 'meeting' | 'background'
    text: string
  }[]
  tasks: AuthoredTask[]
  /** Phrasings in other languages, and `topic` rows for their slots. */
  languages: { lang: string; lane: string; phrasing?: string; term?: string; topic?: string; background?: string }[]
  /** `phrasing` rows ask for a lane's product; `subject` rows name things that other lanes would work on. */
  traps: { lane: string; phrasing?: string; subject?: string; long?: boolean }[]
  /** Texts around a task: `agent` as software sends it, `long` as people bury it. `{task}` is the task. */
  wrappers: { kind: 'agent' | 'long' | 'injection'; text: string }[]
  training: StrangerTask[]
  validation: AuthoredTask[]
  strangers: StrangerTask[]
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
    languages: lines('languages'),
    traps: lines('traps'),
    wrappers: lines('wrappers'),
    training: [
      ...lines<StrangerTask>('training-english'),
      ...lines<StrangerTask>('training-languages'),
      ...lines<StrangerTask>('training-structure'),
    ],
    validation: lines('validation'),
    strangers: lines('strangers'),
    ambiguous: lines('ambiguous'),
    injections: lines('injections'),
  }
}

const FALLBACK = 'default'
/** How many examples are made of each row. */
const COPIES = { phrasing: 10, trap: 14, language: 10, authored: 4, ambiguous: 3 }
/** So many tasks of a stranger, in their order, are one group. */
const STRANGER_BLOCK = 8
/** Number of examples made of nonsense words, so that the shape of a text alone does not choose a lane. */
const GIBBERISH_COUNT = 300

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
const REQUEST_OPENERS = [
  'So: ',
  'Now: ',
  'My question: ',
  'What I need: ',
  'Please, ',
  'Here is my request. ',
  'That said, ',
  'In short: ',
  'The task: ',
  'Therefore, ',
  'With that in mind, ',
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
  const add = (text: string, lane: string, family: string, weight: number) =>
    examples.push({ text, lane, family, weight })

  for (const { lane, phrasing } of data.phrasings) {
    for (let i = 0; i < COPIES.phrasing; i++) {
      const family = random.pick(data.families)
      add(composer.addVariation(composer.expand(phrasing, family), family), lane, family.family, 1)
    }
  }
  const lexiconLanes = new Set(data.lexicon.map((entry) => entry.lane)).size
  for (const { lane, term } of data.lexicon) {
    const terms = data.lexicon.filter((entry) => entry.lane === lane)
    // Lanes with more terms would otherwise attract short texts.
    const balance = data.lexicon.length / lexiconLanes / terms.length
    const family = random.pick(data.families)
    const template = random
      .pick(TERM_TEMPLATES)
      .replaceAll('{term}', term)
      .replaceAll('{other}', random.pick(terms).term)
    const text = composer.expand(template, family)
    add(text, lane, family.family, 0.7 * balance)
    add(misspell(text, random), lane, family.family, 0.5 * balance)
  }
  for (const row of data.traps) {
    if (row.phrasing === undefined) continue
    for (let i = 0; i < COPIES.trap; i++) {
      const text = composer.expandTrap(row.phrasing, row.lane)
      const variant = row.long ? composer.bury(text) : random.below(5) === 0 ? composer.vary(text) : text
      add(variant, row.lane, `trap ${i % 4}`, 1)
    }
  }
  for (const row of data.languages) {
    if (row.term !== undefined) {
      add(row.term, row.lane, 'language', 2)
      add(composer.vary(row.term, row.lang), row.lane, 'language', 1)
      continue
    }
    if (row.phrasing === undefined) continue
    for (let i = 0; i < COPIES.language; i++) {
      const text = composer.expandLanguage(row.phrasing, row.lang)
      add(random.below(5) === 0 ? composer.vary(text, row.lang) : text, row.lane, 'language', 1)
    }
  }
  for (const { lane, family, task } of data.tasks) {
    add(task, lane, family, 3)
    for (let i = 0; i < COPIES.authored; i++) add(composer.vary(task), lane, family, 1)
  }
  data.training.forEach(({ lane, task, lang }, i) => {
    const family = `stranger ${Math.floor(i / STRANGER_BLOCK)}`
    add(task, lane, family, 4)
    for (let copy = 0; copy < COPIES.authored; copy++) add(composer.vary(task, lang), lane, family, 1)
  })
  for (const { task } of data.ambiguous) {
    for (let i = 0; i < COPIES.ambiguous; i++) {
      const family = random.pick(data.families)
      add(composer.expand(task, family), FALLBACK, family.family, 1)
    }
  }
  for (let i = 0; i < GIBBERISH_COUNT; i++) {
    const text = Array.from({ length: 1 + random.below(4) }, () => randomWord(random)).join(' ')
    add(text, FALLBACK, random.pick(data.families).family, 1)
  }
  const forbidden = fiveGrams([...data.validation, ...data.strangers].map((row) => row.task))
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
  const subjects = data.traps.filter((row) => row.subject !== undefined)
  /** `{subject}` is something that another lane than this one would work on. */
  const expandTrap = (phrasing: string, lane: string): string => {
    const foreign = subjects.filter((row) => row.lane !== lane)
    const text = expandAlternatives(phrasing, random).replace(/\{subject\d?\}/g, () => random.pick(foreign).subject!)
    return fill(text, random.pick(data.families)).replace(/ {2,}/g, ' ').trim()
  }

  const topics = new Map<string, string[]>()
  for (const { lang, topic } of data.languages)
    if (topic !== undefined) topics.set(lang, [...(topics.get(lang) ?? []), topic])
  const expandLanguage = (phrasing: string, lang: string): string =>
    fill(
      expandAlternatives(phrasing, random).replaceAll('{topic}', () => random.pick(topics.get(lang)!)),
      random.pick(data.families),
    )
      .replace(/ {2,}/g, ' ')
      .trim()

  const wrappersOf = (kind: string) => data.wrappers.filter((row) => row.kind === kind).map((row) => row.text)
  const wrappers = { agent: wrappersOf('agent'), long: wrappersOf('long'), injection: wrappersOf('injection') }
  const passages = data.material
    .filter((row) => row.kind !== 'code' && row.kind !== 'complaint' && row.kind !== 'background')
    .map((row) => row.text)
  const pastes = [
    () => csv(),
    () => random.pick(pieces.code),
    () => random.pick(passages),
    () => random.pick(passages),
    () => fill(random.pick(pieces.complaint), random.pick(data.families)),
    () => numbers(),
  ]
  const wrap = (wrapper: string, task: string) =>
    wrapper.replaceAll('{material}', () => random.pick(passages)).replace('{task}', () => task)

  /** The same task as somebody else would send it: with misspellings, from an agent, in a long text, beside pasted text, or with an injection. */
  const vary = (task: string, lang = 'en'): string => {
    const spelled = random.below(4) === 0 ? misspell(task, random) : task
    switch (random.below(8)) {
      case 0:
      case 1:
        return misspell(task, random)
      case 2:
      case 3:
        return wrap(random.pick(wrappers.agent), spelled)
      case 4:
        return lang === 'en' ? wrap(random.pick(wrappers.long), spelled) : bury(spelled, lang)
      case 5:
        return bury(spelled, lang)
      case 6:
        return random.below(2) === 0
          ? wrap(random.pick(wrappers.injection), spelled)
          : `${task} ${random.pick(injections)}`
      default:
        return `${spelled}${random.pick(['\n\n', '\n', ' '])}${random.pick(pastes)()}`
    }
  }
  const backgrounds = new Map([['en', material('background')]])
  for (const { lang, background } of data.languages)
    if (background !== undefined) backgrounds.set(lang, [...(backgrounds.get(lang) ?? []), background])
  /** The request inside a longer story, whose other sentences speak of other lanes' work. */
  const bury = (request: string, lang = 'en'): string => {
    const background = backgrounds.get(lang)
    const sentences = Array.from({ length: 3 + random.below(background && lang !== 'en' ? 4 : 9) }, () =>
      background === undefined || (lang === 'en' && random.below(5) === 0)
        ? random.pick(passages)
        : random.pick(background),
    )
    const at = random.below(3) === 0 ? random.below(sentences.length) : sentences.length
    const ending = /[.?!]$/.test(request) ? '' : '.'
    sentences.splice(at, 0, `${random.below(3) === 0 ? random.pick(REQUEST_OPENERS) : ''}${request}${ending}`)
    return sentences.join(random.below(6) === 0 ? '\n\n' : ' ')
  }
  return { bury, expand, addVariation, expandTrap, expandLanguage, vary }
}

const NEIGHBOURS: Record<string, string> = {
  a: 'sqz',
  b: 'vn',
  c: 'xv',
  d: 'sf',
  e: 'wr',
  f: 'dg',
  g: 'fh',
  h: 'gj',
  i: 'uo',
  j: 'hk',
  k: 'jl',
  l: 'k',
  m: 'n',
  n: 'bm',
  o: 'ip',
  p: 'o',
  q: 'wa',
  r: 'et',
  s: 'ad',
  t: 'ry',
  u: 'yi',
  v: 'cb',
  w: 'qe',
  x: 'zc',
  y: 'tu',
  z: 'x',
}
const CHAT_SPELLINGS: Record<string, string> = {
  you: 'u',
  please: 'pls',
  your: 'ur',
  are: 'r',
  and: 'n',
  the: 'teh',
  what: 'wat',
  with: 'wiht',
  for: 'fro',
  because: 'bc',
  about: 'abt',
  to: '2',
  this: 'tihs',
  thanks: 'thx',
  from: 'form',
  write: 'wirte',
  want: 'wnat',
  need: 'ned',
  customer: 'custmer',
}

const swapLetters = (word: string, at: number) => word.slice(0, at) + word[at + 1]! + word[at]! + word.slice(at + 2)

/** Ways to spell a sound wrongly. */
const SOUNDS: readonly (readonly [string, string])[] = [
  ['tion', 'shun'],
  ['tion', 'ton'],
  ['ie', 'ei'],
  ['ei', 'ie'],
  ['ph', 'f'],
  ['ck', 'k'],
  ['c', 's'],
  ['c', 'k'],
  ['s', 'z'],
  ['ll', 'l'],
  ['ss', 's'],
  ['mm', 'm'],
  ['tt', 't'],
  ['nn', 'n'],
  ['pp', 'p'],
  ['rr', 'r'],
  ['cc', 'c'],
  ['ff', 'f'],
  ['l', 'll'],
  ['s', 'ss'],
  ['m', 'mm'],
  ['t', 'tt'],
  ['n', 'nn'],
  ['ea', 'ee'],
  ['ee', 'ea'],
  ['ai', 'ia'],
  ['ou', 'o'],
  ['a', 'e'],
  ['e', 'a'],
  ['i', 'e'],
  ['e', 'i'],
  ['o', 'u'],
  ['er', 'or'],
  ['or', 'er'],
  ['y', 'i'],
  ['ght', 't'],
  ['wh', 'w'],
  ['kn', 'n'],
  ['wr', 'r'],
  ['gue', 'g'],
  ['que', 'k'],
  ['qu', 'kw'],
  ['x', 'ks'],
  ['gh', ''],
  ['h', ''],
  ['u', 'oo'],
  ['re', 'er'],
]

/** Keyboard neighbours, swapped, lost, doubled letters and spaces, and the short forms of chats. */
export function misspell(text: string, random: Random): string {
  const rate = 2 + random.below(4)
  const words = text.split(' ').map((word) => {
    const short = CHAT_SPELLINGS[word.toLowerCase()]
    if (short !== undefined && random.below(3) === 0) return short
    if (word.length < 4 || random.below(rate) > 0) return word
    const at = 1 + random.below(word.length - 2)
    const letter = word[at]!
    switch (random.below(8)) {
      case 6:
      case 7: {
        const [sound, wrong] = random.pick(SOUNDS)
        const place = word.toLowerCase().indexOf(sound, 1)
        return place > 0 ? word.slice(0, place) + wrong + word.slice(place + sound.length) : swapLetters(word, at)
      }
      case 0:
      case 1:
        return swapLetters(word, at)
      case 2:
      case 3:
        return word.slice(0, at) + word.slice(at + 1)
      case 4:
        return word.slice(0, at) + letter + word.slice(at)
      default: {
        const near = NEIGHBOURS[letter.toLowerCase()]
        return near === undefined ? word : word.slice(0, at) + random.pick([...near]) + word.slice(at + 1)
      }
    }
  })
  let result = ''
  for (const [i, word] of words.entries()) result += i > 0 && random.below(25) > 0 ? ` ${word}` : word
  return random.below(2) === 0 ? result.toLowerCase() : result
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
