import { MAX_STEPS_PER_TASK, withStepBudget } from '../../platform/step-budget.ts'
import { isStorableText } from '../../platform/storable-text.ts'
import { checkAnswered } from './answered.ts'
import { checkAskedFor } from './asked-for.ts'
import { checkClaims } from './claims.ts'
import { blocksToParse, type CodeBlock, checkCode } from './code.ts'
import { checkComplete } from './complete.ts'
import { checkFactsUsed } from './facts-used.ts'
import { combine, type Finding, failed, notApplicable, passed } from './finding.ts'
import { checkGrounded } from './grounded.ts'
import { withoutDemands } from './injected.ts'
import { askJudge, type JudgeOpinion } from './judge.ts'
import type { AskJudge } from './judge-port.ts'
import { CHECK_NAMES, type CheckName, rulesOf } from './lane-checks.ts'
import { checkLanguage } from './language.ts'
import { checkCodeRequest } from './requested-rows.ts'
import { checkSafe } from './safe.ts'
import { checkSubject } from './subject.ts'
import { type ReadTask, readTask } from './task.ts'
import { checkResult } from './task-results.ts'
import { readText } from './text.ts'
import { withTextCache } from './text-cache.ts'

/**
 * Verifies a lane's output by checks that anyone can repeat: against the task, against what can be computed again and, for
 * offline lanes, against a second run. It reads the task by itself and shares no code with the lanes, so that it does not
 * share their mistakes.
 */
export type OutputCheck = {
  name: CheckName
  passed: boolean
  /** 0 when the task has nothing that the check could hold on to. */
  weight: number
  /** Whether the output is unverified when this check fails. */
  decides: boolean
  /** A sentence for a person. */
  reason: string
  /** What exactly was found, when it failed. It quotes a few words at most: a refused output is not shown. */
  detail?: string
}

export type OutputVerification = {
  verified: boolean
  /** 0..1, rounded to four decimals. */
  score: number
  grade: 'A' | 'B' | 'C' | 'D' | 'F'
  checks: readonly OutputCheck[]
  /** What the judge used, where one was asked. */
  judge?: JudgeOpinion['asked']
}

export type VerifyOutputInput = {
  agentId: string
  task: string
  output: string
  mode: 'live' | 'offline'
  /** Looks at an offline lane's work as at a model's, so that the scores can be compared. */
  everyCheck?: boolean
  /** The memories put in front of the task; they count as a source. */
  context?: readonly string[]
  /** Whether the model stopped at its limit of tokens. */
  finishedEarly?: boolean
  /** Runs the same offline task again. Only meaningful for a lane that promises the same bytes. */
  reexecute?: () => Promise<string>
  /** Fires at the run's deadline and when it is cancelled; the judge has no longer than that. */
  signal?: AbortSignal
}

export type VerificationDeps = {
  /** Parses code under a deadline; the messages of the blocks that do not parse. Without it nothing is parsed. */
  parseCode?: (blocks: readonly CodeBlock[]) => Promise<readonly string[]>
  /** A model that looks at the work of models. It can only lower a verdict. */
  judge?: AskJudge
}

export const MAX_OUTPUT = 64_000

export const createVerification =
  (deps: VerificationDeps) =>
  async (input: VerifyOutputInput): Promise<OutputVerification> => {
    const { findings, blocks } = withTextCache(() => withStepBudget(MAX_STEPS_PER_TASK, () => readOutput(input)))
    if (blocks.length > 0 && deps.parseCode) {
      const [message] = await deps.parseCode(blocks)
      findings.recomputed = combine([findings.recomputed, message === undefined ? passed : failed(message)])
    }
    findings.reexecution_equal = await checkReexecution(input)
    const verification = toVerification(input, findings)
    // What has failed cannot be raised, so there is nothing to ask about.
    if (!deps.judge || input.mode !== 'live' || !verification.verified) return verification
    const { agentId, task, output, context = [], signal = new AbortController().signal } = input
    const opinion = await askJudge(deps.judge, { agentId, task, output, context, signal })
    return {
      ...toVerification(input, { ...findings, model_judge: opinion.finding }),
      ...(opinion.asked && { judge: opinion.asked }),
    }
  }

/** Verification without a parser of code. */
export const verifyOutput = createVerification({})

type Findings = Record<Exclude<CheckName, 'model_judge'>, Finding> & { model_judge?: Finding }

/**
 * Some checks compare every part of the output with every part of the task, so they read texts of this length only. In
 * longer ones the beginning and the end are read for refusals, the language and what is unsafe, and nothing else decides.
 */
const MAX_READ = 6_000

/** The checks that read task and output. */
function readOutput(input: VerifyOutputInput): { findings: Findings; blocks: CodeBlock[] } {
  const { context = [], finishedEarly = false } = input
  const isLong = [input.task, input.output, context.join('')].some(({ length }) => length > MAX_READ)
  const task = readTask(input.agentId, cut(input.task), isLong ? [] : context)
  const output = readText(cut(input.output))
  const readsProse = input.mode === 'live' || input.everyCheck === true
  const findings: Findings = {
    present: checkPresent(input),
    bounded: checkBounded(input.output),
    answered: readsProse ? checkAnswered(task, output) : notApplicable,
    work_done: checkWorkDone(input.output),
    complete: readsProse
      ? isLong
        ? checkEnd(finishedEarly)
        : checkComplete(task, output, finishedEarly)
      : notApplicable,
    language: readsProse ? checkLanguage(task, output) : notApplicable,
    on_task: readsProse && !isLong ? checkSubject(task, output) : notApplicable,
    asked_for: isLong ? notApplicable : combine([checkAskedFor(wishOf(task), output), checkCodeRequest(task, output)]),
    grounded: isLong ? notApplicable : checkGrounded(task, output),
    facts_used: isLong ? notApplicable : checkFactsUsed(task, output),
    recomputed: isLong ? notApplicable : combine([checkClaims(task, output), checkCode(task, output)]),
    result_right: isLong ? notApplicable : checkResult(task, output),
    safe: readsProse ? checkSafe(task, output) : notApplicable,
    reexecution_equal: notApplicable,
  }
  // Offline lanes write no code of their own beyond examples, which their own tests parse.
  return { findings, blocks: isLong || input.mode === 'offline' ? [] : blocksToParse(task, output) }
}

