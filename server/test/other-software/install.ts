import { execFile, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { overrides } from './packages.ts'

const run = promisify(execFile)

/** Installs packages into a folder of their own; install scripts are not run. */
export async function installPackages(packages: readonly string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-other-software-'))
  mkdirSync(folder, { recursive: true })
  const forced = Object.fromEntries(
    Object.entries(overrides).filter(([name]) => !packages.some((wanted) => wanted.startsWith(`${name}@`))),
  )
  writeFileSync(
    join(folder, 'package.json'),
    JSON.stringify({ private: true, type: 'module', ...(Object.keys(forced).length > 0 && { overrides: forced }) }),
  )
  const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  await run('npm', ['install', ...options, ...packages], { cwd: folder, maxBuffer: 1 << 24 })
  return {
    folder,
    remove: () => rmSync(folder, { recursive: true, force: true }),
    bin: (name: string, args: string[]) =>
      start(process.execPath, [join(folder, 'node_modules/.bin', name), ...args], folder, {}),
    script: (text: string, env: Record<string, string>) => {
      writeFileSync(join(folder, 'script.mjs'), text)
      return start(process.execPath, ['script.mjs'], folder, env)
    },
  }
}

/** The output of a process that may end with any code. */
function start(command: string, args: string[], cwd: string, env: Record<string, string>) {
  const child = spawn(command, args, {
    cwd,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 120_000,
  })
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk) => (output.stdout += chunk))
  child.stderr.on('data', (chunk) => (output.stderr += chunk))
  return new Promise<{ code: number | null; stdout: string; stderr: string }>((ended) =>
    child.once('close', (code) => ended({ code, ...output })),
  )
}

/** What a script printed as its result. */
export function readResult({ stdout, stderr }: { stdout: string; stderr: string }) {
  const line = stdout.split('\n').find((text) => text.startsWith('RESULT '))
  if (!line) throw new Error(`There is no result:\n${stdout.slice(-2_000)}\n${stderr.slice(-2_000)}`)
  // biome-ignore lint/suspicious/noExplicitAny: tests assert on the result
  return JSON.parse(line.slice('RESULT '.length)) as { status: number; body: any }
}
