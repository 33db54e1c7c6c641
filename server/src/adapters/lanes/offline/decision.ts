import { spendSteps } from '../../../platform/step-budget.ts'
import type { Brief } from './brief.ts'
import { readTable } from './tables.ts'
import { extractContentWords, splitSentences, splitWords, stem, trimEndOf } from './text.ts'

export type Criterion = { name: string; weight: number }
export type Option = { name: string; scores: readonly number[]; evidence: readonly string[] }
/** An option as listed in the task; its label is the "A" of "A) hire". */
type ListedOption = { name: string; label: string | undefined }
export type Decision = {
  options: readonly Option[]
  /** Those that every option has a score for, with weights that add up to 1. */
  criteria: readonly Criterion[]
  /** Criteria that the task states and says too little about to score every option. */
  unscored: readonly Criterion[]
  /** Whether the task names criteria; otherwise they are the ones its evidence speaks of, weighted equally. */
  statesCriteria: boolean
  origin: 'given' | 'evidence' | 'none'
}

const MAX_OPTIONS = 8
const MAX_CRITERIA = 8

/** By criterion: the words that raise or lower a score from the neutral 3. */
const CUES: readonly { name: string; words: RegExp; positive: RegExp; negative: RegExp }[] = [
  {
    name: 'impact',
    words: /impact|revenue|growth|value|benefit|customers|market|reach|return|upside/i,
    positive: /high|large|big|strong|grow|increase|more|better|proven|best/i,
    negative: /\blow|small|weak|little|limited|unproven|decline|less/i,
  },
  {
    name: 'cost',
    words: /cost|price|budget|expens|cheap|afford|spend|fee|invest/i,
    positive: /cheap|\blow|save|afford|free|less|inexpensive/i,
    negative: /expens|high|costly|over budget|more|pricey/i,
  },
  {
    name: 'speed',
    words: /fast|slow|quick|weeks?|months?|time|speed|soon|delay|launch/i,
    positive: /fast|quick|soon|immediate|short|days|weeks/i,
    negative: /slow|delay|long|months|years|late/i,
  },
  {
    name: 'risk',
    words: /risk|safe|secur|uncertain|reliab|lock-in|complian|stable|danger/i,
    positive: /safe|secure|reliable|stable|proven|low risk|mature|compliant/i,
    negative: /risky|risk|uncertain|unstable|lock-in|unproven|danger|fragile/i,
  },
  {
    name: 'ease',
    words: /eas|simple|complex|difficult|hard|skill|team|maintain|learn|experience/i,
    positive: /easy|simple|know|familiar|experience|maintainable/i,
    negative: /complex|difficult|hard|steep|unfamiliar|lack/i,
  },
]

export function readDecision(brief: Brief): Decision {
  const scoredTable = readScoredTable(brief)
  if (scoredTable) return scoredTable
  const listedOptions = readOptions(brief).map(parseLabel)
  const names = listedOptions.map(({ name }) => name)
  const statedCriteria = readCriteria(brief.task)
  const statesCriteria = statedCriteria !== undefined
  const candidates = statedCriteria ?? normalise(CUES.map(({ name }) => ({ name, weight: 1 })))
  const inlineOptions = names.length >= 2 ? readInlineScores(listedOptions, candidates, brief.task) : undefined
  if (inlineOptions)
    return { options: inlineOptions, criteria: candidates, unscored: [], statesCriteria, origin: 'given' }
  if (names.length < 2)
    return { options: [], criteria: [], unscored: statedCriteria ?? [], statesCriteria, origin: 'none' }
  return scoreFromText(listedOptions, candidates, statesCriteria, brief.task)
}

