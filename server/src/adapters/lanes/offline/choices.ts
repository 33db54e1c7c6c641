import type { Brief } from './brief.ts'
import { readTable } from './tables.ts'
import { contentWordsOf, sentencesOf, stem, wordsOf } from './text.ts'

export type Criterion = { name: string; weight: number }
export type Option = { name: string; scores: readonly number[]; evidence: readonly string[] }
/** An option as the task lists it; a label is the A of "A) hire". */
type Named = { name: string; label: string | undefined }
export type Choice = {
  options: readonly Option[]
  criteria: readonly Criterion[]
  origin: 'given' | 'evidence' | 'defaults'
}

const MAX_OPTIONS = 8
const MAX_CRITERIA = 8

/** What helps and what hurts, by criterion: the words that move a score away from the neutral 3. */
const CUES: readonly { name: string; weight: number; words: RegExp; good: RegExp; bad: RegExp }[] = [
  {
    name: 'impact',
    weight: 0.3,
    words: /impact|revenue|growth|value|benefit|customers|market|reach|return|upside/i,
    good: /high|large|big|strong|grow|increase|more|better|proven|best/i,
    bad: /low|small|weak|little|limited|unproven|decline|less/i,
  },
  {
    name: 'cost',
    weight: 0.2,
    words: /cost|price|budget|expens|cheap|afford|spend|fee|invest/i,
    good: /cheap|low|save|afford|free|less|inexpensive/i,
    bad: /expens|high|costly|over budget|more|pricey/i,
  },
  {
    name: 'speed',
    weight: 0.2,
    words: /fast|slow|quick|weeks?|months?|time|speed|soon|delay|launch/i,
    good: /fast|quick|soon|immediate|short|days|weeks/i,
    bad: /slow|delay|long|months|years|late/i,
  },
  {
    name: 'risk',
    weight: 0.15,
    words: /risk|safe|secur|uncertain|reliab|lock-in|complian|stable|danger/i,
    good: /safe|secure|reliable|stable|proven|low risk|mature|compliant/i,
    bad: /risky|risk|uncertain|unstable|lock-in|unproven|danger|fragile/i,
  },
  {
    name: 'ease',
    weight: 0.15,
    words: /eas|simple|complex|difficult|hard|skill|team|maintain|learn|experience/i,
    good: /easy|simple|know|familiar|experience|maintainable/i,
    bad: /complex|difficult|hard|steep|unfamiliar|lack/i,
  },
]

const STANDING: readonly { name: string; scores: readonly number[] }[] = [
  { name: 'Act in full now', scores: [5, 2, 4, 2, 2] },
  { name: 'Run a bounded pilot first', scores: [3, 4, 4, 4, 4] },
  { name: 'Wait and gather evidence', scores: [1, 5, 1, 4, 5] },
]

export function readChoice(brief: Brief): Choice {
  const given = readScored(brief)
  if (given) return given
  const listed = readOptions(brief).map(withoutLabel)
  const names = listed.map(({ name }) => name)
  const named = readCriteria(brief.task)
  const criteria = named ?? CUES.map(({ name, weight }) => ({ name, weight }))
  const inline = names.length >= 2 ? readInlineScores(listed, criteria, brief.task) : undefined
  if (inline) return { options: inline, criteria, origin: 'given' }
  if (names.length < 2) {
    const scores = (fixed: readonly number[]) =>
      criteria.map((criterion, at) => (named ? standingScore(criterion.name, fixed) : fixed[at]!))
    return {
      options: STANDING.map(({ name, scores: fixed }) => ({ name, scores: scores(fixed), evidence: [] })),
      criteria,
      origin: 'defaults',
    }
  }
  return { options: names.map((name) => withEvidence(name, names, criteria, brief.task)), criteria, origin: 'evidence' }
}

const standingScore = (criterion: string, fixed: readonly number[]) => {
  const known = CUES.findIndex((cue) => cue.name === criterion.toLowerCase() || cue.words.test(criterion))
  return known >= 0 ? fixed[known]! : 3
}

