/**
 * Judges a lane's output by what anyone can check again: the task, the output and, for offline lanes, a second run.
 * It reads the asked-for form by itself and shares no code with the lanes: a verifier that shared their reading of the
 * task would share their mistakes.
 */
export type OutputCheck = {
  name:
    | 'present'
    | 'bounded'
    | 'answered'
    | 'on_task'
    | 'format_kept'
    | 'quotes_exist'
    | 'reexecution_equal'
    | 'model_judge'
  passed: boolean
  /** A sentence for a person: why it passed, why it failed, or why it does not apply (then its weight is 0). */
  reason: string
  weight: number
}

export type OutputVerification = {
  verified: boolean
  /** 0..1, rounded to four decimals. */
  score: number
  grade: 'A' | 'B' | 'C' | 'D' | 'F'
  checks: readonly OutputCheck[]
}

export type VerifyOutputInput = {
  agentId: string
  task: string
  output: string
  mode: 'live' | 'offline'
  /** What memory put in front of the task; a quote from it is a quote from the input. */
  context?: readonly string[]
  /** Runs the same offline task again. Only meaningful for a lane that promises the same bytes. */
  reexecute?: () => Promise<string>
  /** An optional second opinion from a model, 0..1. It can lower a grade, never skip the other checks. */
  judge?: (input: { task: string; output: string }) => Promise<{ score: number; reason: string }>
}

export const MAX_OUTPUT = 64_000
const VERIFIED_FROM = 0.7
const JUDGE_PASSES_FROM = 0.6
const READ_LIMIT = 32_000

/** Checks that sink a run by themselves, whatever the others say. */
const DECISIVE: ReadonlySet<OutputCheck['name']> = new Set(['present', 'bounded', 'reexecution_equal'])

/** Lanes whose quotation marks are claims about the input. A writer or a comedian may put words in a character's mouth. */
const QUOTING_LANES = /^(?:researcher|analyst|support|default)/

export async function verifyOutput(input: VerifyOutputInput): Promise<OutputVerification> {
  const checks: OutputCheck[] = [
    present(input.output),
    bounded(input.output),
    answered(input.output),
    onTask(input.task, input.output),
    formatKept(input.task, input.output),
    quotesExist(input),
    await reexecutionEqual(input),
  ]
  const opinion = await modelJudge(input)
  if (opinion) checks.push(opinion.check)
  const total = checks.reduce((sum, check) => sum + check.weight, 0)
  const earned = checks.reduce((sum, check) => sum + check.weight * shareOf(check, opinion), 0)
  const score = Number((earned / total).toFixed(4))
  const sunk = checks.some((check) => !check.passed && DECISIVE.has(check.name))
  return { verified: !sunk && score >= VERIFIED_FROM, score, grade: sunk ? 'F' : gradeOf(score), checks }
}

/** A judge's opinion counts by degree; every other check holds or does not. */
const shareOf = (check: OutputCheck, opinion: Opinion | undefined) =>
  check.name === 'model_judge' && opinion ? opinion.score : check.passed ? 1 : 0

const gradeOf = (score: number) =>
  score >= 0.9 ? 'A' : score >= 0.8 ? 'B' : score >= 0.7 ? 'C' : score >= 0.5 ? 'D' : 'F'

function present(output: string): OutputCheck {
  const passed = /[\p{L}\p{N}]/u.test(output)
  return { name: 'present', passed, reason: passed ? 'There is an answer.' : 'The output is empty.', weight: 3 }
}

function bounded(output: string): OutputCheck {
  const fault =
    output.length > MAX_OUTPUT
      ? `The output has ${output.length} characters, over the limit of ${MAX_OUTPUT}.`
      : output.includes('\0') || !output.isWellFormed()
        ? 'The output holds characters that are not text.'
        : undefined
  return {
    name: 'bounded',
    passed: !fault,
    reason: fault ?? `${output.length} characters of text, within the limit.`,
    weight: 2,
  }
}