/** Scores from what the task says: amounts and durations first, then words for or against. */
function scoreFromText(
  listedOptions: readonly ListedOption[],
  candidates: readonly Criterion[],
  statesCriteria: boolean,
  task: string,
): Decision {
  const names = listedOptions.map(({ name }) => name)
  const measured = candidates.map((criterion) => readMeasures(listedOptions, criterion, task))
  const worded = names.map((name) => scoreFromEvidence(name, names, candidates, task))
  const isScored = candidates.map(
    (_, i) => measured[i] !== undefined || worded.some((option) => option.scores[i] !== 3),
  )
  const criteria = normalise(candidates.filter((_, i) => isScored[i]))
  const options = names.map((name, option) => ({
    name,
    scores: candidates.flatMap((_, i) =>
      isScored[i] ? (measured[i]?.[option]?.score ?? worded[option]!.scores[i]!) : [],
    ),
    evidence: [...measured.flatMap((row) => (row ? [row[option]!.evidence] : [])), ...worded[option]!.evidence],
  }))
  return {
    options,
    criteria,
    unscored: statesCriteria ? candidates.filter((_, i) => !isScored[i]) : [],
    statesCriteria,
    origin: criteria.length > 0 ? 'evidence' : 'none',
  }
}

type Measure = { score: number; evidence: string }

const MONEY =
  /[$€£]\s?(\d[\d,]{0,12}(?:\.\d{1,4})?)\s?(k|m|thousand|million)?\b|\b(\d[\d,]{0,12}(?:\.\d{1,4})?)\s?(k|m|thousand|million)?\s?(?:usdc?|eur|gbp|dollars|euros|pounds)\b/i
const DURATION = /\b(\d{1,6}(?:\.\d{1,3})?)\s?(minute|hour|day|week|month|year)s?\b/i
const HOURS: Readonly<Record<string, number>> = { minute: 1 / 60, hour: 1, day: 24, week: 168, month: 730, year: 8760 }
const FACTORS: Readonly<Record<string, number>> = { k: 1e3, thousand: 1e3, m: 1e6, million: 1e6 }

/** What the task measures for a criterion, when it does so for every option: less money and time are better. */
function readMeasures(
  options: readonly ListedOption[],
  { name }: Criterion,
  task: string,
): readonly Measure[] | undefined {
  const values = options.map((option) => {
    for (const segment of splitByOption(task, options, option)) {
      const value = readMeasure(segment, name)
      if (value) return { ...value, segment }
    }
    return undefined
  })
  if (values.some((value) => value === undefined || value.amount <= 0)) return undefined
  const numericValues = values as { amount: number; lowerIsBetter: boolean; segment: string }[]
  const amounts = numericValues.map(({ amount }) => amount)
  return numericValues.map(({ amount, lowerIsBetter, segment }) => ({
    score: 5 * (lowerIsBetter ? Math.min(...amounts) / amount : amount / Math.max(...amounts)),
    evidence: `${name} from “${segment.trim().slice(0, 160)}”`,
  }))
}

function readMeasure(segment: string, criterion: string): { amount: number; lowerIsBetter: boolean } | undefined {
  const number = (text: string) => Number(text.replaceAll(',', ''))
  if (/cost|price|budget|spend|fee|expens/i.test(criterion)) {
    const money = MONEY.exec(segment)
    const unit = (money?.[2] ?? money?.[4] ?? '').toLowerCase()
    return money ? { amount: number((money[1] ?? money[3])!) * (FACTORS[unit] ?? 1), lowerIsBetter: true } : undefined
  }
  if (/speed|time|deadline|delivery|launch|duration|fast/i.test(criterion)) {
    const duration = DURATION.exec(segment)
    return duration
      ? { amount: number(duration[1]!) * HOURS[duration[2]!.toLowerCase()]!, lowerIsBetter: true }
      : undefined
  }
  const own = new RegExp(
    `\\b${escapeRegExp(criterion)}\\b(?: score| rating)?(?: of| is|:|=)? ?(\\d{1,6}(?:\\.\\d{1,3})?)`,
    'i',
  ).exec(segment)
  return own
    ? {
        amount: number(own[1]!),
        lowerIsBetter: /risk|effort|latency|distance|weight|complexity|error/i.test(criterion),
      }
    : undefined
}

