import { codeOfAnswer } from './code-faults.ts'
import { type Finding, failed, notApplicable, passed } from './finding.ts'
import type { ReadTask } from './task.ts'
import { clip, cutLinesAt, type ReadText, splitFences } from './text.ts'

const CODE_LANGUAGES: Readonly<Record<string, RegExp>> = {
  python: /\bpython\b/i,
  javascript: /\b(?:javascript|node\.?js|in node|js)\b/i,
  typescript: /\btypescript\b|\.tsx?\b|\bin ts\b/i,
  rust: /\brust\b/i,
  go: /\b(?:[Gg]olang\b|(?:[Ii]n|[Aa]|[Tt]o|[Ii]nto|[Uu]sing|[Ww]ith) Go\b|in go\b|[Gg]o (?:function|program|code|struct))/,
  java: /\bjava\b(?!script)/i,
  ruby: /\bruby\b/i,
  php: /\bphp\b/i,
  sql: /\bsql\b(?![- ]?injection)/i,
  bash: /\b(?:bash|shell script|sh script)\b/i,
  'c#': /\bc#|\bcsharp\b/i,
  'c++': /\bc\+\+/i,
  kotlin: /\bkotlin\b/i,
  swift: /\bswift\b/i,
  html: /\bhtml\b/i,
  css: /\bcss\b/i,
  yaml: /\byaml\b/i,
  lua: /\blua\b/i,
  perl: /\bperl\b/i,
  dart: /\bdart\b/i,
  scala: /\bscala\b/i,
  elixir: /\belixir\b/i,
  haskell: /\bhaskell\b/i,
  powershell: /\bpowershell\b/i,
}
const TAGS: Readonly<Record<string, string>> = {
  py: 'python',
  python3: 'python',
  js: 'javascript',
  jsx: 'javascript',
  node: 'javascript',
  mjs: 'javascript',
  ts: 'typescript',
  tsx: 'typescript',
  rs: 'rust',
  golang: 'go',
  rb: 'ruby',
  sh: 'bash',
  shell: 'bash',
  zsh: 'bash',
  cs: 'c#',
  csharp: 'c#',
  cpp: 'c++',
  kt: 'kotlin',
  yml: 'yaml',
  postgresql: 'sql',
  mysql: 'sql',
  sqlite: 'sql',
}

const WEB = new Set('html css javascript typescript'.split(' '))

/** "CSS: … html is <body>": only languages of web pages are named, and every block is marked as another one. */
const isOfNoWeb = (names: readonly string[], blocks: readonly { language: string }[]) =>
  names.length >= 2 &&
  blocks.length > 0 &&
  names.every((name) => WEB.has(name)) &&
  blocks.every(({ language }) =>
    /^(?:py|python|python3|java|c|cpp|go|rust|rs|sql|rb|ruby|r|kotlin|swift)$/.test(language),
  )

const STYLED =
  /\b(?:s?css|sass|less|styl\w{1,4}|html|web\w{0,5}|pages?|sites?|buttons?|layouts?|grids?|flex\w{0,3}|colou?rs?|fonts?|anim\w{1,6}|spinners?|hover\w{0,3}|dark|themes?|responsive|tailwind|bootstrap|react|vue|svelte|components?|ui|ux|front-?end|design|headers?|footers?|cards?|menus?|nav\w{0,5}|cent(?:er|re)\w{0,3}|align\w{0,4}|margins?|padding|print|seite|schrift\w{0,3}|farben?)\b/i

/** Only style sheets, where the task speaks of nothing that has a style. */
const isStyleOnly = (task: ReadTask, tags: readonly string[]) =>
  tags.length > 0 && tags.every((tag) => tag === 'css' || tag === 'scss') && !STYLED.test(task.full.raw)

