import { combine, type Finding, failed, notApplicable, passed } from './finding.ts'
import { type ReadText, splitFences } from './text.ts'

/** Faults of code that show without running it: brackets, and loops of a shell. */
export const checkCodeFaults = (output: ReadText): Finding => combine([checkBrackets(output), checkShellLoops(output)])

/** The code of an answer: its fenced blocks, or the whole of it where a line of code opens it. */
export function codeOfAnswer(output: ReadText): string {
  const { blocks } = splitFences(output.raw)
  if (blocks.length > 0) return blocks.map((block) => block.code).join('\n')
  return opensWithCode(output.raw) ? output.raw : ''
}

/** Whether the first line is one of code: a keyword, and a sign that prose does not have where the word may begin a sentence. */
export const opensWithCode = (text: string): boolean =>
  /^\s{0,8}(?:(?:def|function|class|const|let|import|from \w{1,40} import|select|create|insert|with|public|func|fn) |#!)/i.test(
    text,
  ) ||
  /^\s{0,8}(?:#include\s?[<"]|<\?php\b|package \w{1,40};?$|fun \w{1,60}[(<]|(?:async|export|package|fun|private|protected|static|struct|impl|enum|interface|type|var|using|namespace|module|object|sub|local|data|trait|record|pub|int|void|double|string|bool)\s[^\n]{0,200}[{;(=:]\s{0,4}$)/m.test(
    text.slice(0, 400).split('\n', 1)[0]!,
  )

const BRACKETED = new Set(
  'php java c cpp c++ cs csharp go golang rust rs kotlin kt swift scala dart lua css groovy solidity proto graphql r'.split(
    ' ',
  ),
)
/** What opens a comment, where it is not `//`. */
const COMMENTS: Readonly<Record<string, string>> = { lua: '--', php: '#', r: '#', graphql: '#', css: '/*' }
const SHELLS = new Set('bash sh shell zsh'.split(' '))
const PAIRS: Readonly<Record<string, string>> = { ')': '(', ']': '[', '}': '{' }

/** Brackets of languages that no parser here reads; strings and comments are left out. */
function checkBrackets(output: ReadText): Finding {
  const blocks = splitFences(output.raw).blocks.filter(
    ({ language, code }) => BRACKETED.has(language) && !/^\s{0,40}(?:\.\.\.|…)/m.test(code),
  )
  if (blocks.length === 0) return notApplicable
  for (const { language, code } of blocks.slice(0, 3)) {
    const text = withoutStrings(code.slice(0, 12_000), language)
    const open: string[] = []
    for (const character of text) {
      if ('([{'.includes(character)) open.push(character)
      else if (PAIRS[character] && open.pop() !== PAIRS[character])
        return failed('The brackets of the code do not match.')
    }
    if (open.length > 0 && !isFragment(text)) return failed('The brackets of the code do not match.')
    const count = (word: RegExp) => text.match(word)?.length ?? 0
    if (
      language === 'lua' &&
      count(/\bfunction\b/g) + count(/\bdo\b/g) + count(/\bthen\b/g) - count(/\belseif\b/g) !== count(/\bend\b/g)
    )
      return failed('A block of the code has no end.')
  }
  return passed
}

/** A line or two that stand for what is changed, up to the bracket that opens a block. */
const isFragment = (code: string) => /\{$/.test(code.trimEnd()) && code.trim().split('\n').length <= 3

/** A first line that only a script of a shell has. */
const SHELL_LINE =
  /^\s{0,8}(?:#!\s?\/[\w/ ]{0,30}\b(?:ba|z|da|k)?sh\b|set -[a-z]|(?:for \w{1,30} in|while|until) [^\n]{0,300};\s?do\b|if \[[^\n]{0,300};\s?then\b)/

/** A loop of a shell script that has no `done`, a condition without `fi`. */
function checkShellLoops(output: ReadText): Finding {
  const { blocks: fenced } = splitFences(output.raw)
  const bare = fenced.length === 0 && SHELL_LINE.test(output.raw) ? [{ language: 'sh', code: output.raw }] : []
  const blocks = [...fenced, ...bare].filter(({ language }) => SHELLS.has(language))
  if (blocks.length === 0) return notApplicable
  const isOpen = blocks.some(({ code }) => {
    const text = code
      .slice(0, 12_000)
      .split('\n')
      .filter((line) => !/^\s{0,40}#/.test(line))
      .join('\n')
      .replaceAll(/"[^"\n]{0,300}"|'[^'\n]{0,300}'/g, ' ')
    const opened = text.match(/(?:^|[;\n])[ \t]{0,20}do(?=\s)/g)?.length ?? 0
    if (opened > (text.match(/\bdone\b/g)?.length ?? 0)) return true
    // A text for another command may have lines that begin with "if".
    if (text.includes('<<')) return false
    const count = (word: string) =>
      text.match(new RegExp(`(?:^|[;&|(){\\n]|\\b(?:then|else|do))[ \\t]{0,40}${word}(?=[\\s;)|&]|$)`, 'g'))?.length ??
      0
    return count('if') > count('fi') || count('case') > count('esac')
  })
  return isOpen ? failed('A loop of the code has no end.') : passed
}

export function withoutStrings(code: string, language: string): string {
  const comment = COMMENTS[language] ?? '//'
  let text = ''
  for (let i = 0; i < code.length; i++) {
    const character = code[i]!
    if (code.startsWith('/*', i)) {
      const end = code.indexOf('*/', i + 2)
      i = end < 0 ? code.length : end + 1
    } else if (code.startsWith(comment, i) || (language === 'php' && code.startsWith('//', i))) {
      while (i < code.length && code[i] !== '\n') i++
    } else if (code.startsWith('"""', i)) {
      const end = code.indexOf('"""', i + 3)
      i = end < 0 ? code.length : end + 2
    } else if (character === "'" && (language === 'rust' || language === 'rs')) {
      // A character has its end right after it; a lifetime has none.
      i += /^'(?:\\.[^'\n]{0,10}|[^'\\\n])'/u.exec(code.slice(i, i + 14))?.[0].length ?? 1
      i--
    } else if (character === '"' || character === '`' || character === "'") {
      let end = i + 1
      while (end < code.length && code[end] !== character && (code[end] !== '\n' || character === '`'))
        end += code[end] === '\\' ? 2 : 1
      i = end
    } else text += character
  }
  return text
}
