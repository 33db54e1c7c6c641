import { MAX_STEPS_PER_TASK, spendSteps, withStepBudget } from '../../platform/step-budget.ts'
import { isStorableText, toStorableText } from '../../platform/storable-text.ts'

/**
 * Verifies a lane's output by checks that anyone can repeat: against the task and, for offline lanes, against a second
 * run. It reads the requested format by itself and shares no code with the lanes, so that it does not share their mistakes.
 */
export type OutputCheck = Finding & {
  /** Whether the output is unverified when this check fails. */
  decides: boolean
}

type Finding = {
  name:
    | 'present'
    | 'bounded'
    | 'answered'
    | 'work_done'
    | 'on_task'
    | 'format_kept'
    | 'quotes_exist'
    | 'reexecution_equal'
    | 'model_judge'
  passed: boolean
  /** A sentence for a person: why it passed, why it failed, or why it does not apply (then its weight is 0). */
  reason: string
  weight: number
  /** What exactly was found, when it failed. */
  detail?: string
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
  /** The memories put in front of the task; they count as input when quotations are checked. */
  context?: readonly string[]
  /** Runs the same offline task again. Only meaningful for a lane that promises the same bytes. */
  reexecute?: () => Promise<string>
  /** An optional second opinion from a model, 0..1. It can lower a grade, never skip the other checks. */
  judge?: (input: { task: string; output: string }) => Promise<{ score: number; reason: string }>
}

export const MAX_OUTPUT = 64_000
const JUDGE_PASSES_FROM = 0.6
const READ_LIMIT = 32_000

/** If one of these checks fails, the output is not verified, whatever its score. */
const DECISIVE: ReadonlySet<Finding['name']> = new Set(['present', 'bounded', 'answered', 'reexecution_equal'])

/** Lanes whose quotations must come from the input. Writer and comedian lanes may invent speech. */
const QUOTING_LANES = /^(?:researcher|analyst|support|default)/

export async function verifyOutput(input: VerifyOutputInput): Promise<OutputVerification> {
  const findings = withStepBudget(MAX_STEPS_PER_TASK, () => readOutput(input))
  findings.push(await checkReexecution(input))
  const opinion = await askModelJudge(input)
  if (opinion) findings.push(opinion.check)
  const checks = findings.map((finding) => ({ ...finding, decides: DECISIVE.has(finding.name) }))
  const totalWeight = checks.reduce((sum, check) => sum + check.weight, 0)
  const earnedWeight = checks.reduce((sum, check) => sum + check.weight * scoreShare(check, opinion), 0)
  const score = Number((earnedWeight / totalWeight).toFixed(4))
  const failsDecisively = checks.some((check) => !check.passed && check.decides)
  return {
    verified: !failsDecisively,
    score,
    grade: failsDecisively ? 'F' : gradeOf(score),
    checks,
  }
}

/** The checks that read task and output; all of them go through each text a few times and no more. */
const readOutput = (input: VerifyOutputInput): Finding[] => [
  checkPresent(input.output),
  checkLength(input.output),
  checkAnswered(input.output),
  checkWorkDone(input.output),
  checkOnTask(input.task, input.output),
  checkFormat(input.task, input.output),
  checkQuotes(input),
]

/** The judge's score counts in proportion; every other check counts fully or not at all. */
const scoreShare = (check: Finding, opinion: JudgeOpinion | undefined) =>
  check.name === 'model_judge' && opinion ? opinion.score : check.passed ? 1 : 0

const gradeOf = (score: number) =>
  score >= 0.9 ? 'A' : score >= 0.8 ? 'B' : score >= 0.7 ? 'C' : score >= 0.5 ? 'D' : 'F'

function checkPresent(output: string): Finding {
  const passed = /[\p{L}\p{N}]/u.test(output)
  return { name: 'present', passed, reason: passed ? 'There is an answer.' : 'The output is empty.', weight: 3 }
}