/** The clauses of a task that speak of this option and of no other. */
function splitByOption(task: string, options: readonly ListedOption[], option: ListedOption): string[] {
  const clauses = task.slice(0, 8000).split(/[;\n]|\. |, (?:while|but|whereas) | while | whereas /i)
  return clauses.filter(
    (clause) =>
      mentionsOption(clause, option) && !options.some((other) => other !== option && mentionsOption(clause, other)),
  )
}

/** Reads a table with a column of option names and columns of numbers as a scored matrix. */
function readScoredTable(brief: Brief): Decision | undefined {
  const table = readTable(brief)
  const label = table?.columns.find((column) => column.labels.length === table.rows)
  const numericColumns = table?.columns.filter((column) => column.values.length === table.rows) ?? []
  if (!table || !label || numericColumns.length < 2 || table.rows < 2 || table.rows > MAX_OPTIONS + 1) return undefined
  const weightRow = label.labels.findIndex((name) => /^weights?$/i.test(name))
  const criteriaColumns = numericColumns.slice(0, MAX_CRITERIA)
  const rows = label.labels.map((_, i) => i).filter((i) => i !== weightRow)
  if (rows.length < 2) return undefined
  const highest = Math.max(...criteriaColumns.flatMap((column) => rows.map((i) => Math.abs(column.values[i]!))))
  const scale = highest > 5 ? 5 / highest : 1
  const weights = weightRow >= 0 ? criteriaColumns.map((column) => Math.abs(column.values[weightRow]!)) : undefined
  const statedCriteria = readCriteria(brief.task)
  return {
    options: rows.map((i) => ({
      name: label.labels[i]!,
      scores: criteriaColumns.map((column) => column.values[i]! * scale),
      evidence: [],
    })),
    criteria: normalise(
      criteriaColumns.map((column, i) => ({
        name: column.name,
        weight:
          weights?.[i] ??
          statedCriteria?.find((criterion) => criterion.name.toLowerCase() === column.name.toLowerCase())?.weight ??
          1,
      })),
    ),
    unscored: [],
    statesCriteria: true,
    origin: 'given',
  }
}

function parseLabel(text: string): ListedOption {
  const [, label, name] = /^([A-H]|\d)[.):] ?(.{2,})$/.exec(text) ?? []
  return name === undefined ? { name: text, label: undefined } : { name: name.trim(), label }
}

/** Reads "A cost 2 speed 3; B cost 4 speed 4": segments that mention one option and give numbers for criteria. */
function readInlineScores(
  listedOptions: readonly ListedOption[],
  criteria: readonly Criterion[],
  task: string,
): Option[] | undefined {
  const foundScores = listedOptions.map(() => criteria.map((): number | undefined => undefined))
  for (const segment of task.slice(0, 8000).split(/[;\n]|\. |\bscores?:/i)) {
    const optionIndexes = listedOptions.flatMap((option, i) => (mentionsOption(segment, option) ? [i] : []))
    if (optionIndexes.length !== 1) continue
    criteria.forEach(({ name }, i) => {
      const score = new RegExp(`\\b${escapeRegExp(name)}\\b *[:=(]? *(\\d{1,3}(?:\\.\\d{1,3})?)(?! *%)`, 'i').exec(
        segment,
      )
      if (score) foundScores[optionIndexes[0]!]![i] ??= Number(score[1])
    })
  }
  if (foundScores.some((scores) => scores.includes(undefined))) return undefined
  const scoreRows = foundScores as number[][]
  const highest = Math.max(...scoreRows.flat())
  const scale = highest > 5 ? 5 / highest : 1
  return listedOptions.map(({ name }, i) => ({
    name,
    scores: scoreRows[i]!.map((score) => score * scale),
    evidence: [],
  }))
}

