import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'

/** Whoever copies an example of a call that moves money copies its idempotency key with it. */
const repository = resolve(import.meta.dirname, '../../..')
const FILES = globSync(['README.md', 'docs/*.md', '{proof,sdk,cli,server}/README.md', 'examples/**/*.{md,mjs,js}'], {
  cwd: repository,
  exclude: (name) => name.includes('node_modules'),
})
const MOVES_MONEY = /\/api\/(run|loop|pre-auth|rh\/run|wallets\/[^\s/'"`]+\/topup)(?![\w/-])/
const KEY = /idempotency.?key/i

type Call = { file: string; text: string }

/** The commands of a shell block: a quoted string and a line that ends with a backslash go on in the next line. */
function splitCommands(block: string): string[] {
  const commands: string[] = []
  let command = ''
  for (const line of block.split('\n')) {
    command += `${line}\n`
    const isOpen = line.endsWith('\\') || command.replace(/#.*$/gm, '').split("'").length % 2 === 0
    if (isOpen) continue
    commands.push(command)
    command = ''
  }
  return [...commands, command]
}

/** A request with a body; one without is a probe or asks for a list. */
const findShellCalls = (block: string) =>
  splitCommands(block).filter((command) => MOVES_MONEY.test(command) && /\s(-d|--data\S*|--json)\s/.test(command))

/** From the path to the end of the call, as far as its brackets are balanced. */
function findScriptCalls(source: string): string[] {
  const calls: string[] = []
  const callStart = /\b(?:fetch|pay|post|request)\(|callTool\(\{\s*name: 'run'/g
  for (const match of source.matchAll(callStart)) {
    let depth = 0
    let end = source.indexOf('(', match.index)
    do {
      if (source[end] === '(') depth += 1
      if (source[end] === ')') depth -= 1
      end += 1
    } while (depth > 0 && end < source.length)
    const call = source.slice(match.index, end)
    if (MOVES_MONEY.test(call) || call.startsWith('callTool')) calls.push(call)
  }
  return calls
}

const calls: Call[] = FILES.flatMap((file) => {
  const text = readFileSync(join(repository, file), 'utf8')
  if (!file.endsWith('.md')) return findScriptCalls(text).map((call) => ({ file, text: call }))
  return [...text.matchAll(/^```(\w+)\n(.*?)^```/gms)].flatMap(([, language, block]) => {
    if (/^(sh|bash)$/.test(language!)) return findShellCalls(block!).map((call) => ({ file, text: call }))
    return /^(js|mjs|ts)$/.test(language!) ? findScriptCalls(block!).map((call) => ({ file, text: call })) : []
  })
})

test('every example of a call that moves money has an idempotency key', () => {
  expect(calls.filter(({ text }) => !KEY.test(text)).map(({ file, text }) => `${file}: ${text}`)).toEqual([])
})

test('the examples that this test looks for are found', () => {
  expect(new Set(calls.map(({ file }) => file))).toEqual(
    new Set(['README.md', 'docs/governance.md', 'docs/money.md', 'docs/markets.md', 'examples/mcp-client.mjs']),
  )
  const withoutKey = `curl $C/api/run -d '{"task": "a",\n "agent_id": "b"}'\n`
  expect(findShellCalls(withoutKey)).toHaveLength(1)
  expect(KEY.test(findShellCalls(withoutKey)[0]!)).toBe(false)
  expect(findScriptCalls("await pay(url + '/api/loop', { method: 'POST' })")).toHaveLength(1)
})