function checkLength(output: string): Finding {
  const fault =
    output.length > MAX_OUTPUT
      ? `The output has ${output.length} characters, over the limit of ${MAX_OUTPUT}.`
      : !isStorableText(output)
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
function checkAnswered(output: string): Finding {
  const head = output.slice(0, 400)
  const refuses =
    output.length < 600 &&
    /\b(?:i(?:'m| am)? (?:sorry|unable|not able)\b.{0,60}\b(?:can(?:'|no)?t|cannot|unable|not able|won't)|i (?:cannot|can't|won't) (?:help|assist|comply|do that)|as an ai (?:language )?model)/i.test(
      head,
    )
  return {
    name: 'answered',
    passed: !refuses,
    reason: refuses ? 'The output declines the task.' : 'The output does not decline the task.',
    weight: 2,
    ...(refuses && { detail: 'It apologises or says that it cannot, and answers nothing.' }),
  }
}

/** Phrases with which an offline lane says that it did not do the task itself; such an output cannot get grade A. */
const NOT_DONE_PHRASES =
  /does not translate|does not write programs|this lane invents none|no figure to report|it will not guess an answer|does not say what kind of work it wants/i

function checkWorkDone(output: string): Finding {
  const admitsNotDone = NOT_DONE_PHRASES.test(output.slice(0, 400))
  return {
    name: 'work_done',
    passed: !admitsNotDone,
    reason: admitsNotDone
      ? 'The output says that the task itself was not done.'
      : 'The output does not say that work was left undone.',
    weight: admitsNotDone ? 2 : 0,
  }
}

const COMMON = new Set(
  (
    'about after also another answer because before being both could does each explain find from generate give have help into just ' +
    'know like list make many more most much need only other over please provide should show some tell than that their ' +
    'them then there these they this those through under using very want were what when where which while will with ' +
    'would write your analyze analyse create summarize summarise following review return output format words'
  ).split(' '),
)

const stem = (word: string) => word.slice(0, Math.max(4, Math.ceil(word.length * 0.7)))

function wordsOf(text: string): string[] {
  spendSteps(text.length)
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
}

/** An output is on task if some of the task's content words appear in it. */
function checkOnTask(task: string, output: string): Finding {
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
  const outputStems = new Set(wordsOf(output.slice(0, READ_LIMIT)).map(stem))
  const sharedCount = keys.filter((key) => outputStems.has(key)).length
  const minSharedCount = Math.max(1, Math.min(3, Math.ceil(keys.length * 0.15)))
  const passed = sharedCount >= minSharedCount
  return {
    name: 'on_task',
    passed,
    reason: `${sharedCount} of the task's ${keys.length} content words come back in the answer; ${minSharedCount} are wanted.`,
    weight: 3,
  }
}

function checkFormat(task: string, output: string): Finding {
  const forms = readRequestedForms(task)
  const faults = forms.flatMap((form) => form.findFault(output) ?? [])
  if (forms.length === 0)
    return { name: 'format_kept', passed: true, reason: 'No particular form was asked for.', weight: 0 }
  const names = forms.map((form) => form.name).join(', ')
  return {
    name: 'format_kept',
    passed: faults.length === 0,
    reason: faults.length === 0 ? `The asked-for form is kept: ${names}.` : faults.join(' '),
    weight: 3,
  }
}

type RequestedForm = { name: string; findFault(output: string): string | undefined }

/** Reads only the start and the end of a long task: text pasted in the middle may mention JSON without requesting it. */
function readRequestedForms(task: string): RequestedForm[] {
  const text = (task.length > 1200 ? `${task.slice(0, 600)}\n${task.slice(-600)}` : task).toLowerCase()
  const forms: RequestedForm[] = []
  // "Why does my API return JSON?" mentions JSON without requesting it: a request starts its clause ("return JSON") or ends it ("as JSON").
  const json =
    /(?:^|[.!?:;,\n]|\b(?:please|and|then|must|only))\s{0,20}(?:return|output|produce|give me|(?:respond|reply|answer) with)(?: \w+){0,3} json\b/.test(
      text,
    ) ||
    /\b(?:as|in|into)(?: \w+)? json(?: only| format| please| with\b.*| object| array)?\s*(?:[.,;:!?)\n]|$)|\bjson only\b/.test(
      text,
    )
  if (json)
    forms.push({
      name: 'JSON',
      findFault: (output) => (isJson(output) ? undefined : 'JSON was asked for and the output does not parse.'),
    })
  if (!json && /\b(?:bullet(?:ed)?(?: points?| list)?s?|numbered list)\b/.test(text)) {
    forms.push({
      name: 'a list',
      findFault: (output) =>
        /^[ \t]*(?:[-*•]|\d{1,3}[.)])[ \t]+\S/m.test(output)
          ? undefined
          : 'A list was asked for and the output has none.',
    })
  }
  const limit =
    /\b(?:under|below|within|at most|no more than|max(?:imum)?(?: of)?|up to|fewer than|less than) (\d{1,5}) words?\b/.exec(
      text,
    )?.[1]
  if (limit && Number(limit) > 0) {
    // People count words differently, so a tenth over the limit is accepted.
    const words = Number(limit)
    forms.push({
      name: `at most ${words} words`,
      findFault: (output) =>
        countWords(output) <= words * 1.1
          ? undefined
          : `At most ${words} words were asked for and the output has ${countWords(output)}.`,
    })
  }
  return forms
}