/** The task as its caller means it. */
function wishOf(task: ReadTask): ReadTask {
  const text = task.is.translation ? task.full.raw : withoutDemands(task.full.raw)
  return text === task.full.raw ? task : readTask(task.agentId, text, task.context)
}

/** Of a long text the beginning and the end. */
const cut = (text: string): string =>
  text.length <= MAX_READ ? text : `${text.slice(0, MAX_READ / 2)}\n${text.slice(-MAX_READ / 2)}`

const checkEnd = (finishedEarly: boolean): Finding =>
  finishedEarly ? failed('The model stopped at its limit of tokens.') : notApplicable

function toVerification({ agentId, mode }: VerifyOutputInput, findings: Findings): OutputVerification {
  const rules = rulesOf(agentId)
  const checks = CHECK_NAMES.flatMap((name): OutputCheck[] => {
    const finding = findings[name]
    if (!finding) return []
    const { applies, fault, isDoubt = false } = finding
    const { weight, decides } = rules[name]
    // What neither applies nor could decide on this lane is left out, so that stored answers stay small.
    if (!applies && (decides === 'never' || (decides === 'on_models' && mode === 'offline'))) return []
    return [
      {
        name,
        passed: fault === undefined,
        reason: REASONS[name][fault !== undefined ? 'failed' : applies ? 'passed' : 'absent'],
        weight: applies ? weight : 0,
        decides: !isDoubt && (decides === 'always' || (decides === 'on_models' && mode === 'live')),
        ...(fault !== undefined && { detail: fault }),
      },
    ]
  })
  const totalWeight = checks.reduce((sum, check) => sum + check.weight, 0)
  const earnedWeight = checks.reduce((sum, check) => sum + (check.passed ? check.weight : 0), 0)
  const score = Number((earnedWeight / totalWeight).toFixed(4))
  const verified = checks.every((check) => check.passed || !check.decides)
  return { verified, score, grade: verified ? gradeOf(score) : 'F', checks }
}

const gradeOf = (score: number) =>
  score >= 0.9 ? 'A' : score >= 0.8 ? 'B' : score >= 0.7 ? 'C' : score >= 0.5 ? 'D' : 'F'

/** The sentences of most runs are alike, so that stored answers stay small. */
const reasons = (failedText: string, passedText = 'Nothing found.', absent = 'Does not apply.') => ({
  passed: passedText,
  failed: failedText,
  absent,
})

const REASONS: Readonly<Record<CheckName, ReturnType<typeof reasons>>> = {
  present: reasons('The output is empty.', 'There is an answer.'),
  bounded: reasons('The output is too long or no text.'),
  answered: reasons('It does not answer.', 'The output does not decline the task.'),
  work_done: reasons('The output says that the task itself was not done.'),
  complete: reasons('It is cut off.'),
  language: reasons('It is in another language.'),
  on_task: reasons('It is about something else.'),
  asked_for: reasons('It has not the form asked for.', undefined, 'No particular form was asked for.'),
  grounded: reasons('It contradicts the text given.'),
  facts_used: reasons('It leaves out the facts given.'),
  recomputed: reasons('Computed again with another result.'),
  result_right: reasons('It has not the result that was to be computed.'),
  safe: reasons('It is unsafe to pass on.'),
  reexecution_equal: reasons('A second run gave other bytes.', 'A second run gave the same bytes.'),
  model_judge: reasons('The judge found a fault that can be shown.'),
}

const checkPresent = ({ task, output }: VerifyOutputInput): Finding =>
  /[\p{L}\p{N}]/u.test(output) || (/emoji/i.test(task) && /\p{Extended_Pictographic}/u.test(output))
    ? passed
    : failed('Neither letters nor digits.')

function checkBounded(output: string): Finding {
  if (output.length > MAX_OUTPUT) return failed(`${output.length} characters, over the limit of ${MAX_OUTPUT}.`)
  return isStorableText(output) ? passed : failed('It holds characters that are not text.')
}

/** Phrases with which an offline lane says that it did not do the task itself; such an output cannot get grade A. */
const NOT_DONE_PHRASES =
  /does not translate|does not write programs|this lane invents none|no figure to report|it will not guess an answer|does not say what kind of work it wants/i

const checkWorkDone = (output: string): Finding =>
  NOT_DONE_PHRASES.test(output.slice(0, 400)) ? failed('It says so itself.') : notApplicable

async function checkReexecution({ mode, reexecute, output }: VerifyOutputInput): Promise<Finding> {
  if (mode !== 'offline' || !reexecute) return notApplicable
  return (await reexecute()) === output ? passed : failed('The lane promises the same bytes for the same task.')
}
