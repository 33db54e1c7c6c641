import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, expect, test } from 'vitest'

const launcher = resolve(import.meta.dirname, '../../bin/required-node.mjs')
const folder = mkdtempSync(join(tmpdir(), 'countersign-node-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Runs the launcher as if on another machine: before it is loaded, the process says it is one. */
function launchOn(machine: { platform: string; arch?: string; node: string }) {
  const { platform, arch = process.arch, node } = machine
  writeFileSync(
    join(folder, 'launch.mjs'),
    `const set = (object, name, value) => Object.defineProperty(object, name, { value })
set(process, 'platform', '${platform}')
set(process, 'arch', '${arch}')
set(process, 'versions', { ...process.versions, node: '${node}' })
const { runOnRequiredNode } = await import(${JSON.stringify(pathToFileURL(launcher).href)})
runOnRequiredNode(['--eval', 'console.log("it ran")'])
`,
  )
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(folder, 'launch.mjs')], { encoding: 'utf8' })
  return { status, stdout, stderr }
}

test.each([
  ['Windows', { platform: 'win32', node: '24.0.0' }, /does not run on Windows.*WSL 2/],
  ['macOS with an old Node', { platform: 'darwin', node: '20.20.2' }, /needs Node 24.*npm has none.*install Node 24/],
  ['another architecture', { platform: 'linux', arch: 's390x', node: '20.20.2' }, /needs Node 24.*install Node 24/],
])('%s is told what to do, and nothing is started', (_, machine, message) => {
  expect(launchOn(machine)).toEqual({ status: 1, stdout: '', stderr: expect.stringMatching(message) })
})

test('npm start on Windows says so before its shell meets a command that it does not know', () => {
  const files = {
    'windows.mjs': "Object.defineProperty(process, 'platform', { value: 'win32' })\n",
    // A shell without `exec`, which is a word of POSIX shells.
    shell: `#!/bin/sh
case "$2" in exec*) echo "'exec' is not recognized as an internal or external command" >&2; exit 1;; esac
exec sh "$@"
`,
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text, { mode: 0o755 })
  const args = [`--node-options=--import=${join(folder, 'windows.mjs')}`, `--script-shell=${join(folder, 'shell')}`]
  const { status, stderr } = spawnSync('npm', ['start', ...args], {
    cwd: resolve(import.meta.dirname, '../../..'),
    encoding: 'utf8',
    env: { PATH: process.env.PATH, HOME: process.env.HOME },
  })
  expect([status, stderr]).toEqual([1, expect.stringMatching(/does not run on Windows.*WSL 2/)])
  expect(stderr).not.toContain('not recognized')
})

test('macOS with Node 24, and Linux with an old Node, run', () => {
  expect(launchOn({ platform: 'darwin', node: '24.0.0' }).stdout).toBe('it ran\n')
  expect(launchOn({ platform: 'linux', node: '20.20.2' }).stdout).toBe('it ran\n')
})