function countWords(text: string): number {
  spendSteps(text.length)
  return text.split(/\s+/).filter(Boolean).length
}

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

/** Quoted passages of five words or more must appear in the input; only spaces, case and quotation marks may differ. */
function checkQuotes(input: VerifyOutputInput): Finding {
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
  const inventedQuotes = quotes.filter((quote) => !containsText(source, plain(quote.replace(/(?:…|\.\.\.)$/, ''))))
  return {
    name: 'quotes_exist',
    passed: inventedQuotes.length === 0,
    reason:
      inventedQuotes.length === 0
        ? `All ${quotes.length} quoted passages stand in the input.`
        : `${inventedQuotes.length} of ${quotes.length} quoted passages are not in the input, for example “${toStorableText(inventedQuotes[0]!.slice(0, 80))}”.`,
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

/** Knuth, Morris and Pratt's search. `includes` compares again and again where a text repeats itself. */
function containsText(text: string, part: string): boolean {
  spendSteps(text.length + part.length)
  const prefixLengths = new Uint16Array(part.length)
  for (let i = 1, matched = 0; i < part.length; i++) {
    while (matched > 0 && part[i] !== part[matched]) matched = prefixLengths[matched - 1]!
    if (part[i] === part[matched]) matched++
    prefixLengths[i] = matched
  }
  for (let i = 0, matched = 0; i < text.length; i++) {
    while (matched > 0 && text[i] !== part[matched]) matched = prefixLengths[matched - 1]!
    if (text[i] === part[matched]) matched++
    if (matched === part.length) return true
  }
  return part === ''
}

const plain = (text: string) =>
  text.toLowerCase().replace(/[“”"]/g, '').replace(/[’‘]/g, "'").replace(/\s+/g, ' ').trim()

async function checkReexecution(input: VerifyOutputInput): Promise<Finding> {
  const check = { name: 'reexecution_equal' as const }
  if (input.mode !== 'offline')
    return { ...check, passed: true, reason: 'A live model does not promise the same words twice.', weight: 0 }
  if (!input.reexecute) return { ...check, passed: true, reason: 'The task was not run a second time.', weight: 0 }
  const secondOutput = await input.reexecute()
  const passed = secondOutput === input.output
  return {
    ...check,
    passed,
    reason: passed ? 'A second run gave the same bytes.' : 'A second run gave other bytes.',
    weight: 5,
  }
}

type JudgeOpinion = { score: number; check: Finding }

async function askModelJudge(input: VerifyOutputInput): Promise<JudgeOpinion | undefined> {
  if (!input.judge) return undefined
  try {
    const { score, reason } = await input.judge({ task: input.task, output: input.output })
    const share = Number.isFinite(score) ? Math.min(1, Math.max(0, score)) : 0
    return {
      score: share,
      check: {
        name: 'model_judge',
        passed: share >= JUDGE_PASSES_FROM,
        reason: toStorableText(reason.slice(0, 300)),
        weight: 4,
      },
    }
  } catch {
    // A judge that does not answer must neither pass nor fail the output.
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
