import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startService, type TestService } from '../../server/test/harness.ts'

/** Every sample of the README is run as it stands, as a file of its own. */
const folder = mkdtempSync(resolve(import.meta.dirname, '../.readme-'))
const readme = readFileSync(resolve(import.meta.dirname, '../README.md'), 'utf8')
const samples = [...readme.matchAll(/^```js\n(.*?)^```/gms)].map(([, source]) => source!)

let service: TestService
beforeAll(async () => {
  service = await startService()
})
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true })
  await service.close()
})

const runFile = (file: string) =>
  new Promise<{ code: number | null; output: string }>((resolveRun) => {
    const child = spawn(process.execPath, [file], { env: { ...process.env, COUNTERSIGN_URL: service.url } })
    let output = ''
    child.stdout.on('data', (chunk: Buffer) => (output += chunk))
    child.stderr.on('data', (chunk: Buffer) => (output += chunk))
    child.on('exit', (code) => resolveRun({ code, output }))
  })

const EXPECTED_OUTPUTS = ['verified: true', 'true true', 'completed', 'a map 400000 100000', 'rcpt_', 'listens on']

test('there is a sample for each of the outputs that are expected', () => {
  expect(samples).toHaveLength(EXPECTED_OUTPUTS.length)
})

test.each(EXPECTED_OUTPUTS.map((expected, index) => [expected, index] as const))(
  'the sample that prints "%s" runs',
  async (expected, index) => {
    const file = join(folder, `sample-${index}.mjs`)
    writeFileSync(file, samples[index]!)
    const { code, output } = await runFile(file)
    expect(output).toContain(expected)
    expect(code, output).toBe(0)
  },
)