/** Short outputs that are nothing but an apology. A long answer may well contain one of these phrases. */
function answered(output: string): OutputCheck {
  const head = output.slice(0, 400)
  const refuses =
    output.length < 600 &&
    /\b(?:i(?:'m| am)? (?:sorry|unable|not able)\b.{0,60}\b(?:can(?:'|no)?t|cannot|unable|not able|won't)|i (?:cannot|can't|won't) (?:help|assist|comply|do that)|as an ai (?:language )?model)/i.test(
      head,
    )
  const leftUndone = LEFT_UNDONE.test(head)
  return {
    name: 'answered',
    passed: !refuses && !leftUndone,
    reason: refuses
      ? 'The output declines the task.'
      : leftUndone
        ? 'The output says that the task itself was not done.'
        : 'The output does not decline the task.',
    weight: 2,
  }
}

/** The words in which a lane without a model says that it gives something else than what was asked for. Honest, but no A. */
const LEFT_UNDONE =
  /does not translate|does not write programs|this lane invents none|no figure to report|it will not guess an answer|does not say what kind of work it wants/i

const COMMON = new Set(
  (
    'about after also another answer because before being both could does each explain find from generate give have help into just ' +
    'know like list make many more most much need only other over please provide should show some tell than that their ' +
    'them then there these they this those through under using very want were what when where which while will with ' +
    'would write your analyze analyse create summarize summarise following review return output format words'
  ).split(' '),
)

const stem = (word: string) => word.slice(0, Math.max(4, Math.ceil(word.length * 0.7)))

const wordsOf = (text: string) => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []

/** On task means that the answer speaks of what was asked: some of the task's own content words come back in it. */
function onTask(task: string, output: string): OutputCheck {
  const head = task.slice(0, 1500)
  const keys = [
    ...new Set(
      wordsOf(head)
        .filter((word) => word.length > 3 && !COMMON.has(word))
        .map(stem),
    ),
  ].slice(0, 40)
  if (keys.length === 0 || /\btranslat/i.test(head)) {
    return {
      name: 'on_task',
      passed: true,
      reason: 'The task has no content words that an answer would have to repeat.',
      weight: 0,
    }
  }
  const said = new Set(wordsOf(output.slice(0, READ_LIMIT)).map(stem))
  const shared = keys.filter((key) => said.has(key)).length
  const wanted = Math.max(1, Math.min(3, Math.ceil(keys.length * 0.15)))
  const passed = shared >= wanted
  return {
    name: 'on_task',
    passed,
    reason: `${shared} of the task's ${keys.length} content words come back in the answer; ${wanted} are wanted.`,
    weight: 3,
  }
}

function formatKept(task: string, output: string): OutputCheck {
  const asked = askedForm(task)
  const broken = asked.flatMap((form) => form.broken(output) ?? [])
  if (asked.length === 0)
    return { name: 'format_kept', passed: true, reason: 'No particular form was asked for.', weight: 0 }
  const names = asked.map((form) => form.name).join(', ')
  return {
    name: 'format_kept',
    passed: broken.length === 0,
    reason: broken.length === 0 ? `The asked-for form is kept: ${names}.` : broken.join(' '),
    weight: 3,
  }
}

type AskedForm = { name: string; broken(output: string): string | undefined }

/** The form is asked for at the edges of a task; what is pasted in the middle may speak of JSON without asking for it. */
function askedForm(task: string): AskedForm[] {
  const text = (task.length > 1200 ? `${task.slice(0, 600)}\n${task.slice(-600)}` : task).toLowerCase()
  const forms: AskedForm[] = []
  // "Why does my API return JSON?" speaks of JSON and does not ask for it: an order starts its clause, a manner ends it.
  const json =
    /(?:^|[.!?:;,\n]|\b(?:please|and|then|must|only))\s*(?:return|output|produce|give me|(?:respond|reply|answer) with)(?: \w+){0,3} json\b/.test(
      text,
    ) ||
    /\b(?:as|in|into)(?: \w+)? json(?: only| format| please| with\b.*| object| array)?\s*(?:[.,;:!?)\n]|$)|\bjson only\b/.test(
      text,
    )
  if (json)
    forms.push({
      name: 'JSON',
      broken: (output) => (isJson(output) ? undefined : 'JSON was asked for and the output does not parse.'),
    })
  if (!json && /\b(?:bullet(?:ed)?(?: points?| list)?s?|numbered list)\b/.test(text)) {
    forms.push({
      name: 'a list',
      broken: (output) =>
        /^\s*(?:[-*•]|\d{1,3}[.)])\s+\S/m.test(output) ? undefined : 'A list was asked for and the output has none.',
    })
  }
  const limit =
    /\b(?:under|below|within|at most|no more than|max(?:imum)?(?: of)?|up to|fewer than|less than) (\d{1,5}) words?\b/.exec(
      text,
    )?.[1]
  if (limit && Number(limit) > 0) {
    // A tenth over is how people count words; more is a broken promise.
    const words = Number(limit)
    forms.push({
      name: `at most ${words} words`,
      broken: (output) =>
        countWords(output) <= words * 1.1
          ? undefined
          : `At most ${words} words were asked for and the output has ${countWords(output)}.`,
    })
  }
  return forms
}

