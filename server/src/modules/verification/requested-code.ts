import { codeOfAnswer } from './code-faults.ts'
import { type Finding, failed, notApplicable, passed } from './finding.ts'
import type { ReadTask } from './task.ts'
import { clip, type ReadText, splitFences } from './text.ts'

const CODE_LANGUAGES: Readonly<Record<string, RegExp>> = {
  python: /\bpython\b/i,
  javascript: /\b(?:javascript|node\.?js|in node|js)\b/i,
  typescript: /\btypescript\b|\.tsx?\b|\bin ts\b/i,
  rust: /\brust\b/i,
  go: /\b(?:golang|in go\b|a go\b|go (?:function|program|code|struct))/i,
  java: /\bjava\b(?!script)/i,
  ruby: /\bruby\b/i,
  php: /\bphp\b/i,
  sql: /\bsql\b/i,
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

/** The code is in the language that the task names, when it names one. */
export function checkCodeLanguage(task: ReadTask, output: ReadText): Finding {
  const requestedLanguages = Object.entries(CODE_LANGUAGES)
    .filter(([, pattern]) => pattern.test(task.request))
    .map(([name]) => name)
  const fenced = splitFences(output.raw).blocks
  const bare = fenced.length === 0 ? codeOfAnswer(output) : ''
  const blocks = bare ? [{ language: '', code: bare }] : fenced
  if (requestedLanguages.length !== 1 || blocks.length === 0) return notApplicable
  const isKin = (a: string, b: string) =>
    a === b ||
    (['javascript', 'typescript', 'html', 'css'].includes(a) && ['javascript', 'typescript', 'html', 'css'].includes(b))
  const tags = blocks
    .map((block) => TAGS[block.language] ?? (block.language || guessCodeLanguage(block.code) || ''))
    .filter((tag) => Object.hasOwn(CODE_LANGUAGES, tag))
  if (tags.length === 0) return notApplicable
  return tags.some((tag) => isKin(tag, requestedLanguages[0]!)) ||
    requestedLanguages[0] === 'sql' ||
    requestedLanguages[0] === 'html' ||
    (requestedLanguages[0] === 'css' && tags.includes('html'))
    ? passed
    : requestedLanguages[0] === 'bash' && tags.includes('yaml')
      ? passed
      : failed(`The code is not in ${requestedLanguages[0]}.`)
}

const guessCodeLanguage = (code: string): string | undefined =>
  /^[ \t]{0,40}def \w{1,60}\(.{0,200}\).{0,60}:[ \t]{0,10}$/m.test(code)
    ? 'python'
    : /^[ \t]{0,40}(?:pub )?fn \w{1,60}/m.test(code)
      ? 'rust'
      : /^func \w{1,60}\(/m.test(code)
        ? 'go'
        : /\bfunction \w{0,60}\(|=>|\bconst \w{1,60} =/.test(code)
          ? 'javascript'
          : /^[ \t]{0,40}select\b/im.test(code)
            ? 'sql'
            : undefined

/** The function or class that the task gives a name is in the code under that name. */
export function checkNamed(task: ReadTask, output: ReadText): Finding {
  const name =
    /\b(?:function|method|class|variable|component|table|script)\s(?:called|named|that is called)\s[`"'“]?([A-Za-z_]\w{2,40})/i.exec(
      task.request,
    )?.[1] ??
    /\brename (?:the |this |my )?(?:function|method|class|variable|component|table|script)? ?(?:`?\w{1,40}`? )?to [`"'“]?([A-Za-z_]\w{2,40})/i.exec(
      task.request,
    )?.[1] ??
    // "Call it parse_row", "a function `slugify`": a name as code has it.
    /\b(?:[Cc]all|[Nn]ame) (?:it|the (?:function|method|class|component|script)) [`"'“]?((?=[a-z]{0,30}[A-Z_]|[A-Z][a-z]{1,30}[A-Z])[A-Za-z]\w{2,40}|(?<=`)\w{3,40}(?=`))/.exec(
      task.request,
    )?.[1] ??
    /\b[Aa]n? (?:[\w#+]{1,12} ){0,2}(?:function|method|class|component) `([A-Za-z_]\w{2,40})(?:\([^`\n]{0,80})?`/.exec(
      task.request,
    )?.[1] ??
    // "A function count_vowels(text)": a name of two words and its arguments.
    /\b(?:function|method)\s`?([a-z]{1,20}(?:_[a-z\d]{1,20}|[A-Z][a-z\d]{1,20}){1,4})\(/.exec(task.request)?.[1]
  const { blocks } = splitFences(output.raw)
  if (!name || (blocks.length === 0 && !/^\s{0,8}(?:def|function|class|const|public|func|fn) /.test(output.raw)))
    return notApplicable
  return output.raw.includes(name) ? passed : failed(`There is nothing named ${clip(name, 30)} in it.`)
}