/** The code is in the language that the task names, when it names one. */
export function checkCodeLanguage(task: ReadTask, output: ReadText): Finding {
  // "Port this Python to Rust" wants Rust.
  const target = /\b(?:convert|translate|port|rewrite|turn|migrate|change)\b.{1,80}?\b(?:to|into|in)\b(.{2,24})/is.exec(
    task.request,
  )?.[1]
  const namedIn = (text: string) =>
    Object.entries(CODE_LANGUAGES)
      .filter(([, pattern]) => pattern.test(text))
      .map(([name]) => name)
  const targets = target ? namedIn(`in${target}`) : []
  const requestedLanguages = targets.length === 1 ? targets : namedIn(task.request.replaceAll(UNWANTED, ' '))
  const fenced = splitFences(output.raw).blocks
  const bare = fenced.length === 0 ? codeOfAnswer(output) : ''
  const blocks = bare ? [{ language: '', code: bare }] : fenced
  if (
    task.agentId.startsWith('coder') &&
    isStyleOnly(
      task,
      blocks.map(({ language }) => language),
    )
  )
    return failed('It is a style sheet, and the task speaks of nothing that has a style.')
  if (isOfNoWeb(requestedLanguages, blocks)) return failed(`The code is not in ${requestedLanguages[0]}.`)
  if (requestedLanguages.length !== 1 || blocks.length === 0) return notApplicable
  const isKin = (a: string, b: string) =>
    a === b ||
    (['javascript', 'typescript', 'html', 'css'].includes(a) && ['javascript', 'typescript', 'html', 'css'].includes(b))
  const tags = blocks
    .flatMap((block) => TAGS[block.language] ?? (block.language ? [block.language] : guessCodeLanguages(block.code)))
    .filter((tag) => Object.hasOwn(CODE_LANGUAGES, tag))
  if (tags.length === 0) return notApplicable
  // Code that is given and goes on in its own language.
  const taskTags = targets.length === 1 ? [] : splitFences(task.full.raw).blocks.map(({ language }) => language)
  if (taskTags.some((tag) => tag && tags.includes(TAGS[tag] ?? tag))) return passed
  // "Our backend is Java": what runs or sets up a program is in no language of programs.
  if (tags.every((tag) => SURROUNDS.has(tag)) && !isOrdered(requestedLanguages[0]!, task.request)) return notApplicable
  // "python3 -c …" in a shell
  const isRunInShell = tags.includes('bash') && blocks.some(({ code }) => code.includes(requestedLanguages[0]!))
  return isRunInShell ||
    tags.some((tag) => isKin(tag, requestedLanguages[0]!)) ||
    (requestedLanguages[0] === 'sql' &&
      blocks.some(({ code }) => /\b(?:select|insert|update|delete|create)\b/i.test(code))) ||
    requestedLanguages[0] === 'html' ||
    (requestedLanguages[0] === 'css' && tags.includes('html'))
    ? passed
    : requestedLanguages[0] === 'bash' && tags.includes('yaml')
      ? passed
      : failed(`The code is not in ${requestedLanguages[0]}.`)
}

const SURROUNDS = new Set('bash powershell yaml html css sql'.split(' '))

/** "in Java", "a Java method", "Java: …", but not "my Java app". */
function isOrdered(language: string, request: string): boolean {
  const name = CODE_LANGUAGES[language]!.source
  return new RegExp(
    `^\\W{0,4}(?:${name})|\\b(?:in|into|using)\\s(?:plain |modern )?(?:${name})|(?<!\\b(?:my|our|your|this|the|that|his|her|their) )(?:${name})\\s(?:\\w{1,20} ){0,2}(?:functions?|scripts?|code|programs?|class(?:es)?|methods?|snippets?|one-?liners?|modules?|queries|query)\\b`,
    'i',
  ).test(request)
}

