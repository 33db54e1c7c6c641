import { checkCodeFaults, codeOfAnswer } from './code-faults.ts'
import { combine, type Finding, failed, notApplicable, passed } from './finding.ts'
import { ASCENDING, DESCENDING } from './ordering.ts'
import { readRequest, wantsYaml } from './requested-form.ts'
import type { ReadTask } from './task.ts'
import { cutLinesAt, plainText, type ReadText, splitFences, wordsOf } from './text.ts'

/** Code that only a parser can check, for a thread: the parsers are not ours and cannot be stopped. */
export type CodeBlock = { language: 'javascript' | 'typescript' | 'python' | 'sql' | 'json' | 'yaml'; code: string }

const PARSED: Readonly<Record<string, CodeBlock['language']>> = {
  js: 'javascript',
  javascript: 'javascript',
  mjs: 'javascript',
  cjs: 'javascript',
  node: 'javascript',
  jsx: 'javascript',
  ts: 'typescript',
  typescript: 'typescript',
  tsx: 'typescript',
  py: 'python',
  python: 'python',
  python3: 'python',
  sql: 'sql',
  postgresql: 'sql',
  postgres: 'sql',
  psql: 'sql',
  json: 'json',
  yaml: 'yaml',
  yml: 'yaml',
}

export const MAX_CODE = 12_000
const MAX_BLOCKS = 3

/** The blocks of an answer that name their language and are not copied from the task. */
export function blocksToParse(task: ReadTask, output: ReadText): CodeBlock[] {
  const taskText = plainText(task.full.raw)
  // The white space of YAML is part of it.
  const isCopied = (language: string, code: string) =>
    PARSED[language] === 'yaml' ? task.full.raw.includes(code) : taskText.includes(plainText(code))
  const { blocks } = splitFences(output.raw)
  const bare = blocks.length === 0 && wantsYaml(readRequest(task)) ? [{ language: 'yaml', code: output.raw }] : []
  return [...blocks, ...bare]
    .filter(({ language, code }) => code.trim() && code.length <= MAX_CODE && !isCopied(language, code))
    .flatMap(({ language, code }) => (PARSED[language] ? [{ language: PARSED[language], code }] : []))
    .filter(({ code }) => !/^[ \t]{0,40}(?:\.\.\.|…)/m.test(code))
    .slice(0, MAX_BLOCKS)
}

/** Checks of code that need no parser: the defect that the task names, the tables that it names, spelling that was to be corrected. */
export const checkCode = (task: ReadTask, output: ReadText): Finding =>
  combine([
    checkIndentation(output),
    checkDefect(task, output),
    checkColumns(task, output),
    checkUnchanged(task, output),
    checkSpelling(task, output),
    checkCodeFaults(task, output),
  ])

/** What the task asks of code by name: the number and the order of rows, a schedule. */
export const checkCodeRequest = (task: ReadTask, output: ReadText): Finding =>
  combine([checkLimit(task, output), checkCron(task, output), checkDirection(task, output)])

/** Python's own rule: a line that opens a block ends with a colon. */
function checkIndentation(output: ReadText): Finding {
  const blocks = splitFences(output.raw).blocks.filter(({ language }) => PARSED[language] === 'python')
  for (const { code } of blocks)
    for (const line of code.split('\n').slice(0, 400)) {
      const text = cutLinesAt(line, ' #').trimEnd()
      if (/^\s*(?:def \w{1,80}\(.{0,300}\)|class \w{1,80}(?:\(.{0,200}\))?|else|try|finally)$/.test(text))
        return failed('A line of Python lacks its colon.')
    }
  return blocks.length > 0 ? passed : notApplicable
}

type Defect = { named: RegExp; isGone(code: string): boolean }