/** A table whose first column names options and whose other columns are numbers is a scored matrix already. */
function readScored(brief: Brief): Choice | undefined {
  const table = readTable(brief)
  const label = table?.columns.find((column) => column.labels.length === table.rows)
  const scored = table?.columns.filter((column) => column.values.length === table.rows) ?? []
  if (!table || !label || scored.length < 2 || table.rows < 2 || table.rows > MAX_OPTIONS + 1) return undefined
  const weightRow = label.labels.findIndex((name) => /^weights?$/i.test(name))
  const used = scored.slice(0, MAX_CRITERIA)
  const rows = label.labels.map((_, at) => at).filter((at) => at !== weightRow)
  if (rows.length < 2) return undefined
  const highest = Math.max(...used.flatMap((column) => rows.map((at) => Math.abs(column.values[at]!))))
  const scale = highest > 5 ? 5 / highest : 1
  const weights = weightRow >= 0 ? used.map((column) => Math.abs(column.values[weightRow]!)) : undefined
  const named = readCriteria(brief.task)
  return {
    options: rows.map((at) => ({
      name: label.labels[at]!,
      scores: used.map((column) => column.values[at]! * scale),
      evidence: [],
    })),
    criteria: normalise(
      used.map((column, at) => ({
        name: column.name,
        weight:
          weights?.[at] ??
          named?.find((criterion) => criterion.name.toLowerCase() === column.name.toLowerCase())?.weight ??
          1,
      })),
    ),
    origin: 'given',
  }
}

function withoutLabel(text: string): Named {
  const [, label, name] = /^([A-H]|\d)[.):] ?(.{2,})$/.exec(text) ?? []
  return name === undefined ? { name: text, label: undefined } : { name: name.trim(), label }
}

/** "A cost 2 speed 3; B cost 4 speed 4": a stretch that speaks of one option and gives numbers for criteria. */
function readInlineScores(
  listed: readonly Named[],
  criteria: readonly Criterion[],
  task: string,
): Option[] | undefined {
  const found = listed.map(() => criteria.map((): number | undefined => undefined))
  for (const stretch of task.slice(0, 8000).split(/[;\n]|\. |\bscores?:/i)) {
    const about = listed.flatMap((option, at) => (speaksOf(stretch, option) ? [at] : []))
    if (about.length !== 1) continue
    criteria.forEach(({ name }, at) => {
      const score = new RegExp(`\\b${escaped(name)}\\b *[:=(]? *(\\d{1,3}(?:\\.\\d{1,3})?)(?! *%)`, 'i').exec(stretch)
      if (score) found[about[0]!]![at] ??= Number(score[1])
    })
  }
  if (found.some((scores) => scores.includes(undefined))) return undefined
  const all = found as number[][]
  const highest = Math.max(...all.flat())
  const scale = highest > 5 ? 5 / highest : 1
  return listed.map(({ name }, at) => ({ name, scores: all[at]!.map((score) => score * scale), evidence: [] }))
}

const speaksOf = (stretch: string, { name, label }: Named) =>
  stretch.toLowerCase().includes(name.toLowerCase()) ||
  (label !== undefined && new RegExp(`(?:^|[\\s,(])${label}(?=[\\s:),=])`).test(stretch))

const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

function readOptions(brief: Brief): string[] {
  const text = brief.task.slice(0, 8000)
  const bullets = text.split('\n').flatMap(
    (line) =>
      /^\s*(?:[-*•]|\d{1,2}[.)]|[A-H][.):])\s+(.{2,120})/
        .exec(line)?.[1]
        ?.split(/ [-–—:] |: /)[0]
        ?.trim() ?? [],
  )
  if (bullets.length >= 2) return unique(bullets)
  const lettered = [...text.matchAll(/\boption ([A-H]|\d)\s*[:=]\s*([^.;\n]{2,80})/gi)].map(
    (match) => `${match[1]}) ${match[2]!.trim()}`,
  )
  if (lettered.length >= 2) return unique(lettered)
  const listed =
    /^(?:prioriti[sz]e|rank|compare|order|choose)\s*: *([^\n.]{5,400})/i.exec(text)?.[1] ??
    /\b(?:options?|alternatives|choices|candidates|ideas|projects|features)\b[^:\n]{0,40}: *([^\n.]{5,400})/i.exec(
      text,
    )?.[1]
  if (listed) {
    const names = splitList(listed)
    if (names.length >= 2) return names
  }
  const versus = /([^.,:;?!\n]{2,80}?) (?:vs\.?|versus) ([^.,:;?!\n]{2,80})/i.exec(text)
  if (versus) return unique([trimName(versus[1]!), ...versus[2]!.split(/ (?:vs\.?|versus) /i).map(trimName)])
  const between = /\bbetween ([^.;:?!\n]{2,200}?,? (?:and|or) [^.,;:?!\n]{2,60})/i.exec(text)?.[1]
  if (between) return splitList(between)
  const either =
    /\b(?:should (?:we|i)|whether to|decide to|choose to|better to|either) ([^.;:?!\n]{2,160}? or [^.;:?!\n]{2,80})/i.exec(
      text,
    )
  return either ? sharingObject(splitList(either[1]!)) : bareChoice(text)
}