/** What only code of these languages has, for code that names none. */
const SIGNS_OF: readonly (readonly [RegExp, readonly string[]])[] = [
  [/^[ \t]{0,40}def \w{1,60}\(.{0,200}\).{0,60}:[ \t]{0,10}$/m, ['python']],
  [/^[ \t]{0,40}(?:pub )?fn \w{1,60}/m, ['rust']],
  [/^[ \t]{0,40}(?:(?:private|suspend|inline|override) )?fun \w{1,60}[(<]/m, ['kotlin']],
  [/^[ \t]{0,40}func \w{1,60}\([^)\n]{0,200}:/m, ['swift']],
  [/^func \w{1,60}\(/m, ['go', 'swift']],
  [/^[ \t]{0,40}(?:const|let) \w{1,60} = (?:async )?\(.{0,200}\) =>|\bconsole\.log\(/m, ['javascript', 'typescript']],
  [/\bfunction \w{0,60}\(/, ['javascript', 'typescript', 'php', 'lua', 'bash', 'powershell', 'dart']],
  [/^[ \t]{0,40}select\b/im, ['sql']],
]
const guessCodeLanguages = (code: string): readonly string[] => SIGNS_OF.find(([sign]) => sign.test(code))?.[1] ?? []

/** "a Java method (not Kotlin!)" */
const UNWANTED =
  /\b(?:not|no|never|instead of|rather than|nicht|statt|keine?n?|pas(?: de| en)?|sin|senza)\s(?:in |use |using |plain |any |the )?[\w+#.]{1,12}(?:(?: or | nor |\/)[\w+#.]{1,12})?/gi

const NOUN =
  '(?:function|method|class|variable|component|table|script|funktion|klasse|methode|fonction|classe|méthode|función|clase|funzione|função)'
const NAMED: readonly RegExp[] = [
  new RegExp(
    `\\b(?:\\w{1,20}-)?${NOUN}\\s(?:called|named|that is called|with the name|namens|mit dem namen|nommée?|appelée?|llamada|chiamat[ao]|chamada)\\s[\`"'“]?([A-Za-z_]\\w{2,40})`,
    'i',
  ),
  new RegExp(`\\brename (?:the |this |my )?${NOUN}? ?(?:\`?\\w{1,40}\`? )?to [\`"'“]?([A-Za-z_]\\w{2,40})`, 'i'),
  // "Call it parse_row": a name as code has it.
  /\b(?:[Cc]all|[Nn]ame) (?:it|the (?:function|method|class|component|script)) [`"'“]?((?=[a-z]{0,30}[A-Z_]|[A-Z][a-z]{1,30}[A-Z])[A-Za-z]\w{2,40}|(?<=`)\w{3,40}(?=`))/,
  /\b(?:[Nn]ame|[Ff]unction name) (?:must|has to|should) be [`"'“]?([A-Za-z_]\w{2,40})/,
  // "A js function slugify(title)"
  /\b[Ff]unction\s([a-z]{3,30})\((?=[a-z_])/,
  // "A function `isLeap`", "a function count_vowels(text)": a name in marks, or one of two words and its arguments.
  new RegExp(`\\b${NOUN}\\s\`([A-Za-z_]\\w{2,40})(?:\\([^\`\\n]{0,80})?\``, 'i'),
  /\b(?:[Ff]unction|[Mm]ethod|[Ww]rite|[Ii]mplement|[Cc]reate)\s`?([a-z]{1,20}(?:_[a-z\d]{1,20}|[A-Z][a-z\d]{1,20}){1,4})\(/,
]

/** The function or class that the task gives a name is in the code under that name. */
export function checkNamed(task: ReadTask, output: ReadText): Finding {
  const name = NAMED.map((pattern) => pattern.exec(task.request)?.[1]).find(Boolean)
  const code = codeOfAnswer(output)
  if (!name || !code) return notApplicable
  return new RegExp(`(?<![A-Za-z\\d])${name}(?![A-Za-z\\d])`).test(cutLinesAt(code, '//'))
    ? passed
    : failed(`There is nothing named ${clip(name, 30)} in it.`)
}