const GUARD =
  /\bif\b|\?(?!\.)|\bor\b|\|\||\?\?|\btry\b|\bmax\(|\bdefault\b|\bguard\b|\bunless\b|\bmatch\b|\bcase\b|\.get\(|\?\.|\bassert\b|\braise\b|\bthrow\b|coalesce|nullif/i

/** Defects that a task names, each with what a mended code has or lacks. */
const DEFECTS: readonly Defect[] = [
  {
    named:
      /\b(?:empty (?:list|array|string|input|sequence|slice|collection)|leere\w? (?:liste|array)|liste vide|lista vac[ií]a|division by zero|divide by zero|zerodivision|division durch null|when (?:\w{1,20} )?(?:is|are) (?:empty|zero|0)|indexerror)\b/i,
    isGone: (code) => GUARD.test(code),
  },
  {
    named:
      /\b(?:null pointer|nullpointer|npe|none ?type|undefined is not|cannot read propert\w{1,3}|null reference|is (?:null|none|undefined|nil)|when (?:\w{1,20} )?is missing|keyerror)\b/i,
    isGone: (code) => GUARD.test(code) || /\bis not none\b|!= ?null|!== ?null|\bnil\b|optional/i.test(code),
  },
  {
    named:
      /\b(?:off[- ]by[- ]one|one too (?:many|far)|out of (?:bounds|range)|goes? past the end|reads? past|skips the (?:last|first)|arrayindexoutofbounds|last (?:element|item) (?:is )?(?:missing|skipped|undefined))\b/i,
    isGone: (code) =>
      !/<=\s?\w{1,40}(?:\.length|\.size\(\)|\.len\(\)|\.Length|\.Count)|range\(\s?len\(\w{1,40}\)\s?\+\s?1\s?\)/.test(
        code,
      ),
  },
  {
    named: /\b(?:reads?|writes?|goes|runs) past (?:the|its) (?:end|array|buffer)\b|\bbuffer overflow\b/i,
    isGone: (code) => !/\bfor ?\([^)\n]{0,60}<=\s?\w{1,40};/.test(code),
  },
  {
    named:
      /\b(?:missing await|forgot(?:ten)? (?:to )?await|without await|returns? a promise|promise \{|unresolved promise|await is missing)\b/i,
    isGone: (code) => /\bawait\b|\.then\(/.test(code),
  },
  {
    named: /\b(?:sql injection|string[- ]built quer\w{1,3}|injectable)\b/i,
    isGone: (code) =>
      /\?|\$\d|%s|:\w{2,}|@\w{2,}|prepare|parameter/i.test(code) &&
      !/(?:select|insert|update|delete)\b.{0,200}(?:["'`]\s?[+.]\s?\w|\$\{|" ?% ?\w|f["'])/i.test(
        code.replace(/execute\(\s?(["'`]).{0,300}?\1\s?,/g, ''),
      ),
  },
  {
    named:
      /\b(?:mutable default|default (?:argument|parameter) (?:is )?(?:shared|mutable)|shared between calls|keeps? growing (?:between|across) calls|list is shared)\b/i,
    isGone: (code) => !/def \w{1,60}\([^)]{0,200}=\s?(?:\[\]|\{\}|list\(\)|dict\(\)|set\(\))/.test(code),
  },
  {
    named:
      /\b(?:infinite loop|never (?:ends|stops|terminates)|endless loop|infinite recursion|recursionerror|maximum recursion|stack overflow)\b/i,
    isGone: (code) => GUARD.test(code) || /\bbreak\b|\+\+|\+= ?1|-= ?1|--|\bfor\b/.test(code),
  },
  {
    named: /\b(?:not closed|never closed|file handles?|resource leak|leaks? (?:the )?(?:file|connection|handle)s?)\b/i,
    isGone: (code) => /\bwith\b|\.close\(|\busing\b|\bdefer\b|finally/.test(code),
  },
  {
    named: /\beven (?:when|if)\b.{0,40}\b(?:throws?|fails?|raises?|errors?)\b|\balways close\b/i,
    isGone: (code) => /\bwith\b|\busing\b|\bdefer\b|finally|\bexcept\b|\bcatch\b|\btry\b/.test(code),
  },
  {
    // "It gives "0105"", where a sum was meant.
    named:
      /\b(?:gives?|returns?|shows?|get|prints?)\b[^.\n]{0,12}["'`]\d{3,12}["'`]|\bconcatenat\w{1,4}\b.{0,40}\b(?:instead of|rather than) (?:add|sum)/i,
    isGone: (code) =>
      /\b(?:int|float|Decimal|Number|parseFloat|parseInt|BigInt)\(|[(+=,]\s?\+\s?[\w(]|\* ?1\b|map\(Number\)|valueAsNumber/.test(
        code,
      ),
  },
  {
    named: /\bunsupported operand type|\bcan only concatenate str|\bcannot concatenate\b/i,
    isGone: (code) =>
      /\b(?:int|float|Decimal|str|number|Number|parseFloat|parseInt)\(|\bf["']|\.format\(|print\([^)\n]{1,80},/.test(
        code,
      ),
  },
  {
    named: /\b(?:file ?names?|paths?|names?)\b.{0,30}\bspaces?\b|\bspaces? in (?:the )?(?:file ?)?names?\b/i,
    isGone: (code) => !/\$\(ls\b|`ls\b/.test(code) && !/\b(?:mv|cp|rm|cat)\b(?: -\w{1,6})* \$\w/.test(code),
  },
  {
    named: /\bcase[- ]?(?:in)?sensitive\b/i,
    isGone: (code) => /lower|upper|casefold|ignorecase|\/i|ilike|collate|equalsIgnoreCase|toLocale/i.test(code),
  },
]

const ASKS_FIX =
  /\binstead of (?:raising|throwing|crashing|failing)\b|\b(?:must|should) (?:become|not (?:crash|fail|throw|raise))\b/i
const SHELL = /;\s?do\b|;\s?then\b/

function checkDefect(task: ReadTask, output: ReadText): Finding {
  const given = task.code || (SHELL.test(task.full.raw) ? task.full.raw : '')
  if (!given || !(task.is.fix || ASKS_FIX.test(task.full.raw))) return notApplicable
  const code = withoutComments(codeOfAnswer(output).replaceAll(/"""[^"]{0,600}"""/g, ''))
  if (!code.trim()) return notApplicable
  const defects = DEFECTS.filter(({ named }) => named.test(task.full.raw))
  const isLoopKept =
    /\b(?:never|not|misses|skips|without)\b.{0,24}\bthe last\b|\bthe last \w{1,12} (?:is )?(?:missing|never|skipped)\b|\bone (?:too few|short)\b|\binclude the (?:end|last|upper|final)\b/i.test(
      task.full.raw,
    ) &&
    loopsOf(given).length > 0 &&
    loopsOf(given).every((loop) => loopsOf(code).includes(loop)) &&
    !/\[-1\]|\+ ?1|<=/.test(code)
  return isLoopKept || defects.some((defect) => !defect.isGone(code))
    ? failed('The defect that the task names is still in the code.')
    : passed
}

/** The heads of loops, without white space. */
const loopsOf = (code: string) =>
  (code.match(/\brange\([^)\n]{1,60}\)|\b(?:for|while) ?\([^)\n]{1,80}\)/g) ?? [])
    .slice(0, 20)
    .map((loop) => loop.replace(/\s/g, ''))

const withoutComments = (code: string) => cutLinesAt(code, '#', '//')

/** Code that was to be mended comes back as it was. */
function checkUnchanged(task: ReadTask, output: ReadText): Finding {
  if (!task.code || !task.is.fix) return notApplicable
  const { blocks } = splitFences(output.raw)
  // In YAML and Python the indentation is part of the code.
  const isIndented = /\b(?:yaml|yml|python|indent\w{0,6}|makefile)\b/i.test(task.full.raw)
  const compact = (code: string) =>
    withoutComments(code)
      .split('\n')
      .map((line) => (isIndented ? line.trimEnd() : line.replace(/\s+/g, '')))
      .join(isIndented ? '\n' : '')
  const taskText = compact(task.full.raw)
  const mended = blocks.map((block) => compact(block.code)).filter((code) => code.length > 20)
  if (mended.length === 0) return notApplicable
  return mended.every((code) => taskText.includes(code)) &&
    !/\b(?:no (?:bug|error|defect|fault|change)|is (?:fine|correct)|nothing (?:is )?wrong|example|e\.g\.|replace|install|run)\b/i.test(
      splitFences(output.raw).prose,
    )
    ? failed('The code is the one that was to be mended.')
    : passed
}

const SQL_WORDS = new Set(
  'timestamptz timestamp date time interval text varchar char integer int bigint smallint numeric decimal real boolean uuid json jsonb bytea select from where and or not in is null like ilike between as on join inner left right full outer cross using group by order having limit offset asc desc distinct all any some union intersect except case when then else end exists insert into values update set delete create table view index primary key foreign references unique check default constraint with recursive over partition rows range preceding following current row unbounded interval date time timestamp year month day hour minute second extract cast int integer text varchar numeric decimal boolean true false nulls first last returning lateral fetch next only top cascade begin commit at zone if for both filter within do nothing conflict double precision real bigint char to natural temporary temp explain analyze materialized window current_date current_timestamp current_time now localtime localtimestamp date_trunc getdate sysdate dual rownum ties percent apply pivot qualify sample'.split(
    ' ',
  ),
)

/** Every column of a query is in the tables that the task names. */
function checkColumns(task: ReadTask, output: ReadText): Finding {
  const knownColumns = namedColumns(task)
  const blocks = splitFences(output.raw).blocks.filter(
    ({ language, code }) => PARSED[language] === 'sql' || (language === '' && /^\s*(?:select|with)\b/i.test(code)),
  )
  if (blocks.length === 0 && /^\s*select\b/i.test(output.raw)) blocks.push({ language: 'sql', code: output.raw })
  if (knownColumns.size === 0 || blocks.length === 0) return notApplicable
  for (const { code } of blocks) {
    const text = cutLinesAt(code.slice(0, 8_000), '--')

      .replace(/'[^']{0,400}'/g, ' ')
      .toLowerCase()
    if (/\bcreate\s+table\b|\balter\s+table\b/.test(text)) return notApplicable
    const tokens = text.match(/[a-z_][a-z0-9_]*|"[^"]{1,60}"|[().,*;=<>]/g)?.slice(0, 2_000) ?? []
    const names = new Set<string>()
    // What a query names itself: aliases of columns and tables, and common table expressions.
    tokens.forEach((token, index) => {
      const before = tokens[index - 1] ?? ''
      const next = tokens[index + 1] ?? ''
      if (before === 'as' || (next === 'as' && tokens[index + 2] === '(')) names.add(token)
      const beforeTable = tokens[index - 2] ?? ''
      if (
        /^[a-z_]/.test(token) &&
        !SQL_WORDS.has(token) &&
        /^(?:from|join|update|into|,)$/.test(beforeTable) &&
        /^[a-z_]/.test(before) &&
        !SQL_WORDS.has(before)
      )
        names.add(token)
      if (before === ')' && /^[a-z_]/.test(token) && !SQL_WORDS.has(token)) names.add(token)
    })
    const strange = tokens.find(
      (token, index) =>
        /^[a-z_]/.test(token) &&
        !SQL_WORDS.has(token) &&
        tokens[index + 1] !== '(' &&
        !knownColumns.has(token) &&
        !names.has(token) &&
        tokens[index + 1] !== '.' &&
        !/^(?:from|join|into|update)$/.test(tokens[index - 1] ?? ''),
    )
    if (strange) return failed(`The query uses ${strange.slice(0, 30)}, which the task does not name.`)
  }
  return passed
}

/** `users(id, email)` and `create table users (id int, …)`. */
function namedColumns(task: ReadTask): Set<string> {
  const names = new Set<string>()
  const text = task.full.raw
  if (!/sql\b|\bquery\b|\bselect\b|\btables?\b|\bschema\b/i.test(text)) return names
  for (const match of text.matchAll(/\b([a-z_]\w{1,40})\s?\(([a-z_][\w\s,."']{2,600})\)/gi)) {
    const columns = match[2]!
      .split(',')
      .map((column) => column.trim().split(/\s/, 1)[0]!.replace(/["']/g, '').toLowerCase())
    if (columns.length < 2 || columns.some((column) => !/^[a-z_]\w{0,40}$/.test(column))) continue
    names.add(match[1]!.toLowerCase())
    for (const column of columns) names.add(column)
  }
  return names
}

/** Spellings that are always wrong. */
const MISSPELLED = new Set(
  'accomodate accomodation acheive accross aggresive apparant appearence arguement assasination basicly beleive bizzare buisness calender carribean catagory cemetary changable cheif collegue colleages comming commitee comitee comittee completly concious curiousity decieve definate definately definitly dilemna disapear dissapoint dissapointed dissapear ecstacy embarass embarassing embarrased enviroment equiptment exagerate existance experiance familar finaly foriegn fourty freind futher gaurd goverment grammer greatful guage happend harrass hieght heigth humourous hygeine ignorence imediately independant indispensible inteligent interupt irresistable judgemental knowlege liason libary lisence maintainance maintenence manuever millenium mischievious mispell misspel neccessary neccesary necesary neice noticable occassion occasionaly occured occurence occurrance paralel parliment particuler pavillion peice percieve persistant personell posession potatos preceed prefered presance privelege privilige probaly profesional professionaly promiss pronounciation publically questionaire reccomend recomend recieve recieved reciept refered referance relevent religous remeber repitition resistence responce restaraunt rythm seige sence seperate seperately seperated sieze similiar sincerly speach succesful successfull succesfully suprise supprise temperture tommorow tommorrow tomorow tounge transfered truely twelth tyrany underate untill unforseen unfortunatly usefull vaccum vegatable vehical visable wether wich wierd welcom wensday wendsday thier teh adress alot allready arrangment begining belive buissness compatability concensus deffinitely desparate develope diffrent dissappear excercise extreemly facinating feild garantee guarentee heighth inconvienient innoculate intresting lenght mesage minumum mistery nessecary noticeble oportunity orginal peolpe posible pregnent proffesional recogise recomendation shedule strenght sucess surprize tecnology tendancy throught tought truley useing vaccuum writting yeild dont doesnt didnt isnt arent wasnt werent hasnt havent couldnt wouldnt shouldnt youre theyre informations advices'.split(
    ' ',
  ),
)

/** Forms that are wrong wherever they stand. */
const SLIPS: readonly RegExp[] = [
  /\b(?:could|should|would|must|might) of\b/i,
  /\b(?:he|she|it) (?:don't|have|were going|do not)\b/i,
  /\b(?:they|we|you) (?:was|is|has)\b/i,
  /\bmore (?:better|easier|faster|bigger|cheaper)\b/i,
  /\b(?:their|there) (?:going|coming) to\b/i,
  /\bqual'è\b|\bun'amico\b|\bun pò\b|\bperchè\b/i,
  /\bhaver si\b|\bhechar de menos\b|\bhabía muchos? gente\b/i,
  /\bseid (?:gestern|heute|letzte[rmn]?|\d)\b|\bwie als\b|\beinzigste[rn]?\b/i,
]

/** A spelling mistake of the task that is still in the text that was to be corrected. */
function checkSpelling(task: ReadTask, output: ReadText): Finding {
  if (!task.is.proofreading && !/\bspelling\b|\btypos?\b/i.test(task.request)) return notApplicable
  const mistakes = new Set(wordsOf(task.full.raw).filter((word) => MISSPELLED.has(word)))
  const slips = SLIPS.filter((slip) => slip.test(task.full.raw))
  if (mistakes.size + slips.length === 0) return notApplicable
  const { raw } = output
  // A list of corrections names the mistakes.
  if (/→|->|=>|\binstead of\b|\bchanged\b|\bcorrected\b|\bmisspel/i.test(raw)) return passed
  return output.words.some((word) => mistakes.has(word)) || slips.some((slip) => slip.test(raw))
    ? failed('A spelling mistake of the text is still there.')
    : passed
}

const codeOf = (output: ReadText) => {
  const { blocks } = splitFences(output.raw)
  return blocks.length > 0 ? blocks.map((block) => block.code).join('\n') : output.raw
}

const COUNTS: Readonly<Record<string, number>> = { two: 2, three: 3, four: 4, five: 5, six: 6, seven: 7, eight: 8 }

/** "The 5 fastest runs": LIMIT 5. */
function checkLimit(task: ReadTask, output: ReadText): Finding {
  const requestedCount =
    /\b(?:top|first|last|the|only) (\d{1,3}|two|three|four|five|six|seven|eight|ten) (?:\w{1,12} )?(?:\w{3,12}est|most|latest|rows|results|customers|products|runs|orders|users|records|entries|items)\b|\btop (\d{1,3})\b/i.exec(
      task.request,
    )
  const limit = /\blimit\s{1,4}(\d{1,6})\b|\btop\s?\(?(\d{1,6})\)?|\bfetch first (\d{1,6})/i.exec(codeOf(output))
  if (!requestedCount || !limit || !/\bsql\b|\bquery\b|\bschema\b|\btable\b/i.test(task.full.raw)) return notApplicable
  const count = requestedCount[1] ?? requestedCount[2]!
  const expected = COUNTS[count.toLowerCase()] ?? Number(count)
  return !Number.isFinite(expected) || Number(limit[1] ?? limit[2] ?? limit[3]) === expected
    ? passed
    : failed('The query returns another number of rows than was asked for.')
}

const WEEKDAY_FIELDS: Readonly<Record<string, RegExp>> = {
  sunday: /^(?:0|7|sun)$/i,
  monday: /^(?:1|mon)$/i,
  tuesday: /^(?:2|tue)$/i,
  wednesday: /^(?:3|wed)$/i,
  thursday: /^(?:4|thu)$/i,
  friday: /^(?:5|fri)$/i,
  saturday: /^(?:6|sat)$/i,
}

/** A line of cron has five fields, and its hour, minute and weekday are those of the task. */
function checkCron(task: ReadTask, output: ReadText): Finding {
  const request = task.request.toLowerCase()
  if (
    !/\bcron(?:tab| line| expression| job)?\b/.test(request) ||
    /\b(?:explain|what does|what do|mean|why|debug|fix)\b/.test(request)
  )
    return notApplicable
  const line =
    /^[`\s]{0,8}((?:[\d*][\d*,/-]{0,20}|@\w{4,9})(?: {1,4}(?:[\d*?L][\d*,/#L-]{0,20}|(?:mon|tue|wed|thu|fri|sat|sun|jan|dec)[a-z,-]{0,30})){0,6})/im.exec(
      codeOf(output),
    )?.[1]
  if (!line) return notApplicable
  if (line.startsWith('@')) return passed
  const fields = line.split(/ +/)
  if (fields.length < 5) return failed('A line of cron has five fields.')
  const [minute, hour, day, , weekday] = fields as [string, string, string, string, string]
  const clock = /\b(?:at )?(\d{1,2}):(\d{2})\s?(am|pm)?|\bat (\d{1,2})\s?(am|pm)|\b(midnight|noon)\b/.exec(request)
  if (clock) {
    const half = clock[3] ?? clock[5]
    const base = clock[6] ? (clock[6] === 'noon' ? 12 : 0) : Number(clock[1] ?? clock[4])
    const hours = half === 'pm' && base < 12 ? base + 12 : half === 'am' && base === 12 ? 0 : base
    if (/^\d+$/.test(hour) && Number(hour) !== hours)
      return failed('The hour of the schedule is not the one asked for.')
    if (/^\d+$/.test(minute) && Number(minute) !== Number(clock[2] ?? 0))
      return failed('The minute of the schedule is not the one asked for.')
    if (hour === '*') return failed('The hour of the schedule is not the one asked for.')
  }
  const named = Object.keys(WEEKDAY_FIELDS).filter((name) => request.includes(name))
  if (
    named.length === 1 &&
    !request.includes('weekday') &&
    !WEEKDAY_FIELDS[named[0]!]!.test(weekday) &&
    !/[,-]/.test(weekday)
  )
    return failed('The weekday of the schedule is not the one asked for.')
  if (
    /\b(?:first|1st) (?:day )?of (?:each|every|the) month\b|\bmonthly on the (?:first|1st)\b/.test(request) &&
    day !== '1'
  )
    return failed('The day of the schedule is not the one asked for.')
  const every = /\bevery (\d{1,2}) minutes\b/.exec(request)?.[1]
  if (every && minute !== `*/${every}` && !(every === '60' && /^\d+$/.test(minute)) && !minute.includes(','))
    return failed('The minute of the schedule is not the one asked for.')
  return passed
}

/** "The three with the highest total", "revenue per title, highest first": the largest come first. */
function checkDirection(task: ReadTask, output: ReadText): Finding {
  const text = task.full.raw.slice(0, 2_000)
  const order = lastOrder(codeOf(output).slice(0, 8_000))
  if (!order || !/sql\b|\bquery\b|\btables?\b|\bselect\b|\bschema\b/i.test(text)) return notApplicable
  const isTime = /sec|min|time|duration|days|hours|_ms/i.test(order.keys)
  const [wantsMost, wantsLeast] = order.isLimited
    ? [
        /\b(?:highest|largest|biggest|greatest|most|top|latest|newest|best|hottest|warmest|longest|heaviest|tallest|priciest)\b/i.test(
          text,
        ),
        /\b(?:lowest|smallest|fewest|least|cheapest|oldest|earliest|coldest|lightest)\b/i.test(text) ||
          (isTime && /\b(?:fastest|quickest|shortest)\b/i.test(text)),
      ]
    : [DESCENDING.test(text), ASCENDING.test(text)]
  // A limit to the first of several keys says less, and so does an age, a speed or a rank.
  if (
    wantsMost === wantsLeast ||
    (order.isLimited && order.keys.includes(',')) ||
    /\b(?:age|speed|rank|case)\b|^-/i.test(order.keys)
  )
    return notApplicable
  const [first = ''] = order.keys.replaceAll(/\([^()]{0,80}\)/g, '').split(',')
  return /\bdesc\b/i.test(first) === wantsMost ? passed : failed('The query takes the rows from the other end.')
}

/** The keys of the last `ORDER BY` of a query, and whether a `LIMIT` follows; not those of a window. */
function lastOrder(code: string): { keys: string; isLimited: boolean } | undefined {
  const text = code.replaceAll(/\s+/g, ' ')
  const at = text.toLowerCase().lastIndexOf('order by ')
  if (at < 0) return undefined
  const rest = text.slice(at + 9, at + 209)
  const end = rest.search(/;|\b(?:limit|offset|fetch)\b|--|\/\*/i)
  const keys = (end < 0 ? rest : rest.slice(0, end)).trim()
  const isOpen = (keys.match(/\)/g)?.length ?? 0) > (keys.match(/\(/g)?.length ?? 0)
  return isOpen || !keys ? undefined : { keys, isLimited: /^\s?limit\b/i.test(rest.slice(Math.max(0, end))) }
}
