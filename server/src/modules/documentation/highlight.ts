import { type Html, html } from '../../platform/html.ts'

const STRING = `"(?:[^"\\\\\\n]|\\\\.)*"|'(?:[^'\\\\\\n]|\\\\.)*'`
const KEYWORDS = `\\b(?:import|export|from|const|let|await|async|for|of|new|return|if|else|function|as|true|false|null)\\b`

/** What is coloured in each language; the first that matches counts. */
const tokens: Record<string, RegExp> = {
  json: new RegExp(`(?<name>${STRING})(?=\\s*:)|(?<string>${STRING})|(?<keyword>\\b(?:true|false|null)\\b)`, 'g'),
  ts: new RegExp(`(?<comment>(?<![:\\w])//[^\\n]*)|(?<string>${STRING}|\`[^\`]*\`)|(?<keyword>${KEYWORDS})`, 'g'),
  sh: /(?<comment>(?<=^|\s)#[^\n]*)|(?<string>"(?:[^"\\]|\\.)*"|'[^']*')|(?<keyword>^\s*(?:curl|npm|npx|node)\b)/gm,
}
const aliases: Record<string, string> = { bash: 'sh', js: 'ts', mjs: 'ts', typescript: 'ts' }
const names: Record<string, string> = { sh: 'Command', ts: 'Code', json: 'JSON' }

/** A code block with its strings, comments and keywords marked. */
export function highlight(code: string, language: string): Html {
  const kind = aliases[language] ?? language
  return html`<pre tabindex="0" role="group" aria-label="${names[kind] ?? 'Text'}"><code>${mark(code, tokens[kind])}</code></pre>\n`
}

function mark(code: string, pattern: RegExp | undefined): Html {
  if (!pattern) return html`${code}`
  const parts: Html[] = []
  let end = 0
  for (const match of code.matchAll(pattern)) {
    const [kind] = Object.entries(match.groups!).find(([, text]) => text !== undefined)!
    parts.push(html`${code.slice(end, match.index)}<span class="${kind}">${match[0]}</span>`)
    end = match.index + match[0].length
  }
  return html`${parts}${code.slice(end)}`
}
