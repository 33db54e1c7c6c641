import { spendSteps } from '../../../platform/step-budget.ts'
import type { Source } from './source.ts'

/** A defect that is visible in the text of a program, with its corrected line where the correction is mechanical. */
export type Defect = { line: number; name: string; message: string; fix?: string }

const MAX_LINES = 800
const MAX_LINE_CHARACTERS = 300
const MAX_DEFECTS = 20

/** The common defects of most languages, found line by line. Comments are left out. */
export function findDefects(source: Source): Defect[] {
  if (source.language === 'json' || source.language === 'sql') return []
  spendSteps(source.text.length * 12)
  const lines = source.text.split('\n').slice(0, MAX_LINES)
  const code = lines.map((line) => (/^\s*(?:\/\/|#|\*|--)/.test(line) ? '' : line.slice(0, MAX_LINE_CHARACTERS)))
  const program = { code, isPython: source.language === 'python', asyncNames: findAsyncNames(code) }
  const signatures = findSignatures(code)
  const maybeMissing = findMaybeMissing(program)
  const defects: Defect[] = []
  for (const [i, line] of code.entries()) {
    if (line.trim() === '') continue
    const found = [
      findOffByOne(line),
      findMutableDefault(line, program.isPython),
      findMissingAwait(line, i, program),
      findMissingCheck(line, program, maybeMissing),
      findJoinedSql(line, program.isPython),
      findSwappedArguments(line, signatures),
      findAssignedCondition(line, program.isPython),
      findEmptyMean(line),
    ]
    for (const defect of found) if (defect) defects.push({ line: i + 1, ...defect })
    if (defects.length >= MAX_DEFECTS) break
  }
  return defects
}

/** The program with every mechanical correction; undefined when there is none. */
export function correctCode(source: Source, defects: readonly Defect[]): string | undefined {
  const fixes = new Map<number, string>()
  for (const { line, fix } of defects) if (fix !== undefined && !fixes.has(line)) fixes.set(line, fix)
  if (fixes.size === 0) return undefined
  return source.text
    .split('\n')
    .map((line, i) => fixes.get(i + 1) ?? line)
    .join('\n')
}

type Program = { code: readonly string[]; isPython: boolean; asyncNames: ReadonlySet<string> }
type Finding = Omit<Defect, 'line'> | undefined

const LENGTH = String.raw`(?:[\w$.]{1,40}\.(?:length|Length|Count|size\(\)|length\(\)|count\(\))|(?:len|count|strlen|sizeof)\([\w$.]{1,40}\))`
const TO_LENGTH = new RegExp(String.raw`(\b(?:for|while)\b.{0,120}?[\w$]\s*)<=(\s*${LENGTH})(?!\s*-)`)
const FROM_LENGTH = /(\bfor\b.{0,40}?=\s*([\w$.]{1,40}\.length))(\s*;\s*\w{1,20}\s*>=\s*0)/
const RANGE_TO_LENGTH = /\brange\((\s*(?:0\s*,\s*)?len\([\w.]{1,40}\))\s*\+\s*1\s*\)/
const AT_LENGTH = /\b([\w$]{1,40})\[\s*(?:\1\.length|len\(\1\))\s*\]/

function findOffByOne(line: string): Finding {
  const toLength = TO_LENGTH.exec(line)
  if (toLength && !/=\s*1\s*;/.test(line))
    return {
      name: 'off by one',
      message: `the loop runs to \`<= ${toLength[2]!.trim()}\`, one past the last element; use \`<\`.`,
      fix: line.replace(TO_LENGTH, '$1<$2'),
    }
  if (FROM_LENGTH.test(line))
    return {
      name: 'off by one',
      message: 'the loop starts at the length, one past the last element; start at the length minus 1.',
      fix: line.replace(FROM_LENGTH, '$1 - 1$3'),
    }
  if (RANGE_TO_LENGTH.test(line))
    return {
      name: 'off by one',
      message: '`range(len(…) + 1)` yields one index past the last element; use `range(len(…))`.',
      fix: line.replace(RANGE_TO_LENGTH, 'range($1)'),
    }
  const atLength = AT_LENGTH.exec(line)
  if (!atLength) return undefined
  const last = atLength[0].includes('len(') ? `${atLength[1]}[-1]` : `${atLength[1]}[${atLength[1]}.length - 1]`
  return {
    name: 'off by one',
    message: `\`${atLength[0]}\` is past the last element; the last one is \`${last}\`.`,
    fix: line.replace(AT_LENGTH, () => last),
  }
}

const PYTHON_DEFAULT =
  /^(\s*)((?:async )?def \w{1,60}\(.{0,200}?)\b(\w{1,40})(\s*(?::[^=,()]{1,40})?=\s*)(\[\]|\{\}|list\(\)|dict\(\)|set\(\))(.{0,120}:)\s*$/

function findMutableDefault(line: string, isPython: boolean): Finding {
  const match = isPython ? PYTHON_DEFAULT.exec(line) : null
  if (!match) return undefined
  const [, indent, head, name, equals, value, tail] = match
  return {
    name: 'mutable default argument',
    message: `the default \`${value}\` of \`${name}\` is made once and shared between calls; use \`None\` and make it inside.`,
    fix: `${indent}${head}${name}${equals}None${tail}\n${indent}    if ${name} is None:\n${indent}        ${name} = ${value}`,
  }
}

function findAsyncNames(code: readonly string[]): Set<string> {
  const names = new Set<string>()
  for (const line of code)
    for (const pattern of [
      /\basync\s+(?:function\s*\*?\s*|def\s+)(\w{1,60})/,
      /\b(?:const|let|var)\s+(\w{1,60})\s*=\s*async\b/,
      /^\s*(?:static\s+|public\s+|private\s+)?async\s+(\w{1,60})\s*\(/,
    ]) {
      const name = pattern.exec(line)?.[1]
      if (name && name !== 'function' && name !== 'def') names.add(name)
    }
  return names
}

/** A call whose result is a promise, or in Python a coroutine, that nothing waits for. */
function findMissingAwait(line: string, index: number, { code, isPython, asyncNames }: Program): Finding {
  if (
    /\b(?:await|return|yield|void|async|def|function|import)\b|\.then\(|\.catch\(|=>\s*\w|Promise\.|asyncio\.|gather\(|create_task\(/.test(
      line,
    )
  )
    return undefined
  for (const match of line.matchAll(/(^|[^\w.$])((?:this\.|self\.)?(\w{1,60}))\(/g)) {
    const name = match[3]!
    const isFetch = name === 'fetch' && !isPython
    if (!asyncNames.has(name) && !isFetch) continue
    const isAsyncHere = isInsideAsync(code, index)
    const fix = isAsyncHere ? line.replace(`${match[2]}(`, () => `await ${match[2]}(`) : undefined
    return {
      name: 'missing await',
      message: `\`${name}()\` returns a ${isPython ? 'coroutine' : 'promise'} and nothing waits for it; put \`await\` before it.`,
      ...(fix !== undefined && { fix }),
    }
  }
  const json = isPython ? null : /=\s*(\w{1,40})\.(json|text|blob)\(\)/.exec(line)
  if (!json || !isInsideAsync(code, index)) return undefined
  return {
    name: 'missing await',
    message: `\`${json[1]}.${json[2]}()\` returns a promise and nothing waits for it; put \`await\` before it.`,
    fix: line.replace(`${json[1]}.${json[2]}()`, () => `await ${json[1]}.${json[2]}()`),
  }
}

/** The nearest line above that opens a function with less indentation is asynchronous. */
function isInsideAsync(code: readonly string[], index: number): boolean {
  const indentOf = (line: string) => line.length - line.trimStart().length
  const indent = indentOf(code[index]!)
  for (let i = index - 1; i >= 0; i--) {
    const line = code[i]!
    if (line.trim() === '' || indentOf(line) >= indent) continue
    if (/\b(?:function|def)\b|=>|^\s*(?:async\s+)?\w{1,60}\([^)]{0,200}\)\s*\{/.test(line))
      return /\basync\b/.test(line)
  }
  return /\basync\b/.test(code[index]!)
}

const MAYBE_MISSING = /\.(?:find|match|exec|getElementById|querySelector|closest)\((?:[^()]|\([^()]{0,80}\)){0,120}\)/
const PYTHON_MAYBE_MISSING =
  /\bre\.(?:match|search|fullmatch)\((?:[^()]|\([^()]{0,80}\)){0,120}\)|\.(?:get|first|one_or_none)\((?:[^(),]|\([^()]{0,80}\)){0,80}\)/

/** Variables whose value may be missing and which no condition of the program tests. */
function findMaybeMissing({ code, isPython }: Program): Set<string> {
  const names = new Set<string>()
  const call = isPython ? PYTHON_MAYBE_MISSING : MAYBE_MISSING
  for (const line of code) {
    const match = /^\s*(?:const |let |var )?(\w{1,40})(?:\s*:\s*[^=]{1,40})?\s*=\s*(.*)$/.exec(line)
    if (match && new RegExp(`(?:${call.source})\\s*;?\\s*$`).test(match[2]!)) names.add(match[1]!)
  }
  for (const name of [...names]) {
    const isTested = code.some((line) =>
      new RegExp(
        `\\b(?:if|while|elif|assert)\\b.{0,80}\\b${name}\\b|!\\s*${name}\\b|\\b${name}\\s*(?:\\?|&&|\\|\\||===|!==|==|!=)|\\bis (?:not )?None\\b.{0,40}\\b${name}\\b|\\b${name} is (?:not )?None`,
      ).test(line),
    )
    if (isTested) names.delete(name)
  }
  return names
}

function findMissingCheck(line: string, { isPython }: Program, maybeMissing: ReadonlySet<string>): Finding {
  const call = isPython ? PYTHON_MAYBE_MISSING : MAYBE_MISSING
  const direct = new RegExp(`(${call.source})(\\.(?!then\\b|catch\\b)\\w|\\[)`).exec(line)
  const nothing = isPython ? '`None`' : '`undefined` or `null`'
  if (direct)
    return {
      name: 'unhandled null',
      message: `\`${direct[1]!.slice(0, 60)}\` can be ${nothing}, and the next access then fails; test it first.`,
      ...(!isPython && {
        fix: `${line.slice(0, direct.index + direct[1]!.length)}?.${line.slice(direct.index + direct[1]!.length).replace(/^\./, '')}`,
      }),
    }
  for (const name of maybeMissing) {
    const use = new RegExp(`(^|[^\\w.$])${name}(\\.\\w|\\[)`).exec(line)
    if (!use) continue
    return {
      name: 'unhandled null',
      message: `\`${name}\` can be ${nothing} here, and nothing tests it.`,
      ...(!isPython && {
        fix: line.replace(`${name}${use[2]![0]}`, () => `${name}?.${use[2]![0] === '[' ? '[' : ''}`),
      }),
    }
  }
  return undefined
}

const SQL_TEXT = /(f?)(["'`])\s*(?:select\b|insert\s+into\b|update\b|delete\s+from\b)/i
const JOINED = /["']\s*\+\s*[\w$.[\]]|\$\{|["']\s*%\s*[\w(]|["']\.format\(|["']\s*\.\s*\$\w|String\.format\(|Sprintf\(/

function findJoinedSql(line: string, isPython: boolean): Finding {
  const text = SQL_TEXT.exec(line)
  if (!text) return undefined
  const isFormatted = text[1] === 'f' && /\{[^{}]{1,80}\}/.test(line)
  if (!isFormatted && !JOINED.test(line)) return undefined
  const fix = isPython ? parameteriseFormatted(line, text) : parameteriseTemplate(line)
  return {
    name: 'SQL by concatenation',
    message: 'a value is joined into the SQL text, so a hostile one becomes SQL; pass it as a parameter.',
    ...(fix !== undefined && { fix }),
  }
}

/** `query(`… ${x} …`)` and `query("…" + x)` become a statement with parameters. */
function parameteriseTemplate(line: string): string | undefined {
  const template = /^(.*?\b(?:query|execute|all|get|run|raw)\()`([^`]{1,240})`(\s*\).*)$/.exec(line)
  const values: string[] = []
  const bind = (value: string) => `$${values.push(value.trim())}`
  if (template) {
    const statement = template[2]!.replace(/'?\$\{([^{}]{1,80})\}'?/g, (_, value: string) => bind(value))
    return values.length > 0
      ? `${template[1]}'${statement.replaceAll("'", "\\'")}', [${values.join(', ')}]${template[3]}`
      : undefined
  }
  const joined =
    /^(.*?\b(?:query|execute|all|get|run|raw)\()(["'])([^"'`]{1,200})["']?\2\s*\+\s*([\w$.]{1,60})(?:\s*\+\s*(["'])[^"'`]{0,20}\5)?(\s*\).*)$/.exec(
      line,
    )
  if (!joined) return undefined
  return `${joined[1]}"${joined[3]!.replace(/['"]$/, '')}${bind(joined[4]!)}", [${values.join(', ')}]${joined[6]}`
}

function parameteriseFormatted(line: string, text: RegExpExecArray): string | undefined {
  const call = /^(.*?\bexecute\(\s*)f(["'])([^"']{0,200}(?:'?\{[^{}]{1,80}\}'?[^"]{0,120}){1,4})\2(\s*\).*)$/.exec(line)
  const values: string[] = []
  if (call && text[1] === 'f') {
    const statement = call[3]!.replace(/'?\{([^{}]{1,80})\}'?/g, (_, value: string) => {
      values.push(value.trim())
      return '%s'
    })
    return `${call[1]}"${statement}", (${values.join(', ')},)${call[4]}`
  }
  const joined =
    /^(.*?\bexecute\(\s*)(["'])([^"']{1,200})'?\2\s*(?:\+|%)\s*([\w.]{1,60})(?:\s*\+\s*["'][^"]{0,20}["'])?(\s*\).*)$/.exec(
      line,
    )
  return joined ? `${joined[1]}"${joined[3]!.replace(/'?%s'?$|'$/, '')}%s", (${joined[4]},)${joined[5]}` : undefined
}

/** The parameters of the functions in the program, by name. */
function findSignatures(code: readonly string[]): Map<string, string[]> {
  const signatures = new Map<string, string[]>()
  for (const line of code) {
    const match =
      /\b(?:function|def|func|fn)\s+(\w{1,60})\s*\(([^()]{3,200})\)/.exec(line) ??
      /\b(?:const|let|var)\s+(\w{1,60})\s*=\s*(?:async\s*)?\(([^()]{3,200})\)\s*(?::[^=]{1,40})?=>/.exec(line)
    const parameters = match?.[2]
      ?.split(',')
      .map((parameter) => parameter.split(/[:=]/)[0]!.trim().split(/\s+/).at(-1)!)
    if (match && parameters && parameters.length >= 2) signatures.set(match[1]!, parameters)
  }
  return signatures
}

/** A call that passes variables named like the parameters, in another order. */
function findSwappedArguments(line: string, signatures: ReadonlyMap<string, readonly string[]>): Finding {
  if (signatures.size === 0 || /\b(?:function|def|func|fn)\s+\w/.test(line)) return undefined
  for (const match of line.matchAll(/\b(\w{1,60})\(([\w$, ]{3,200})\)/g)) {
    const parameters = signatures.get(match[1]!)
    const given = match[2]!.split(',').map((argument) => argument.trim())
    if (!parameters || given.length !== parameters.length || new Set(given).size !== given.length) continue
    const swapped = given.filter((argument, i) => parameters.includes(argument) && parameters[i] !== argument)
    if (swapped.length < 2 || !given.every((argument) => parameters.includes(argument))) continue
    return {
      name: 'swapped arguments',
      message: `\`${match[1]}\` takes \`(${parameters.join(', ')})\` and gets \`(${given.join(', ')})\`.`,
      fix: line.replace(match[0], () => `${match[1]}(${parameters.join(', ')})`),
    }
  }
  return undefined
}

const ASSIGNED = /(\bif\s*\(\s*[\w$.]{1,60}\s*)=(\s*[\w$.'"]{1,60}\s*\))/

const findAssignedCondition = (line: string, isPython: boolean): Finding =>
  !isPython && ASSIGNED.test(line)
    ? {
        name: 'assignment in a condition',
        message: 'the condition assigns instead of comparing; use `===`.',
        fix: line.replace(ASSIGNED, '$1===$2'),
      }
    : undefined

const findEmptyMean = (line: string): Finding =>
  /\bsum\((\w{1,40})\)\s*\/\s*len\(\1\)/.test(line) && !/\bif\b/.test(line)
    ? {
        name: 'empty input',
        message: 'an empty list makes this a division by zero; decide what the mean of nothing is.',
      }
    : undefined
