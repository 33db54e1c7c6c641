import { checkCodeFaults } from './code-faults.ts'
import { checkDefect } from './defects.ts'
import { combine, type Finding, failed, notApplicable, passed } from './finding.ts'
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
    checkCodeFaults(output),
  ])

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
  'week quarter epoch dow isodow doy microsecond millisecond days hours minutes signed unsigned collate nocase binary escape similar rollup cube grouping sets separator array unnest ordinality exclude groups others respect ignore float money nvarchar datetime datetime2 serial regexp rlike glob div mod xor share skip locked nowait excluded duplicate rowid ctid minus prior connect level declare nvl straight_join force use timestamptz timestamp date time interval text varchar char integer int bigint smallint numeric decimal real boolean uuid json jsonb bytea select from where and or not in is null like ilike between as on join inner left right full outer cross using group by order having limit offset asc desc distinct all any some union intersect except case when then else end exists insert into values update set delete create table view index primary key foreign references unique check default constraint with recursive over partition rows range preceding following current row unbounded interval date time timestamp year month day hour minute second extract cast int integer text varchar numeric decimal boolean true false nulls first last returning lateral fetch next only top cascade begin commit at zone if for both filter within do nothing conflict double precision real bigint char to natural temporary temp explain analyze materialized window current_date current_timestamp current_time now localtime localtimestamp date_trunc getdate sysdate dual rownum ties percent apply pivot qualify sample'.split(
    ' ',
  ),
)

/** Every column of a query is in the tables that the task names. */
function checkColumns(task: ReadTask, output: ReadText): Finding {
  const knownColumns = namedColumns(task)
  const blocks = splitFences(output.raw).blocks.filter(
    ({ language, code }) => PARSED[language] === 'sql' || (language === '' && /^\s*(?:select|with)\b/i.test(code)),
  )
  // Without a fence a query ends at its semicolon or at an empty line.
  if (blocks.length === 0 && /^\s*select\b/i.test(output.raw))
    blocks.push({ language: 'sql', code: output.raw.trim().split(/;|\n[ \t]{0,20}\n/, 1)[0]! })
  if (knownColumns.size === 0 || blocks.length === 0) return notApplicable
  for (const { code } of blocks) {
    const text = cutLinesAt(code.slice(0, 8_000), '--')

      .replace(/'[^']{0,400}'|%\(\w{1,40}\)s|[:@$]\w{1,40}/g, ' ')
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
  const others: string[] = []
  const text = task.full.raw
  if (!/sql\b|\bquery\b|\bselect\b|\btables?\b|\bschema\b|\b[a-z_]\w{1,40}\([a-z_]\w{0,40}, ?[a-z_]\w/i.test(text))
    return names
  // "There is a column state as well."
  for (const match of text.matchAll(
    /\b(?:columns?|fields?) [`"']?([a-z_]\w{1,40})|\b([a-z_]\w{1,40})[`"']? (?:column|field)\b/gi,
  ))
    others.push((match[1] ?? match[2]!).toLowerCase())
  for (const match of text.matchAll(/\b([a-z_]\w{1,40})\s?\(([a-z_](?:[\w\s,."'`]|\([\d\s,]{1,12}\)){2,500})\)/gi)) {
    const columns = match[2]!
      .replaceAll(/\([^()]{0,12}\)/g, '')
      .split(',')
      .map((column) => column.trim().split(/\s/, 1)[0]!.replace(/["'`]/g, '').toLowerCase())
    if (columns.length < 2 || columns.some((column) => !/^[a-z_]\w{0,40}$/.test(column))) continue
    names.add(match[1]!.toLowerCase())
    for (const column of columns) names.add(column)
  }
  if (names.size > 0) for (const name of others) names.add(name)
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