const countWords = (text: string) => text.split(/\s+/).filter(Boolean).length

function isJson(output: string): boolean {
  const bare = output
    .trim()
    .replace(/^```(?:json)?[ \t]*\n/, '')
    .replace(/\n```$/, '')
  try {
    JSON.parse(bare)
    return true
  } catch {
    return false
  }
}

/** Passages of five words or more between quotation marks must stand in the input, letter for letter but for spaces. */
function quotesExist(input: VerifyOutputInput): OutputCheck {
  const applies = QUOTING_LANES.test(input.agentId)
  const quotes = applies ? quotesOf(input.output.slice(0, READ_LIMIT)) : []
  if (quotes.length === 0) {
    return {
      name: 'quotes_exist',
      passed: true,
      reason: applies ? 'The output quotes nothing.' : 'Quotations of this lane are not claims about the input.',
      weight: 0,
    }
  }
  const source = plain([input.task, ...(input.context ?? [])].join('\n'))
  const invented = quotes.filter((quote) => !source.includes(plain(quote.replace(/(?:…|\.\.\.)$/, ''))))
  return {
    name: 'quotes_exist',
    passed: invented.length === 0,
    reason:
      invented.length === 0
        ? `All ${quotes.length} quoted passages stand in the input.`
        : `${invented.length} of ${quotes.length} quoted passages are not in the input, for example “${invented[0]!.slice(0, 80)}”.`,
    weight: 3,
  }
}

/** Straight marks are syntax in JSON and after a bracket or an equals sign in code; there only the curly ones quote. */
const quotesOf = (output: string) =>
  [
    ...output.matchAll(
      isJson(output) ? /“([^“”\n]{20,600})”/g : /“([^“”\n]{20,600})”|(?<![^\s(])"([^"\n]{20,600})"(?![:\]}])/g,
    ),
  ]
    .map((match) => (match[1] ?? match[2])!.trim())
    .filter((quote) => countWords(quote) >= 5)
    .slice(0, 50)

const plain = (text: string) =>
  text.toLowerCase().replace(/[“”"]/g, '').replace(/[’‘]/g, "'").replace(/\s+/g, ' ').trim()

async function reexecutionEqual(input: VerifyOutputInput): Promise<OutputCheck> {
  const check = { name: 'reexecution_equal' as const }
  if (input.mode !== 'offline')
    return { ...check, passed: true, reason: 'A live model does not promise the same words twice.', weight: 0 }
  if (!input.reexecute) return { ...check, passed: true, reason: 'The task was not run a second time.', weight: 0 }
  const again = await input.reexecute()
  const passed = again === input.output
  return {
    ...check,
    passed,
    reason: passed ? 'A second run gave the same bytes.' : 'A second run gave other bytes.',
    weight: 5,
  }
}

type Opinion = { score: number; check: OutputCheck }

async function modelJudge(input: VerifyOutputInput): Promise<Opinion | undefined> {
  if (!input.judge) return undefined
  try {
    const { score, reason } = await input.judge({ task: input.task, output: input.output })
    const share = Number.isFinite(score) ? Math.min(1, Math.max(0, score)) : 0
    return {
      score: share,
      check: { name: 'model_judge', passed: share >= JUDGE_PASSES_FROM, reason: reason.slice(0, 300), weight: 4 },
    }
  } catch {
    // A judge that is away must neither pass nor fail the work of another.
    return {
      score: 1,
      check: {
        name: 'model_judge',
        passed: true,
        reason: 'The model judge did not answer; its opinion is left out.',
        weight: 0,
      },
    }
  }
}
