import { type ExecFileException, execFile, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { promisify } from 'node:util'

/** Packs the packages of this repository and installs them outside it, as somebody does who has only npm. */
const repository = resolve(import.meta.dirname, '../../..')
export const PACKAGES = ['proof', 'sdk', 'cli', 'server']

/**
 * Without the variables by which `npm run` would tell an npm inside it where it is, and without those of the tests. Without
 * the repository's own Node too, which `npm run` puts in front: npm finds its settings beside the Node that runs it.
 */
export const cleanEnv = (): Record<string, string> => ({
  ...Object.fromEntries(
    Object.entries(process.env as Record<string, string>).filter(
      ([name]) =>
        !/^(npm_(?!config_(registry|cache)$)|INIT_CWD|NODE_|VITEST|TEST$|COUNTERSIGN_|NO_COLOR|FORCE_COLOR)/i.test(
          name,
        ),
    ),
  ),
  PATH: hostPath(),
})

export const hostPath = () =>
  process.env
    .PATH!.split(delimiter)
    .filter((directory) => !directory.includes('node_modules'))
    .join(delimiter)

const execute = promisify(execFile)

const RUN_LIMIT_MS = 240_000

export type RunOptions = { cwd: string; env?: Record<string, string>; limitMs?: number }

/** Runs a program to its end. Its output is in the error when it fails. */
export async function run(command: string, args: string[], { cwd, env, limitMs = RUN_LIMIT_MS }: RunOptions) {
  try {
    const { stdout, stderr } = await execute(command, args, {
      cwd,
      env: { ...cleanEnv(), ...env },
      maxBuffer: 64 * 1024 * 1024,
      timeout: limitMs,
    })
    return { code: 0, stdout, stderr }
  } catch (error) {
    const { code, stdout, stderr, killed } = error as ExecFileException & { stdout: string; stderr: string }
    if (killed) throw new Error(`${command} ${args.join(' ')} took longer than ${limitMs / 1000} s.`)
    if (typeof code !== 'number') throw error
    return { code, stdout, stderr }
  }
}

export async function mustRun(command: string, args: string[], options: RunOptions) {
  const result = await run(command, args, options)
  if (result.code !== 0)
    throw new Error(`${command} ${args.join(' ')} ended with ${result.code}:\n${result.stdout}${result.stderr}`)
  return result.stdout
}

/** The tarballs of `npm pack`, which builds what it packs. */
export async function packAll(): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-tarballs-'))
  const workspaces = PACKAGES.flatMap((name) => ['--workspace', name])
  await mustRun('npm', ['pack', ...workspaces, '--pack-destination', folder], { cwd: repository })
  return readdirSync(folder).map((name) => join(folder, name))
}

export function writeFiles(folder: string, files: Record<string, string>) {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(folder, name, '..'), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
}

/** Starts a program that listens, and answers with the address that it prints. */
export async function startProgram(
  command: string,
  args: string[],
  options: { cwd: string; env?: Record<string, string> },
) {
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: { ...cleanEnv(), ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exited = new Promise<number | string>((done) => child.once('exit', (code, signal) => done(signal ?? code ?? 0)))
  let output = ''
  const url = await new Promise<string>((found, fail) => {
    const read = (chunk: Buffer) => {
      output += chunk
      const match = /listens on (http:\/\/\S+)/.exec(output)
      if (match) found(match[1]!)
    }
    child.stdout.on('data', read)
    child.stderr.on('data', read)
    exited.then((reason) => fail(new Error(`It ended (${reason}) before it listened:\n${output}`)))
  })
  return {
    url,
    output: () => output,
    async stop() {
      child.kill('SIGTERM')
      return exited
    },
  }
}