const mentionsOption = (segment: string, { name, label }: ListedOption) =>
  segment.toLowerCase().includes(name.toLowerCase()) ||
  (label !== undefined && new RegExp(`(?:^|[\\s,(])${label}(?=[\\s:),=])`).test(segment))

const escapeRegExp = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

function readOptions(brief: Brief): string[] {
  const text = brief.task.slice(0, 8000)
  spendSteps(text.length)
  const bullets = text.split('\n').flatMap(
    (line) =>
      /^\s*(?:[-*•]|\d{1,2}[.)]|[A-H][.):])\s+(.{2,120})/
        .exec(line)?.[1]
        ?.split(/ [-–—:] |: /)[0]
        ?.trim() ?? [],
  )
  if (bullets.length >= 2) return uniqueNames(bullets)
  const lettered = [...text.matchAll(/\boption ([A-H]|\d)\s*[:=]\s*([^.;\n]{2,80})/gi)].map(
    (match) => `${match[1]}) ${match[2]!.trim()}`,
  )
  if (lettered.length >= 2) return uniqueNames(lettered)
  const listText =
    /^(?:prioriti[sz]e|rank|compare|order|choose)\s*: *([^\n.]{5,400})/i.exec(text)?.[1] ??
    /\b(?:options?|alternatives|choices|candidates|ideas|projects|features)\b[^:\n]{0,40}: *([^\n.]{5,400})/i.exec(
      text,
    )?.[1]
  if (listText) {
    const names = splitList(listText)
    if (names.length >= 2) return names
  }
  const versusMatch = /([^.,:;?!\n]{2,80}?) (?:vs\.?|versus) ([^.,:;?!\n]{2,80})/i.exec(text)
  if (versusMatch)
    return uniqueNames([trimName(versusMatch[1]!), ...versusMatch[2]!.split(/ (?:vs\.?|versus) /i).map(trimName)])
  const compareText = /\bcompare ([^.;:?!\n]{2,120}? (?:and|with|to|or) [^.;:?!\n]{2,80})/i.exec(text)?.[1]
  if (compareText) {
    const names = splitList(compareText.replace(/ (?:with|to) /i, ' and '))
    if (names.length >= 2) return names
  }
  const betweenText = /\bbetween ([^.;:?!\n]{2,200}?,? (?:and|or) [^.,;:?!\n]{2,60})/i.exec(text)?.[1]
  if (betweenText) return splitList(betweenText)
  const eitherMatch =
    /\b(?:should (?:we|i)|whether to|decide to|choose to|better to|either) ([^.;:?!\n]{2,160}? or [^.;:?!\n]{2,80})/i.exec(
      text,
    )
  return eitherMatch ? shareObject(splitList(eitherMatch[1]!)) : readBareAlternatives(text)
}

/** Reads a short task that consists only of its alternatives, like "buy or lease delivery vans". */
function readBareAlternatives(text: string): string[] {
  const firstSentence = splitSentences(text)[0]?.text ?? ''
  if (splitWords(firstSentence).length > 12 || /^(?:how|what|why|who|when|where)\b/i.test(firstSentence)) return []
  const alternatives = trimEndOf(firstSentence, '?!.')
  const sides = alternatives.split(/ or /i)
  if (sides.length < 2 || sides.some((side) => /^(?:more|less|fewer|not|so|later|better|worse)\b/i.test(side)))
    return []
  return shareObject(splitList(alternatives))
}

/** In "rent or buy the vans" both verbs share the object. */
function shareObject(names: string[]): string[] {
  const object = /^\w+ (.+)$/.exec(names.at(-1) ?? '')?.[1]
  const verbs = names.slice(0, -1)
  if (object === undefined || !verbs.every((name) => /^\p{Ll}+$/u.test(name))) return names
  return [...verbs.map((name) => `${name} ${object}`), names.at(-1)!]
}

