import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Runs every test with other people's software, and fails when one of these did not take part. */
const REQUIRED = [
  '@x402/fetch',
  '@x402/axios',
  'x402-fetch',
  'x402-axios',
  '@dexterai/x402',
  '@faremeter/fetch',
  '@lucid-agents/payments',
  '@coinbase/agentkit',
  '@x402/express',
  '@x402/hono',
  '@agentcash/discovery',
  '@a2a-js/sdk',
  '@modelcontextprotocol/sdk',
  '@redocly/cli',
  '@stoplight/spectral-cli',
  'publint',
  '@arethetypeswrong/cli',
]
const TESTS = [
  'server/test/other-software',
  'server/test/mcp/official-client',
  'server/test/discovery/agent-card',
  'server/test/packages',
]

const folder = mkdtempSync(join(tmpdir(), 'countersign-other-software-'))
const report = join(folder, 'ran.txt')
writeFileSync(report, '')
const tests = spawn(process.execPath, ['scripts/test-long.mjs', ...TESTS], {
  stdio: 'inherit',
  env: { ...process.env, OTHER_SOFTWARE: 'all', OTHER_SOFTWARE_REPORT: report },
})
const code = await new Promise<number>((ended) => tests.on('exit', (status) => ended(status ?? 1)))

const ran = readFileSync(report, 'utf8').trim().split('\n')
rmSync(folder, { recursive: true })
const find = (name: string) => ran.find((line) => line.startsWith(`${name}@`) || line.startsWith(`${name} `))
for (const name of REQUIRED) console.log(find(name) ? `ran ${find(name)}` : `did NOT run: ${name}`)
const missing = REQUIRED.filter((name) => !find(name))
console.log(`${REQUIRED.length - missing.length} of ${REQUIRED.length} ran`)
process.exit(code !== 0 || missing.length > 0 ? 1 : 0)
