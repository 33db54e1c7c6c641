import { buildsQuery } from './built-queries.ts'
import { codeOfAnswer } from './code-faults.ts'
import { divisorOf, isGuarded, namesIn, plainCode, statementsOf, withoutBlindTests } from './code-guards.ts'
import { type Finding, failed, notApplicable, passed } from './finding.ts'
import type { ReadTask } from './task.ts'
import { type ReadText, splitFences, wordsOf } from './text.ts'

/** The code of the task and of the answer, without comments, and the words of the task. */
type Mending = { given: string; code: string; statements: readonly string[]; task: string }
type Defect = { named: RegExp; isLeft(mending: Mending): boolean }

const GUARD =
  /\bif\b|\?(?!\.)|\bor\b|\|\||\?\?|\btry\b|\bmax\(|\bdefault\b|\bguard\b|\bunless\b|\bmatch\b|\bcase\b|\.get\(|\?\.|\bassert\b|\braise\b|\bthrow\b|coalesce|nullif/i

/** Defects that a task names, and how one sees that the code of the answer has them still. */
const DEFECTS: readonly Defect[] = [
  {
    named:
      /zero ?division|\bdivi\w{1,6} (?:by|durch|par|por|per|mit) (?:zero|0|null|zéro|cero|zero)\b|\/ by zero|\b(?:is|are|was|be|with|for|when|if) (?:\w{1,20} ){0,2}(?:0|zero|empty)\b|\bempty (?:list|array|string|input|sequence|slice|collection|file|set|dict|tuple)|leere\w? (?:liste|array)|liste vide|lista vac[ií]a|\bindexerror\b|\b(?:has|have|are|with|for|got|had) no \w{2,20}/i,
    isLeft: isZeroUnguarded,
  },
  {
    named:
      /\b(?:null ?pointer\w{0,9}|npe|none ?type|undefined is not|cannot read propert\w{1,3}|null reference|(?:is|are|be|was|returns?) (?:null|none|undefined|nil)|when (?:\w{1,20} )?is missing|keys? (?:is|are) missing|missing keys?|keyerror|nil pointer|unexpectedly found nil|null ?dereference)\b/i,
    isLeft: isNullUnguarded,
  },
  {
    named:
      /\b(?:off[- ]by[- ]one|one too (?:many|far)|out[- ]of[- ](?:bounds|range)|past (?:the|its) (?:end|array|buffer)|reads? past|arrayindexoutofbounds\w{0,9}|indexoutofbounds\w{0,9}|buffer overflow|last (?:element|item|line|row|value) (?:is )?(?:undefined|nan|null))\b/i,
    isLeft: readsPastEnd,
  },
  {
    named:
      /\bmissing (?:an? )?(?:await|`await`)|\bforgot\w{0,3} (?:(?:to|the|an?) )?`?await|\bwithout `?await|\breturns? a promise|\bpromise ?\{|\bunresolved promise|\[object promise\]|\bawait`? is missing|\b(?:not|never|isn't|aren't) (?:being )?awaited|\bneeds? (?:an? )?`?await/i,
    isLeft: (mending) => !/await|\.then\(|Promise\.all/.test(newLines(mending)),
  },
  {
    named: /\bsql[- ]?injection|\binjection sql|\binyección sql|\bstring[- ]built quer\w{1,3}|\binjectable\b/i,
    isLeft: ({ code }) => buildsQuery(code),
  },
  {
    named:
      /\bmutable default|\bdefault (?:argument|parameter|value|list|dict)s? (?:is |are |gets? )?(?:shared|mutable|kept|reused)|\b(?:shared|kept|remembered|persists?|leaks?|carr(?:y|ies) over) (?:between|across|from|over) (?:\w{1,10} )?calls?|\bkeeps? growing\b|\blist is shared/i,
    isLeft: ({ code }) =>
      /\bdef \w{1,60}\([^)]{0,200}=\s?(?:\[\s?\]|\{\s?\}|(?:list|dict|set|deque|OrderedDict|Counter|bytearray|defaultdict)\()/.test(
        code,
      ),
  },
  {
    named:
      /\b(?:infinite loop|infinite recursion|never (?:ends|stops|terminates|finishes|returns)|endless loop|loops? forever|runs? forever|hangs? forever|recursionerror|maximum recursion|stack overflow|endlosschleife|boucle infinie|bucle infinito)\b/i,
    isLeft: ({ code, statements }) =>
      hasEndlessLoop(statements) || (!/\b(?:while|for|loop|do)\b/.test(code) && !GUARD.test(code)),
  },
  {
    named:
      /\b(?:not|never|isn't|doesn't|don't|aren't) (?:\w{1,12} )?(?:closed?|freed|released?)\b|\bfile (?:handle|descriptor)s?\b|\bresource leak|\bleaks? (?:the |a |its )?(?:file|connection|handle|descriptor)s?|\btoo many open files|\bresourcewarning|\bunclosed\b/i,
    isLeft: isLeftOpen,
  },
  {
    named: /\beven (?:when|if)\b.{0,40}\b(?:throws?|fails?|raises?|errors?)\b|\balways close\b/i,
    isLeft: ({ code }) => !/\bwith\b|\busing\b|\bdefer\b|finally|\bexcept\b|\bcatch\b|\btry\b|\.use\b/.test(code),
  },
  {
    // "It gives "0105"", where a sum was meant.
    named:
      /\b(?:gives?|returns?|shows?|get|prints?|is)\b[^.\n]{0,12}["'`]\d{3,12}["'`]|["'`]\d{2,12}["'`] (?:instead of|rather than|and not|not) ["'`]?\d|\bconcatenat\w{1,4}\b.{0,40}\b(?:instead of|rather than) (?:add|sum)/i,
    isLeft: ({ code }) =>
      !/\b(?:int|float|Decimal|Number|parseFloat|parseInt|BigInt|intval|floatval|BigDecimal|Integer|Double|to_i|to_f|toInt|toDouble|Atoi|ParseInt|ParseFloat)\b|map\(int|\((?:int|float|double)\)|[(+=,]\s?\+\s?[\w(]|\* ?1\b|- ?0\b|valueAsNumber/.test(
        code,
      ),
  },
  {
    named: /\bunsupported operand type|\bcan only concatenate str|\bcannot concatenate\b|\bmust be str, not int/i,
    isLeft: (mending) =>
      !/\b(?:int|float|Decimal|str|number|Number|parseFloat|parseInt|repr)\(|\bf["']|\.format\(|print\([^)\n]{1,80},|["'] ?% ?[\w(]|\bmap\((?:int|float|str)|\bastype\(|\bto_numeric\(|\bor 0\b|\b(?:is|is not) None\b/.test(
        newLines(mending),
      ),
  },
  {
    named:
      /\b(?:file ?names?|paths?|names?|files|directories|folders)\b.{0,30}\b(?:spaces?|blanks)\b|\bspaces? in (?:the |their |its )?(?:file ?|path ?)?(?:names?|paths?)\b/i,
    isLeft: splitsAtSpaces,
  },
  {
    named:
      /\bcase[- ]?(?:in)?sensitiv\w{1,4}|\b(?:ignor\w{1,3}|regardless of|whatever the|independent of) (?:the )?(?:letter )?case\b|\bupper[- ]?(?:case)?(?: and | or |\/|-)lower[- ]?case\b|\bgroß- und kleinschreibung/i,
    isLeft: isCaseKept,
  },
]

/** The lines of the answer's code that the task's has not. */
function newLines({ given, code }: Pick<Mending, 'given' | 'code'>): string {
  const compact = (line: string) => line.replace(/\s+/g, '')
  const before = new Set(given.split('\n').map(compact))
  return code
    .split('\n')
    .filter((line) => !before.has(compact(line)))
    .join('\n')
}

const NAMES_EMPTY =
  /\b(?:empty (?:list|array|string|input|sequence|slice|collection)|leere\w? (?:liste|array)|liste vide|lista vac[ií]a|division by zero|divide by zero|zerodivision|division durch null|(?:when|if) (?:\w{1,20} ){0,2}(?:is|are) (?:empty|zero|0)|indexerror)\b/i

/** What an empty list does no harm to. */
const TAKES_EMPTY =
  /or_?(?:null|default|else|none|nil)|\.at\(|\.slice\(|\[-?\d{0,3}:-?\d{0,3}\]|\bnext\(|\.(?:first|last)\b(?!\()|\.find\(|\.reduce\([^\n]{1,200},\s?["'\w[{][^\n()]{0,20}\)/i

/** A division, or the first item of a list, in front of which nothing asks for zero. */
function isZeroUnguarded({ given, code, statements, task }: Mending): boolean {
  const givenDivisors = statementsOf(given)
    .map(divisorOf)
    .filter((divisor) => divisor !== undefined)
  const divided = statements.map((statement) => divisorOf(statement))
  const isSame = (divisor: string | undefined) =>
    divisor !== undefined &&
    givenDivisors.some((other) => namesIn(other).some((name) => namesIn(divisor).includes(name)))
  const at = divided.some(isSame) ? divided.findIndex(isSame) : divided.findIndex((divisor) => divisor !== undefined)
  const mindsDivision = givenDivisors.length > 0 && /zero|empty|leer|vide|vac|\bno\b|\b0\b|null\b|guard/i.test(task)
  if (mindsDivision && at < 0) return false
  if (mindsDivision) {
    // A query is one statement, and JavaScript may look at the result.
    if (/^\s{0,20}(?:select|with)\b/i.test(code)) return !isGuarded([code.replace(/\s+/g, ' ')], [], 'zero')
    if (/\bisFinite\(|\bisNaN\(|\bis_nan|\.isInfinite|\|\|\s?0\b/.test(statements.slice(at).join('\n'))) return false
    return !isGuarded(statements.slice(0, at + 1), namesIn(divided[at]!), 'zero')
  }
  const isArray =
    /\bempty (?:list|array|slice)|\b(?:list|array|slice) (?:is|was) empty/i.test(task) &&
    /=>|\bfunction\b|\b(?:const|let)\b/.test(code)
  const tested = statements.map((statement) =>
    withoutBlindTests(isArray ? statement.replace(/\(!\w{1,40}\)/g, '(§)') : statement, 'zero').replace(
      /\bif[\s(!]{0,4}§[\s)]{0,3}(?=[:{]|return|throw|$)/g,
      '',
    ),
  )
  const isOverrun = /\bindexerror\b/i.test(task) && /\brange\(|\bwhile\b|\bfor\s?\(/.test(`${given}\n${task}`)
  return !isOverrun && NAMES_EMPTY.test(task) && !GUARD.test(tested.join('\n')) && !TAKES_EMPTY.test(code)
}

/** The name of what is null or missing, as the task gives it. */
function nameOfMissing(task: string, given: string): string | undefined {
  const key = /\bkeyerror:? ?\(?["'`](\w{1,40})["'`]/i.exec(task)?.[1]
  if (key) return key
  // "KeyError when a user has no email"
  const [, absent, marked] =
    /\bkeyerror\b.{0,40}?(?:\b(?:has no|have no|without an?|lacks an?) ["'`]?(\w{1,40})|["'`](\w{1,40})["'`])/i.exec(
      task,
    ) ?? []
  const lacking = absent ?? marked
  if (lacking && new RegExp(`\\w\\.${lacking}\\b`).test(given)) return lacking
  const named =
    /`?([A-Za-z_][\w.]{0,60})(?:\(\))?`? (?:is|returns?|was|can be|may be|could be|might be|are) (?:null|nil|none|undefined|missing|not set)\b/i.exec(
      task,
    )?.[1]
  const last = named?.split('.').at(-1)
  if (last && new RegExp(`\\b${last}\\b`).test(given)) return last
  // "Cannot read properties of undefined (reading 'city')": what stands before it is missing.
  const read =
    /\(reading ["'`](\w{1,40})["'`]\)|\bhas no attribute ["'`](\w{1,40})["'`]|\bproperty ["'`](\w{1,40})["'`] of (?:undefined|null)/i.exec(
      task,
    )
  const property = read?.[1] ?? read?.[2] ?? read?.[3]
  return property ? new RegExp(`\\b(\\w{1,40})(?:\\(\\))?\\.${property}\\b`).exec(given)?.[1] : undefined
}

/** What may be null is used in front of every test for it, or is taken by force. */
function isNullUnguarded({ given, code, statements, task }: Mending): boolean {
  const missing = nameOfMissing(task, given)
  // `function List({ rows = [] })`
  if (missing && new RegExp(`[({,]\\s?${missing}\\s?=\\s?(?:\\[|\\{|["'\\d])`).test(code)) return false
  if (
    !GUARD.test(code) &&
    !/\bis not none\b|!= ?null|!== ?null|\bnil\b|optional|\bNone\b|defaultdict|getOrDefault|&\.|\bin\b/i.test(code)
  )
    return true
  const isForced = /[\w)\]]!!|[\w)\]]!(?=[.\s)]|$)/m
  const use = missing
    ? new RegExp(
        /\bkeyerror\b/i.test(task)
          ? `\\w\\.${missing}\\b(?!\\s?=[^=])(?!\\()`
          : `\\b${missing}(?:\\(\\))?(?:!!|!(?=[.\\s)]|$)|\\.\\w)`,
      )
    : isForced.test(given)
      ? isForced
      : undefined
  if (!use) return false
  const at = statements.findIndex((statement) => use.test(statement))
  if (at < 0) return false
  const until = statements.slice(0, at + 1).map((statement) => statement.replace(new RegExp(use.source, 'gm'), '§'))
  return !isGuarded(until, missing ? [missing] : [], 'null')
}

const OF_LENGTH = /\b(?:len|size|count|length)\b|\.(?:length|Length|Count|size|count)\b|\blen\(/

/** `i <= rows.length`, unless the place before `i` is what is read. */
function readsPastEnd({ given, code }: Mending): boolean {
  const comparison =
    /\b(\w{1,30})\s?<=\s?((?:len|count|sizeof|strlen)\([\w.]{1,40}\)|[\w.]{1,60}(?:\(\))?)(?!\s?-|[\w.(])/g
  const bounds = new Set([...given.matchAll(comparison)].map((match) => match[2]))
  const isEnd = (bound: string) => {
    if (bounds.has(bound) || (OF_LENGTH.test(bound) && !/^\w{1,12}$/.test(bound))) return true
    if (!/^[A-Za-z_]\w{0,40}$/.test(bound)) return false
    // A name for the length: `n = rows.length`, `int rows[N]`.
    return new RegExp(
      `\\b${bound}\\s?:?=\\s?(?:[\\w.]{1,40}\\.(?:length|Length|Count|size\\(\\)|count)|len\\([\\w.]{1,40}\\))(?!\\s?-)|\\b\\w{2,12}\\s\\w{1,40}\\[${bound}\\]`,
    ).test(code)
  }
  const isShifted = (index: string) => new RegExp(`[[(]\\s?${index}\\s?-\\s?1\\s?[\\])]`).test(code)
  const range =
    /\bfor (\w{1,30}) in range\(\s?(?:\w{1,20}\s?,\s?)?(?:len\([\w.]{1,40}\)|n|size|count)\s?\+\s?1\s?\)/.exec(code)
  return (
    (range !== null && !isShifted(range[1]!)) ||
    [...code.matchAll(comparison)].some(([, index, bound]) => isEnd(bound!) && !isShifted(index!))
  )
}

/** A loop of which nothing that its condition names is changed, or in the wrong direction. */
function hasEndlessLoop(statements: readonly string[]): boolean {
  return statements.slice(0, 200).some((statement, index) => {
    const stepped =
      /\bfor\s?\([^;]{0,80};\s?(\w{1,30})\s?([<>])=?\s?[^;]{1,60};\s?(?:\1(\+\+|--|\s?[+-]=)|(\+\+|--)\1)/.exec(
        statement,
      )
    if (stepped) return (stepped[2] === '<') === (stepped[3] ?? stepped[4])!.includes('-')
    // In Go the word is "for".
    const head =
      /^(\s{0,40})(?:while\b|for\b(?=\s[^;=]{1,120}\{\s{0,4}$)(?!.{0,120}\b(?:range|in|of)\b))\s?\(?(.{1,160})/.exec(
        statement,
      )
    if (!head) return false
    const condition = head[2]!.replace(/\)?\s?[{:].{0,120}$/, '')
    const rest = statement.slice(statement.indexOf(condition) + condition.length)
    const body = [rest]
    for (const line of statements.slice(index + 1)) {
      if (line.trim() !== '' && line.search(/\S/) <= head[1]!.length) break
      body.push(line)
    }
    const text = body.join('\n')
    if (/\b(?:break|return|raise|throw|exit|yield)\b/.test(text) || /\(|\btrue\b|\bTrue\b|\bnot\b|!/.test(condition))
      return false
    const names = namesIn(condition)
    const isChanged = (name: string) =>
      new RegExp(
        `\\b${name}\\b\\s?(?:[-+*/%&|>]{1,2}=|=(?!=)|\\+\\+|--|,.{0,40}=(?!=)|\\.\\w|\\[)|(?:\\+\\+|--)${name}\\b|\\b${name}\\s?<-|&${name}\\b`,
      ).test(text)
    if (names.length > 0 && !names.some(isChanged)) return true
    const compared = /^\s?(\w{1,30})\s?([<>])=?\s?[\w.]{1,40}\s?$/.exec(condition)
    if (!compared) return false
    const [, name, sign] = compared as unknown as [string, string, string]
    const grows = new RegExp(`\\b${name}\\s?(?:\\+=|\\+\\+)|\\+\\+${name}\\b|\\b${name}\\s?=\\s?${name}\\s?\\+`).test(
      text,
    )
    const falls = new RegExp(`\\b${name}\\s?(?:-=|--)|--${name}\\b|\\b${name}\\s?=\\s?${name}\\s?[-/]`).test(text)
    return sign === '<' ? falls && !grows : grows && !falls
  })
}

/** Nothing closes the file, or only what no run comes to. */
function isLeftOpen({ code, statements }: Mending): boolean {
  if (
    /\bwith\b|\busing\b|\bdefer\b|finally|\btry\s?\(|\.use\b|read_text|read_bytes|write_text|readFile|ReadAll\w{0,6}|readString|readAllLines|File\.read|file_get_contents|\bdo \||\.release\(|\.end\(|[Dd]ispose\(|fclose|unique_ptr|ifstream|ofstream|closing\(/.test(
      code,
    )
  )
    return false
  const close = statements.findIndex((statement) => /\.close\(|\bclose\(/i.test(statement))
  if (close < 0) return true
  const before =
    statements
      .slice(0, close)
      .filter((statement) => statement.trim())
      .at(-1) ?? ''
  return /^\s{0,40}return\b/.test(before) && before.search(/\S/) === statements[close]!.search(/\S/)
}

/** A name of a file that a shell takes apart: it has no quotation marks, or comes from `ls`. */
function splitsAtSpaces({ code }: Mending): boolean {
  if (/\$\(\s?(?:ls|find)\b|`(?:ls|find)\b/.test(code) && /\bfor\b/.test(code)) return true
  if (/\bxargs\b(?!.{0,40}(?:-0|-d|--null|-I))/.test(code)) return true
  const loops = [...code.matchAll(/\bfor (\w{1,30}) in\b|\bread (?:-\w{1,6} (?:'' )?){0,3}(\w{1,30})/g)].map(
    (match) => match[1] ?? match[2]!,
  )
  const bare = code.replaceAll(
    /"[^"\n]{0,120}"|'[^'\n]{0,120}'|\[\[[^[\]\n]{0,120}\]\]|\b\w{1,30}=\$\{?\w{1,30}\}?/g,
    ' ',
  )
  return (
    loops.some((name) => new RegExp(`[\\s/]\\$(?:${name}\\b|\\{${name}[}%#/:])`).test(bare)) ||
    /\s\$[1@*](?=[\s;]|$)/m.test(bare)
  )
}

const FOLDS =
  /lower|upper|casefold|ignorecase|re\.I\b|\(\?i\)|\/[gmsuy]{0,3}i[gmsuy]{0,3}(?=[\s.,;)\]]|$)|ilike|collate|equalsIgnoreCase|toLocale|EqualFold|strcasecmp|stricmp|stristr|stripos|IgnoreCase|ignore_ascii_case|caseInsensitive|localeCompare|sensitivity|nocase|["']i["']|\bgrep\b.{0,20}-\w{0,4}i|,,\}|\^\^\}|\btr\b|citext|capitalize|title\(/im

/** Nothing makes the letters alike, or only on one side of a comparison of two variables. */
function isCaseKept({ code }: Mending): boolean {
  if (!FOLDS.test(code)) return true
  const calls =
    code.match(
      /\.?(?:lower|upper|casefold|toLowerCase|toUpperCase|toLocaleLowerCase|downcase|upcase|ToLower|ToUpper)\b/g,
    ) ?? []
  return (
    calls.length === 1 &&
    !/ignorecase|re\.I\b|\(\?i\)|ilike|collate|nocase/i.test(code) &&
    /(?:lower|upper|casefold|toLowerCase|toUpperCase|downcase|upcase|ToLower|ToUpper)(?:\(\))?\s?(?:===?|!==?|\.(?:includes|startsWith|endsWith|equals|indexOf|find|contains|startswith|endswith)\()\s?(?!["'`\d/])[A-Za-z_$][\w.$]{0,40}/.test(
      code,
    )
  )
}

const ASKS_FIX =
  /\binstead of (?:raising|throwing|crashing|failing)\b|\b(?:must|should) (?:become|not (?:crash|fail|throw|raise)|be case)\b|\b(?:panics?|vulnerable|exception|guard|handle|repair|mend|remove|get rid of|eliminate|prevent|avoid|patch|resolve|solve|solution)\b/i
/** Nothing but the symptom: "loops forever". */
const isSymptom = (words: string) =>
  words.trim() !== '' &&
  wordsOf(words).length <= 8 &&
  !/\?|\b(?:explain|why|test|show|describe|find|what|where)\b/i.test(words)
const SHELL = /;\s?do\b|;\s?then\b/

export function checkDefect(task: ReadTask, output: ReadText): Finding {
  const given = task.code || (SHELL.test(task.full.raw) ? task.full.raw : '')
  if (!given) return notApplicable
  const prose = task.code ? proseOf(task.full.raw, given) : task.full.raw
  if (!task.is.fix && !ASKS_FIX.test(task.full.raw) && !isSymptom(prose)) return notApplicable
  const code = plainCode(mendedCode(task, output))
  if (!code.trim()) return notApplicable
  const words = task.full.raw
  const mending = {
    given: plainCode(given),
    code,
    statements: statementsOf(code),
    task: prose,
  }
  return isLoopKept(words, mending.given, code) ||
    DEFECTS.some(({ named, isLeft }) => named.test(mending.task) && isLeft(mending))
    ? failed('The defect that the task names is still in the code.')
    : passed
}

/** The answer's code, without blocks that only repeat the task's. */
function mendedCode(task: ReadTask, output: ReadText): string {
  const compact = (text: string) => text.replace(/\s+/g, '')
  const { blocks } = splitFences(output.raw)
  const given = compact(task.full.raw)
  const others = blocks.filter(({ code }) => !given.includes(compact(code)))
  return others.length > 0 ? others.map(({ code }) => code).join('\n') : codeOfAnswer(output)
}

/** The task without the lines that are code. */
function proseOf(task: string, given: string): string {
  const code = new Set(given.split('\n').map((line) => line.trim()))
  return splitFences(task)
    .prose.split('\n')
    .filter((line) => !code.has(line.trim()))
    .join('\n')
}

/** "The last one is never read", and the loops are as they were. */
const isLoopKept = (task: string, given: string, code: string): boolean =>
  /\b(?:never|not|misses|skips|without)\b.{0,24}\bthe last\b|\bthe last \w{1,12} (?:is )?(?:missing|never|skipped)\b|\bone (?:too few|short)\b|\binclude the (?:end|last|upper|final)\b/i.test(
    task,
  ) &&
  loopsOf(given).length > 0 &&
  loopsOf(given).every((loop) => loopsOf(code).includes(loop)) &&
  !/\[-1\]|\+ ?1|<=/.test(code)

/** The heads of loops, without white space. */
const loopsOf = (code: string) =>
  (code.match(/\brange\([^)\n]{1,60}\)|\b(?:for|while) ?\([^)\n]{1,80}\)/g) ?? [])
    .slice(0, 20)
    .map((loop) => loop.replace(/\s/g, ''))