const splitList = (text: string) => uniqueNames(text.split(/,(?: or| and)? | or | and |;/).map(trimName))

const trimName = (name: string) =>
  name
    .replace(
      /^.*\b(?:compare|choose|pick|rank|select|prefer|evaluate|weigh|decide|consider|on|of|with|whether to|should we|should i) /i,
      '',
    )
    .replace(/^(?:either|or|and|the|a|an|to|using|use|between) /i, '')
    .replace(/ (?:for|in terms of|based on|given|considering|by|when|if|on the basis of) .*$/i, '')
    .trim()

const uniqueNames = (names: readonly string[]) =>
  [...new Set(names.filter((name) => name.length >= 2))].slice(0, MAX_OPTIONS)

/** Reads "criteria: cost (40%), speed 30%, risk" or "based on cost, speed and risk". */
function readCriteria(task: string): Criterion[] | undefined {
  const text = task.slice(0, 8000)
  const list =
    /\b(?:criteria|factors|dimensions)\b(?: are| is)? ?[:=]? *([^\n.;]{4,300})/i.exec(text)?.[1] ??
    /\b(?:rank|score|order|sort|judge|compare|prioriti[sz]e)\b[^.:\n]{0,60} by ([^\n.:;?]{4,120})/i.exec(text)?.[1] ??
    /\b(?:based on|in terms of|considering|weigh(?:ing)?|judged by|scored on|looking at) ([^\n.;?]{4,300})/i.exec(
      text,
    )?.[1]
  if (!list) return undefined
  const criteria = list.split(/,(?: and)? | and /).flatMap((piece) => {
    const part = /^([\p{L}][\p{L} -]{1,30}?) *(?:[(:=]? *(\d{1,3}(?:\.\d+)?) *%? *\)?)?$/u.exec(piece.trim())
    return part ? [{ name: part[1]!.trim(), weight: part[2] ? Number(part[2]) : 1 }] : []
  })
  return criteria.length >= 2 ? normalise(criteria.slice(0, MAX_CRITERIA)) : undefined
}

function normalise(criteria: readonly Criterion[]): Criterion[] {
  const sum = criteria.reduce((total, criterion) => total + criterion.weight, 0)
  return criteria.map((criterion) => ({
    name: criterion.name,
    weight: sum > 0 ? criterion.weight / sum : 1 / criteria.length,
  }))
}

/** A sentence that mentions only this option changes its scores by one for each cue, within 1..5. */
function scoreFromEvidence(
  name: string,
  names: readonly string[],
  criteria: readonly Criterion[],
  task: string,
): Option {
  const ownStems = optionStems(name)
  const otherStems = new Set(names.filter((otherName) => otherName !== name).flatMap(optionStems))
  const evidence: string[] = []
  const scores = criteria.map(() => 3)
  for (const sentence of splitSentences(task, 120)) {
    const words = new Set(splitWords(sentence.text).map(stem))
    const mentionsOwn = ownStems.some((word) => words.has(word) && !otherStems.has(word))
    const mentionsOther = [...otherStems].some((word) => words.has(word) && !ownStems.includes(word))
    if (!mentionsOwn || mentionsOther) continue
    criteria.forEach((criterion, i) => {
      const cue = CUES.find((candidate) => candidate.name === criterion.name || candidate.words.test(criterion.name))
      if (!cue?.words.test(sentence.text)) return
      const change = (cue.positive.test(sentence.text) ? 1 : 0) - (cue.negative.test(sentence.text) ? 1 : 0)
      if (change === 0) return
      scores[i] = Math.min(5, Math.max(1, scores[i]! + change))
      evidence.push(`${criterion.name} ${change > 0 ? '+1' : '−1'} from “${sentence.text.slice(0, 160)}”`)
    })
  }
  return { name, scores, evidence }
}

const optionStems = (name: string) => extractContentWords(name).map(stem)