/** "buy or lease delivery vans": a short task that is nothing but its alternatives. */
function bareChoice(text: string): string[] {
  const first = sentencesOf(text)[0]?.text ?? ''
  if (wordsOf(first).length > 12 || /^(?:how|what|why|who|when|where)\b/i.test(first)) return []
  const sides = first.replace(/[?!.]+$/, '').split(/ or /i)
  if (sides.length < 2 || sides.some((side) => /^(?:more|less|fewer|not|so|later|better|worse)\b/i.test(side)))
    return []
  return sharingObject(splitList(first.replace(/[?!.]+$/, '')))
}

/** In "rent or buy the vans" the vans belong to both. */
function sharingObject(names: string[]): string[] {
  const object = /^\w+ (.+)$/.exec(names.at(-1) ?? '')?.[1]
  const bare = names.slice(0, -1)
  if (object === undefined || !bare.every((name) => /^\p{Ll}+$/u.test(name))) return names
  return [...bare.map((name) => `${name} ${object}`), names.at(-1)!]
}

const splitList = (text: string) => unique(text.split(/,(?: or| and)? | or | and |;/).map(trimName))

const trimName = (name: string) =>
  name
    .replace(
      /^.*\b(?:compare|choose|pick|rank|select|prefer|evaluate|weigh|decide|consider|on|of|with|whether to|should we|should i) /i,
      '',
    )
    .replace(/^(?:either|or|and|the|a|an|to|using|use|between) /i, '')
    .replace(/ (?:for|in terms of|based on|given|considering|by|when|if|on the basis of) .*$/i, '')
    .trim()

const unique = (names: readonly string[]) =>
  [...new Set(names.filter((name) => name.length >= 2))].slice(0, MAX_OPTIONS)

/** "criteria: cost (40%), speed 30%, risk" or "based on cost, speed and risk". */
function readCriteria(task: string): Criterion[] | undefined {
  const text = task.slice(0, 8000)
  const list =
    /\b(?:criteria|factors|dimensions)\b(?: are| is)? ?[:=]? *([^\n.;]{4,300})/i.exec(text)?.[1] ??
    /\b(?:rank|score|order|sort|judge|compare|prioriti[sz]e)\b[^.:\n]{0,60} by ([^\n.:;?]{4,120})/i.exec(text)?.[1] ??
    /\b(?:based on|in terms of|considering|weigh(?:ing)?|judged by|scored on|looking at) ([^\n.;?]{4,300})/i.exec(
      text,
    )?.[1]
  if (!list) return undefined
  const found = list.split(/,(?: and)? | and /).flatMap((piece) => {
    const part = /^([\p{L}][\p{L} -]{1,30}?) *(?:[(:=]? *(\d{1,3}(?:\.\d+)?) *%? *\)?)?$/u.exec(piece.trim())
    return part ? [{ name: part[1]!.trim(), weight: part[2] ? Number(part[2]) : 1 }] : []
  })
  return found.length >= 2 ? normalise(found.slice(0, MAX_CRITERIA)) : undefined
}

function normalise(criteria: readonly Criterion[]): Criterion[] {
  const sum = criteria.reduce((total, criterion) => total + criterion.weight, 0)
  return criteria.map((criterion) => ({
    name: criterion.name,
    weight: sum > 0 ? criterion.weight / sum : 1 / criteria.length,
  }))
}

/** Sentences that name one option and no other move its scores by one for each cue, within 1..5. */
function withEvidence(name: string, names: readonly string[], criteria: readonly Criterion[], task: string): Option {
  const own = keyOf(name)
  const others = new Set(names.filter((other) => other !== name).flatMap(keyOf))
  const evidence: string[] = []
  const scores = criteria.map(() => 3)
  for (const sentence of sentencesOf(task, 120)) {
    const words = wordsOf(sentence.text).map(stem)
    const mentions = own.some((word) => words.includes(word) && !others.has(word))
    const foreign = [...others].some((word) => words.includes(word) && !own.includes(word))
    if (!mentions || foreign) continue
    criteria.forEach((criterion, at) => {
      const cue = CUES.find((candidate) => candidate.name === criterion.name || candidate.words.test(criterion.name))
      if (!cue?.words.test(sentence.text)) return
      const move = (cue.good.test(sentence.text) ? 1 : 0) - (cue.bad.test(sentence.text) ? 1 : 0)
      if (move === 0) return
      scores[at] = Math.min(5, Math.max(1, scores[at]! + move))
      evidence.push(`${criterion.name} ${move > 0 ? '+1' : '−1'} from “${sentence.text.slice(0, 160)}”`)
    })
  }
  return { name, scores, evidence }
}

const keyOf = (name: string) => contentWordsOf(name).map(stem)
